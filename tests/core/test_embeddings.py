"""Vectors: rows of NaN, bags, wrong encoder output, and hidden targets."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from karat.core import embeddings
from karat.core.dataset import Dataset
from karat.core.embeddings import (
    CHUNK,
    Vectors,
    check_vectors,
    distinct_texts,
    embed,
    encode,
    fit_embed,
    item_vectors,
)
from karat.errors import ContractError
from karat.execution.splits import split

NAN = np.nan
#: w and y are known, x is not; z is known
MATRIX = np.array([[1, 2], [NAN, NAN], [5, 6], [7, 9]], dtype=np.float32)


def bags(**given):
    made = {
        "name": "docs",
        "items": pd.Series(list("WXYZ"), index=list("wxyz")),
        "questions": pd.DataFrame(
            {
                "one": [{"w": 1.0, "y": 3.0}, {"w": 5.0, "x": 1.0}, {"x": 2.0}, {"z": 2.0}],
                "two": ["z", "w", "w", "x"],
            }
        ),
        "target": np.arange(4.0),
        "kind": "regression",
        "modality": "entity",
    }
    return Dataset(**{**made, **given})


def table(labels, **given):
    frame = pd.DataFrame({"x": np.arange(float(len(labels))), "y": labels})
    return Dataset.from_table(frame, "y", kind="classification", name="toy", **given)


def test_vectors_are_found_by_the_position_of_the_item():
    vectors = Vectors(MATRIX[[0, 2]], np.array([10, 20]))
    assert vectors.at(np.array([20, 10, 20])).tolist() == [[5, 6], [1, 2], [5, 6]]
    for position in (-1, 0, 15, 21, 99):
        for look in (vectors.at, vectors.known):
            with pytest.raises(KeyError, match=f"{position}"):
                look(np.array([10, position]))
    whole = Vectors(MATRIX, np.arange(4))
    known = whole.known(np.array([1, 0, 3]))
    assert known.tolist() == [False, True, True]  # a row of NaN is an item without a vector
    for position in (-1, 4):
        with pytest.raises(KeyError, match=f"{position}"):
            whole.at(np.array([0, position]))


def test_a_bag_is_the_weighted_mean_of_its_items_with_vectors(tmp_path):
    np.save(tmp_path / "v.npy", MATRIX)
    mapped = Vectors(np.load(tmp_path / "v.npy", mmap_mode="r"), np.arange(4))
    assert type(mapped.at(np.array([0]))) is np.ndarray
    for vectors in (Vectors(MATRIX, np.arange(4)), mapped):
        found = vectors.of(bags(), "one")
        assert found[:2].tolist() == [[4, 5], [1, 2]]  # (1·w + 3·y) / 4, and w alone
        assert np.isnan(found[2]).all()
        assert found[3].tolist() == [7, 9]
        found = vectors.of(bags(), "two")  # plain fields are looked up without means
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, MATRIX[[3, 0, 0, 1]])


def test_a_question_is_answerable_if_each_field_has_an_item_with_a_vector():
    vectors = Vectors(MATRIX, np.arange(4))
    assert vectors.answerable(bags()).tolist() == [True, True, False, False]
    assert vectors.answerable(bags().take(np.array([3, 0]))).tolist() == [False, True]
    assert vectors.answerable(bags().take(np.array([], dtype=int))).tolist() == []


class Tensor:
    """What a torch tensor offers, without torch."""

    def __init__(self, values, dtype="torch.float32"):
        self.values, self.dtype = np.asarray(values, dtype=np.float32), dtype

    def detach(self):
        return self

    cpu = detach

    def float(self):
        return Tensor(self.values)

    def numpy(self):
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.values


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([[1, 2], [3, 4]], "float32"),
        (np.array([[1, 2], [3, 4]]), "float32"),
        (np.array([[1, 2], [3, 4]], dtype=np.float16), "float32"),
        (np.array([[1, 2], [3, 4]], dtype=object), "float32"),
        (np.array([[1, 2], [3, 4]], dtype=np.float64, order="F"), "float64"),
        (pd.DataFrame({"a": [1, 3], "b": [2.0, 4.0]}), "float64"),
        (pd.DataFrame({"a": [1, 3], "b": [2, 4]}, dtype="Int64"), "float32"),
        (sparse.csr_matrix([[1.0, 2.0], [3.0, 4.0]]), "float64"),
        (sparse.coo_array(np.array([[1, 2], [3, 4]])), "float32"),
        (Tensor([[1, 2], [3, 4]]), "float32"),
        (Tensor([[1, 2], [3, 4]], "torch.bfloat16"), "float32"),
        ([np.array([1.0, 2.0]), np.array([3.0, 4.0])], "float64"),
    ],
)
def test_numbers_of_any_type_become_a_matrix(values, dtype):
    matrix = check_vectors(values, 2, "mine")
    assert matrix.tolist() == [[1, 2], [3, 4]]
    assert matrix.dtype == dtype
    assert matrix.flags.c_contiguous


def test_truth_values_are_numbers_and_whole_rows_of_nan_are_fine():
    assert check_vectors(np.array([[True, False]]), 1, "mine").tolist() == [[1, 0]]
    np.testing.assert_array_equal(check_vectors(MATRIX, 4, "mine"), MATRIX)
    hidden = np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 0], [1, 1]])
    np.testing.assert_array_equal(check_vectors(hidden, 2, "mine"), [[1, 2], [NAN, NAN]])


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ([[1.0, NAN]], r"NaN.*row 0: 1 of 2"),
        ([[1.0, np.inf]], r"infinite.*row 0"),
        ([[NAN, -np.inf]], "infinite"),
        ([[1.0], [2.0]], "2 rows for 1 items"),
        (np.empty((0, 3)), "0 rows for 1 items"),
        ([1.0], "1 dimensions"),
        ([[[1.0]]], "3 dimensions"),
        (np.empty((1, 0)), "length 0"),
        ([["a"]], "numbers"),
        ([["1", "2"]], "numbers"),
        (np.array([["1", 2]], dtype=object), "numbers.*text"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "numbers"),
        (np.array([[1 + 2j]]), "numbers"),
        (None, "matrix"),
        ({"a": 1}, "numbers"),
        ([[1.0], [1.0, 2.0]], "numbers"),
        (pd.DataFrame({"a": ["x"]}), "numbers"),
        (1e300 * np.ones((1, 1), dtype=np.longdouble), "infinite"),
    ],
)
def test_wrong_encoder_output_is_an_error(values, word):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # overflow of 1e300
        with pytest.raises(ContractError, match=f"^mine.transform.*{word}"):
            check_vectors(values, 1, "mine.transform")


def test_a_sparse_matrix_too_large_to_be_dense_is_an_error(monkeypatch):
    monkeypatch.setattr(embeddings, "DENSE_LIMIT", 1000)
    with pytest.raises(ContractError, match="10 × 100"):
        check_vectors(sparse.csr_matrix((10, 100)), 10, "mine")


class Spy:
    """An encoder that writes down what it was shown."""

    def __init__(self, width=1):
        self.width = width
        self.shown = []

    def fit(self, items, y=None):
        self.shown.append((list(items.index), None if y is None else list(y)))
        return self

    def transform(self, items):
        return np.ones((len(items), self.width))


class OneStep(Spy):
    def fit_transform(self, items, y=None):
        self.fit(items, y)
        return np.full((len(items), 1), 2.0)


@pytest.mark.parametrize(("encoder", "value"), [(Spy(), 1.0), (OneStep(), 2.0)])
def test_an_encoder_is_fitted_on_the_train_items_with_their_targets(encoder, value):
    train = table(list("abab")).take(np.array([3, 0]))
    vectors = fit_embed(encoder, train, "spy")
    assert encoder.shown == [([0, 3], ["a", "b"])]
    assert vectors.rows.tolist() == [0, 3]
    assert vectors.matrix.tolist() == [[value], [value]]


def test_encoders_do_not_see_hidden_targets():
    data = table(list("abab"))
    (fold,) = split(data, {"use": "all"}, 0)
    assert set(fold.train) & set(fold.test)
    for encoder in (Spy(), OneStep()):
        fit_embed(encoder, data.take(fold.train).blind(), "spy")
        assert encoder.shown == [([0, 1, 2, 3], None)]


def test_an_item_has_a_target_if_its_questions_agree():
    frame = pd.DataFrame({"t": ["p", "q", "p"], "y": ["a", "b", "a"]})
    pairs = pd.DataFrame({"s": list("pq"), "t": list("rs"), "y": ["a", "b"]})
    for data, targets in (
        (Dataset.from_columns(frame, ["t"], "y"), ["a", "b"]),
        (Dataset.from_columns(frame.assign(y=list("abb")), ["t"], "y"), None),
        (Dataset.from_columns(pairs, ["s", "t"], "y"), None),
        (Dataset.from_columns(pairs, ["s"], "t", kind="items"), None),
        (bags(questions=bags().questions[["one"]]), None),
    ):
        spy = Spy()
        fit_embed(spy, data, "spy")
        assert spy.shown[0][1] == targets


def test_a_stateless_encoder_needs_no_fit():
    class Plain:
        def transform(self, items):
            return [[value] for value in items["x"]]

    vectors = fit_embed(Plain(), table(list("ab")), "plain")
    assert vectors.matrix.tolist() == [[0], [1]]


def test_test_vectors_must_be_as_wide_as_train_vectors():
    data = table(list("abab"))
    assert embed(Spy(2), data, "spy", 2).matrix.shape == (4, 2)
    with pytest.raises(ContractError, match="2 dim.* 3 "):
        embed(Spy(2), data, "spy", 3)


class Lengths:
    """Gives each text its length and its number of blanks; notes what it was asked."""

    by_text = ("text",)

    def __init__(self, answer=None, chunk=CHUNK):
        self.answer = answer
        self.chunk = chunk
        self.asked = []

    def encode(self, texts):
        self.asked.append(list(texts))
        if self.answer is not None:
            return self.answer(texts)
        return np.array([[len(text), text.count(" ")] for text in texts], dtype=np.float16)


def texts(*cells):
    items = pd.Series(cells, dtype=object)
    return Dataset(
        "texts", items, pd.DataFrame({"item": items.index}), np.arange(len(cells)) % 2.0,
        "regression", "text",
    )  # fmt: skip


def test_texts_are_encoded_once_in_chunks_the_longest_first():
    encoder, heard = Lengths(chunk=2), []
    found = encode(encoder, ["a", "bbb", "cc", "d d d"], "mine", heard.append)
    assert encoder.asked == [["d d d", "bbb"], ["cc", "a"]]
    assert found.tolist() == [[1, 0], [3, 0], [2, 0], [5, 2]]
    assert found.dtype == np.float32
    assert heard == [2, 4]


def test_an_encoder_without_chunks_or_without_texts():
    encoder = Lengths(chunk=None)
    encode(encoder, ["a", "bbb", "cc"], "mine")
    assert encoder.asked == [["a", "bbb", "cc"]]
    encoder = Lengths()
    assert encode(encoder, [], "mine").shape[0] == 0
    assert encoder.asked == []


def test_equal_items_share_a_vector_and_a_missing_text_has_none():
    encoder = Lengths()
    found = embed(encoder, texts("bb", "", None, "bb", 7, np.nan), "mine")
    assert encoder.asked == [["bb", "7", ""]]
    expected = [[2, 0], [0, 0], [NAN, NAN], [2, 0], [1, 0], [NAN, NAN]]
    np.testing.assert_array_equal(found.matrix, expected)
    codes, known = distinct_texts(pd.Series([None, None], dtype=object))
    assert known == [] and np.isnan(item_vectors(encode(encoder, known, "mine"), codes)).all()


@pytest.mark.parametrize(
    "answer",
    [
        lambda rows: rows.astype(np.float64),
        lambda rows: tuple(map(tuple, rows)),
        lambda rows: [Tensor(row) for row in rows],
        lambda rows: sparse.csr_matrix(rows.astype(float)),
        lambda rows: pd.DataFrame(rows),
    ],
)
def test_numbers_in_any_shape_become_32_bits(answer):
    plain = Lengths()
    found = encode(Lengths(lambda some: answer(plain.encode(some))), ["a b", "cc"], "mine")
    assert found.dtype == np.float32
    assert found.tolist() == [[3, 1], [2, 0]]


@pytest.mark.parametrize(
    "answer, word",
    [
        (lambda t: [[1, NAN]] * len(t), r'NaN.*"a b": 1 of 2'),
        (lambda t: [[1, np.inf]] * len(t), r'infinite.*"a b"'),
        (lambda t: np.full((len(t), 2), 1e300), "infinite"),
        (lambda t: [[1.0]], "1 rows for 2 items"),
        (lambda t: np.ones((len(t), len(t))), "2 dimensions"),
    ],
)
def test_wrong_output_of_a_text_encoder_is_an_error(answer, word):
    with pytest.raises(ContractError, match=word):
        encode(Lengths(answer, chunk=2), ["a b", "cc", "d"][: 3 if "dim" in word else 2], "mine")


class Reordered:
    """Returns a frame whose rows are in another order, or have another index."""

    def __init__(self, change):
        self.change = change

    def fit(self, items, y=None):
        return self

    def transform(self, items):
        return self.change(items[["x"]])


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.iloc[::-1],
        lambda frame: frame.sort_values("x", ascending=False),
        lambda frame: frame.reset_index(drop=True),
    ],
)
def test_the_rows_of_a_frame_are_matched_by_its_index(change):
    data = table(list("abab")).take(np.array([1, 2, 3]))
    for vectors in (
        fit_embed(Reordered(change), data, "mine"),
        embed(Reordered(change), data, "mine"),
    ):
        assert vectors.matrix.tolist() == [[1.0], [2.0], [3.0]]


def test_a_frame_with_another_index_is_refused():
    data = table(list("abab")).take(np.array([1, 2, 3]))
    for index in ([7, 8, 9], [1, 1, 2], ["a", "b", "c"]):
        encoder = Reordered(lambda frame, index=index: frame.set_axis(index))
        with pytest.raises(ContractError, match="index"):
            embed(encoder, data, "mine")


# -- roles ----------------------------------------------------------------------------------


class Prompted:
    """Vectors that depend on the prompt: its length, and the length of the text."""

    by_text = ("text",)
    uses_roles = True

    def __init__(self, prompts):
        self.prompts, self.calls = prompts, []

    def prompt_for(self, role):
        return self.prompts.get(role, "")

    def encode(self, texts, role=""):
        self.calls.append((role, sorted(texts)))
        return np.array([[len(self.prompt_for(role)), len(text)] for text in texts])


def searched(roles, answers=("d1", "d2")):
    texts = pd.Series({"q1": "apple", "q2": "pear", "d1": "apple pie", "d2": "pear", "d3": "stone"})
    questions = pd.DataFrame({"query": ["q1", "q2"]})
    target = np.array(answers, dtype=object)
    return Dataset("s", texts, questions, target, "items", "text", roles=roles)


def test_each_text_is_encoded_in_its_role():
    encoder = Prompted({"query": "q: ", "document": "passage: "})
    vectors = embed(encoder, searched(("query",)), "m")
    assert encoder.calls == [
        ("query", ["apple", "pear"]),
        ("document", ["apple pie", "pear", "stone"]),
    ]
    assert vectors.matrix.tolist() == [[3, 5], [3, 4], [9, 9], [9, 4], [9, 5]]


def test_an_item_in_both_roles_has_two_vectors():
    encoder = Prompted({"query": "q: "})
    data = searched(("query",), ("q2", "d2"))
    vectors = embed(encoder, data, "m")
    assert vectors.at(np.array([0, 1, 2])).tolist() == [[3, 5], [0, 4], [0, 9]]
    assert vectors.at(np.array([0, 1, 2]), query=True).tolist() == [[3, 5], [3, 4], [0, 9]]
    assert vectors.of(data, "query").tolist() == [[3, 5], [3, 4]]
    assert vectors.known(np.arange(5)).all()


def test_with_one_prompt_for_all_roles_each_text_is_encoded_once():
    encoder = Prompted({"query": "x", "document": "x"})
    embed(encoder, searched(("query",), ("q2", "d2")), "m")
    (call,) = encoder.calls
    assert call[1] == ["apple", "apple pie", "pear", "stone"]


def test_without_roles_none_is_passed():
    encoder = Prompted({"query": "q: "})
    embed(encoder, searched(()), "m")
    assert [role for role, _ in encoder.calls] == [""]


def test_roles_of_different_widths_are_refused():
    encoder = Prompted({"query": "q: "})
    encoder.encode = lambda texts, role="": np.ones((len(texts), 2 + (role == "query")))
    with pytest.raises(ContractError, match="2 and 3 dimensions"):
        embed(encoder, searched(("query",)), "m")


def test_items_with_one_text_each_share_the_matrix_of_the_texts():
    matrix = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert item_vectors(matrix, np.array([0, 1, 2])) is matrix
    assert item_vectors(matrix, np.array([2, 0, 0])).tolist() == [[4, 5], [0, 1], [0, 1]]
    assert np.isnan(item_vectors(matrix, np.array([0, 1, -1]))[2]).all()
    assert matrix.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_a_vector_of_an_item_that_was_not_embedded_is_an_error():
    some = Vectors(np.eye(2, dtype=np.float32), np.array([1, 4]))
    assert some.at(np.array([4, 1])).tolist() == [[0, 1], [1, 0]]
    for lost in (0, 2, 5):
        with pytest.raises(KeyError, match=str(lost)):
            some.at(np.array([1, lost]))
    with pytest.raises(KeyError):
        Vectors(np.empty((0, 2)), np.array([], dtype=int)).at(np.array([0]))
