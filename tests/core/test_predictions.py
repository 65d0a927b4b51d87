"""Predictions: what is written is what is read, to the last bit and letter."""

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from karat.core.predictions import Predictions, _plain_columns, as_text
from karat.errors import ContractError, DataError

steady = settings(deadline=None, derandomize=True, max_examples=80)
ARRAYS = ("predictions", "target", "probabilities", "group", "rank", "candidates", "question")


def same(one, other):
    """Tell whether two Predictions are equal in every field, bit by bit."""
    facts = [(p.answers, p.truths, p.classes) for p in (one, other)]
    if facts[0] != facts[1]:
        return False
    for name in ARRAYS:
        a, b = getattr(one, name), getattr(other, name)
        if (a is None) != (b is None):
            return False
        if a is not None and (a.dtype != b.dtype or a.shape != b.shape or not equal(a, b)):
            return False
    return True


def equal(a, b):
    return a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes()


def again(predictions):
    return Predictions.from_csv(
        predictions.to_csv(),
        answers=predictions.answers,
        truths=predictions.truths,
        classes=predictions.classes,
        precision=predictions.precision,
        rows=predictions.rows_csv(),
    )


def in_one_file(predictions):
    """Return the text of ``predictions.csv`` of an earlier version, with the further columns."""
    both = zip(predictions.to_csv().splitlines(), predictions.rows_csv().splitlines(), strict=True)
    return "".join(f"{one},{other}\n" for one, other in both)


def classified(answers, truth, classes, probabilities=None, **more):
    return Predictions(answers, truth, "classes", "classes", classes, probabilities, **more)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_probabilities_keep_their_type(dtype):
    given = np.array([[1e-4, 1 - 1e-4], [0, 1], [1 / 3, 2 / 3]], dtype=dtype)
    made = classified(list("bba"), list("aab"), ("a", "b"), given)
    assert made.precision == made.probabilities.dtype == dtype
    assert same(again(made), made)
    rows = np.array([True, False, True, False, True, False])
    other = classified(list("bba"), list("aab"), ("a", "b"), given.astype(float))
    assert made.merged(other, rows).precision == dtype


@pytest.mark.parametrize("given", [[[0, 1]], np.array([[0, 1]]), np.array([[0, 1]], np.longdouble)])
def test_other_types_of_probabilities_become_float64(given):
    assert classified(["b"], ["a"], ("a", "b"), given).precision == "float64"


def test_classes_come_first_then_predictions_and_truth_and_extras_are_apart():
    made = classified(["no", "yes"], ["no", "no"], ("no", "yes"), [[0.5845, 0.4155], [0.1, 0.9]])
    assert made.to_csv() == ("no,yes,predictions,truth\n0.5845,0.4155,no,no\n0.1,0.9,yes,no\n")
    made = Predictions([241.204, 0.1 + 0.2], [207, 1e-300])
    assert made.to_csv() == "predictions,truth\n241.204,207.0\n0.30000000000000004,1e-300\n"
    extras = {"rank": [1, np.inf], "candidates": [5, 5], "group": ["g", "h"], "question": [3, 9]}
    made = Predictions(["x", ""], ["x", "y"], "items", "items", **extras)
    assert made.to_csv() == "predictions,truth\nx,x\n,y\n"
    assert made.rows_csv() == "group,rank,candidates,question\ng,1.0,5,3\nh,inf,5,9\n"
    assert same(again(made), made)
    # files of earlier versions
    old = in_one_file(made)
    assert old.startswith("predictions,truth,group,rank,candidates,question\nx,x,g,1.0,5,3\n")
    assert same(Predictions.from_csv(old, answers="items", truths="items"), made)


def test_columns_of_classes_are_in_alphabetical_order_whatever_their_case():
    """Else readers of the AutoML Benchmark give the probabilities to other classes."""
    made = classified(["B", "a"], ["B", "c"], ("B", "a", "c"), [[0.5, 0.25, 0.25], [0, 1, 0]])
    text = made.to_csv()
    assert text == "a,B,c,predictions,truth\n0.25,0.5,0.25,B,B\n1.0,0.0,0.0,a,c\n"
    assert same(again(made), made)
    earlier = "B,a,c,predictions,truth\n0.5,0.25,0.25,B,B\n0.0,1.0,0.0,a,c\n"
    facts = {"answers": "classes", "truths": "classes", "classes": made.classes}
    assert same(Predictions.from_csv(earlier, **facts), made)


def test_further_columns_of_another_number_of_rows_are_refused():
    made = Predictions([1.0, 2.0], [1.0, 3.0], key=["a", "b"])
    assert set(made.files()) == {"predictions.csv", "rows.csv"}
    assert set(Predictions([1.0], [1.0]).files()) == {"predictions.csv"}
    with pytest.raises(DataError, match="rows.csv has 1 rows for 2"):
        Predictions.from_csv(made.to_csv(), answers="numbers", truths="numbers", rows="key\na\n")


def test_pandas_reads_the_file_too():
    labels = ['a"b', "c,d", "e\nf", "g\rh"]
    made = classified(labels, labels, sorted(labels), np.eye(4))
    frame = pd.read_csv(io.StringIO(made.to_csv(), newline=""), lineterminator="\n")
    assert frame["truth"].tolist() == labels
    assert list(frame.columns) == [*sorted(labels), "predictions", "truth"]


def test_files_of_the_automl_benchmark_can_be_read():
    text = (
        "ale,lager,stout,predictions,truth\n0.8125,0.125,0.0625,ale,ale\n0.0,1.0,0.0,lager,stout\n"
    )
    read = Predictions.from_csv(text, answers="classes", truths="classes")
    assert read.classes == ("ale", "lager", "stout")
    assert read.probabilities.tolist() == [[0.8125, 0.125, 0.0625], [0, 1, 0]]
    assert read.target.tolist() == ["ale", "stout"]
    assert read.to_csv() == text


labels = st.one_of(
    st.text(max_size=8),
    st.text(alphabet='\r\n",\0 \tné', max_size=5),
    st.sampled_from(["NA", "nan", "", "truth", "predictions", "group", "True", "0", " x ", "a,b"]),
)
doubles = st.floats(allow_nan=False)
EDGES = [1e-4, np.nextafter(1e-4, 0), 1e16, np.nextafter(1e16, 0), 0.0, -0.0, np.inf, np.nan, 1e22]


@steady
@given(st.lists(labels, min_size=2, max_size=4, unique=True), st.data())
def test_labels_and_probabilities_come_back_exactly(classes, data):
    count = data.draw(st.integers(1, 5))
    rows = st.lists(st.sampled_from(classes), min_size=count, max_size=count)
    row = st.lists(doubles, min_size=len(classes), max_size=len(classes))
    chances = data.draw(st.lists(row, min_size=count, max_size=count))
    group = data.draw(st.lists(labels, min_size=count, max_size=count))
    made = classified(data.draw(rows), data.draw(rows), classes, chances, group=group)
    assert same(again(made), made)


@steady
@example([*EDGES, *(-edge for edge in EDGES)])
@given(st.lists(st.one_of(doubles, st.floats(-1e17, 1e17), st.floats(0, 1), st.floats(width=32))))
def test_numbers_are_written_as_python_writes_them_and_come_back(values):
    made = Predictions(values, values[::-1])
    pairs = zip(values, values[::-1], strict=True)
    lines = [f"{float(one)!r},{float(other)!r}" for one, other in pairs]
    assert made.to_csv() == "\n".join(["predictions,truth", *lines, ""])
    assert np.isnan(values).any() or same(again(made), made)  # the sign of NaN is lost


@steady
@given(st.lists(st.tuples(labels, labels, st.integers(1, 10**6)), min_size=1, max_size=6))
def test_items_and_ranks_come_back(rows):
    answers, truth, rank = zip(*rows, strict=True)
    extras = {"candidates": [10**6] * len(rows), "question": np.arange(len(rows))}
    made = Predictions(answers, truth, "items", "items", rank=rank, **extras)
    assert same(again(made), made)


def test_scores_about_classes_and_clusters_come_back_with_the_classes_of_the_metadata():
    made = Predictions([0.1, 0.9], ["no", "yes"], "numbers", "classes", ("no", "yes"))
    assert made.to_csv().startswith("predictions,truth\n")
    assert same(again(made), made)
    made = Predictions([0, 2, -1], ["a", "b", "a"], "clusters", "classes", ("a", "b"))
    assert same(again(made), made)


@pytest.mark.parametrize(
    "names", [("predictions", "truth"), ("truth", "predictions"), ("group", "rank", "truth")]
)
def test_a_class_may_have_the_name_of_a_column(names):
    made = classified(
        names, names[::-1], sorted(names), np.eye(len(names)), group=["g"] * len(names)
    )
    assert same(again(made), made)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "is empty"),
        ("a,b\n1,2\n", '"predictions" and "truth"'),
        ("truth,predictions\n1,2\n", "columns"),
        ("predictions,truth\n1,2\n3\n", "row 2 has 1 cells, the header has 2"),
        ('predictions,truth\n"1,2\n', "is damaged"),
    ],
)
def test_damaged_files(text, word):
    with pytest.raises(DataError, match=word):
        Predictions.from_csv(text, answers="numbers", truths="numbers")


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (np.array([True, False]), ["True", "False"]),
        (np.array([1, 2]), ["1", "2"]),
        ([1, "1", 1.0, None], ["1", "1", "1.0", "None"]),
        (["a\0", "b"], ["a\0", "b"]),
        (np.array(["NA", "x y"], dtype=object), ["NA", "x y"]),
        (pd.Series(["a", "b"], dtype="category"), ["a", "b"]),
        (pd.Index(["a"]), ["a"]),
        ((), []),
    ],
)
def test_labels_become_text_and_nothing_else(values, texts):
    assert as_text(values).tolist() == texts
    assert as_text(values).dtype == object


@pytest.mark.parametrize(
    ("made", "word"),
    [
        (lambda: Predictions([1, 2], [1]), "2 predictions"),
        (lambda: Predictions(["x"], [1]), "predictions must be numbers"),
        (lambda: Predictions([[1.0]], [1]), "predictions .*2"),
        (lambda: Predictions(["a"], ["a"], "labels"), '"labels"'),
        (lambda: Predictions([1], [1], "numbers", "clusters"), '"clusters"'),
        (lambda: classified([["a"]], ["a"], ("a",)), "labels .*2"),
        (lambda: classified(["a"], ["a"], ("a", "b"), [[1.0]]), "probabilities"),
        (lambda: classified(["a"], ["a"], ("a",), ["x"]), "probabilities must be numbers"),
        (lambda: Predictions([1], [1], rank=[1, 2]), "rank"),
        (lambda: Predictions([1], [1], group=[]), "group"),
    ],
)
def test_invalid_predictions(made, word):
    with pytest.raises(ContractError, match=word):
        made()


def test_take_and_merged_are_each_others_reverse():
    rng = np.random.default_rng(0)
    whole = classified(
        list("abab"), list("aabb"), ("a", "b"), rng.dirichlet([1, 1], 4), group=list("gghh")
    )
    own = np.array([True, False, False, True])
    one, two = whole.take(np.flatnonzero(own)), whole.take(np.flatnonzero(~own))
    assert one.target.tolist() == ["a", "b"]
    assert len(two) == 2
    assert same(one.merged(two, own), whole)


def test_merged_refuses_what_only_one_side_has():
    one, two = Predictions([1], [1], group=["g"]), Predictions([2], [2])
    for a, b in ((one, two), (two, one)):
        with pytest.raises(ContractError, match="group"):
            a.merged(b, np.array([True, False]))


def test_keys_of_items_are_text_and_optional():
    made = Predictions([1.0, 2.0], [1.0, 3.0], key=["a,b", "007"])
    kinds = {"answers": "numbers", "truths": "numbers"}
    again = Predictions.from_csv(made.to_csv(), **kinds, rows=made.rows_csv())
    assert again.key.tolist() == ["a,b", "007"]
    assert again.take(np.array([1])).key.tolist() == ["007"]
    assert Predictions.from_csv("predictions,truth\n1.0,1.0\n", **kinds).key is None


def test_an_unknown_precision_is_refused():
    text = "a,b,predictions,truth\n0.5,0.5,a,b\n"
    for precision in ("int8", "text", None, ["float32"]):
        with pytest.raises(DataError, match="precision"):
            Predictions.from_csv(text, answers="classes", truths="classes", precision=precision)


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "uint64"])
def test_whole_numbers_become_text_one_by_one(dtype):
    signed = [-3] if dtype.startswith("i") else []
    numbers = [*signed, 5, 5, 0, 127, *range(100), *range(100)]
    for values in (numbers, numbers[:3], []):
        assert as_text(np.array(values, dtype=dtype)).tolist() == [str(v) for v in values]


PLAIN_CELLS = st.text(st.characters(exclude_characters='",\r\n', codec="utf-8"), max_size=4)


@steady
@given(st.lists(st.tuples(PLAIN_CELLS, PLAIN_CELLS, PLAIN_CELLS), min_size=1, max_size=6))
def test_a_file_without_quotes_is_read_as_the_csv_module_reads_it(rows):
    text = "".join(f"{','.join(row)}\n" for row in rows)
    header, columns = _plain_columns(text)
    assert [header, *zip(*(column.tolist() for column in columns), strict=True)] == [
        list(rows[0]),
        *rows[1:],
    ]


@pytest.mark.parametrize(
    "text", ["", "a,b", "a,b\n1\n", "a,b\n1,2,3\n", "a,b\n1\n2,3,4\n", 'a,b\n"1",2\n', "a\n\n1\n"]
)
def test_files_with_quotes_or_other_widths_are_not_plain(text):
    assert _plain_columns(text) is None


def test_rows_that_are_taken_keep_what_is_known_about_them(monkeypatch):
    labels = np.array(["a", "b", "b", "c"], dtype=object)
    whole = Predictions(labels[::-1], labels, "classes", "classes", classes=("c", "b", "a"))
    whole.row_facts["rank"] = np.array([3, 1, 2, 0])
    assert (whole.labels, whole.true_codes.tolist()) == (("c", "b", "a"), [2, 1, 1, 0])
    monkeypatch.setattr(Predictions, "_codes", None)  # is not asked again
    taken = whole.take(np.array([3, 0]))
    assert (taken.labels, taken.true_codes.tolist()) == (("c", "b", "a"), [0, 2])
    assert taken.row_facts["rank"].tolist() == [0, 3]


def test_labels_that_occur_in_some_rows_only_are_found_again():
    labels = np.array(["a", "b", "c"], dtype=object)
    whole = Predictions(labels, labels, "classes", "classes", classes=("a",))
    assert (whole.labels, whole.true_codes.tolist()) == (("a", "b", "c"), [0, 1, 2])
    taken = whole.take(np.array([2]))
    assert (taken.labels, taken.true_codes.tolist()) == (("a", "c"), [1])
    numbers = Predictions(np.arange(3.0), np.array([0.0, 1.0, 2.0]))
    assert numbers.labels == ()
    assert numbers.take(np.array([0, 1])).labels == ("0", "1")
