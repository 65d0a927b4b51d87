"""Dataset: created from tables and columns, checked, divided, sampled and hashed."""

import pickle
import warnings
from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.core.dataset import Dataset, sample_rows
from karat.errors import DataError

TABLE = pd.DataFrame(
    {
        "age": [31, 45, 22, 60],
        "city": ["Rome", "Oslo", "Rome", "Bonn"],
        "who": ["p", "p", "q", "q"],
        "side": ["train", "train", "test", "test"],
        "churn": ["yes", "no", "no", "yes"],
    }
)
PAIRS = pd.DataFrame(
    {"a": ["hi", "yes", "hi"], "b": ["hello", "no", "yes"], "score": [0.9, 0.1, 0.4]}
)


def entities(**given):
    """Three questions about bags of four entities."""
    made = {
        "name": "docs",
        "items": pd.Series(["W", "X", "Y", "Z"], index=["w", "x", "y", "z"]),
        "questions": pd.DataFrame(
            {
                "one": [{"w": 1.0, "x": 3.0}, {"y": 1.0}, {"z": 2.0, "w": 2.0}],
                "two": ["z", "z", "x"],
            }
        ),
        "target": np.array([1.0, 2.0, 3.0]),
        "kind": "regression",
        "modality": "entity",
    }
    return Dataset(**{**made, **given})


def test_a_table_is_one_question_per_row():
    given = {"group": "who", "part": "side", "drop": ["city"], "about": {"by": "us"}}
    data = Dataset.from_table(TABLE.set_axis([9, 9, 3, 3]), "churn", name="churn", **given)
    assert len(data) == 4
    assert data.items.index.tolist() == [0, 1, 2, 3]
    assert list(data.items.columns) == ["age"]
    asked = Dataset.from_table(TABLE, "churn", group="who", group_feature=True, drop=["city"])
    assert list(asked.items.columns) == ["age", "who", "side"]
    assert data.target.tolist() == ["yes", "no", "no", "yes"]
    assert data.classes == ("no", "yes")
    assert (data.kind, data.modality, data.fields) == ("classification", "table", ["row"])
    assert data.group.tolist() == ["p", "p", "q", "q"]
    assert data.part.tolist() == ["train", "train", "test", "test"]
    assert data.about == {"by": "us"}
    assert repr(data) == "<Dataset churn: 4 rows, 1 feature, 2 classes>"


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["Yes", "yes", "YES"], ("YES", "Yes", "yes")),
        (["NA", "nan", "None"], ("NA", "None", "nan")),
        ([" a", "a", "a,b"], (" a", "a", "a,b")),
        ([10, 9, 9], (10, 9)),
        ([True, False, True], (False, True)),
        (["truth", "predictions", "truth"], ("predictions", "truth")),
        ([1, "a", 2.5], ("1", "2.5", "a")),
    ],
)
def test_labels_survive(labels, classes):
    table = pd.DataFrame({"x": [1, 2, 3], "y": pd.Series(labels, dtype=object)})
    data = Dataset.from_table(table, "y", kind="classification")
    assert data.classes == classes
    assert [str(label) for label in data.target.tolist()] == [str(label) for label in labels]


@pytest.mark.parametrize(
    ("table", "given", "word"),
    [
        (TABLE, {"target": "churnn"}, '"churnn" is not a column. Did you mean "churn"?'),
        (TABLE, {"target": "churn", "group": "whom"}, 'not a column. Did you mean "who"?'),
        (TABLE, {"target": "churn", "drop": ["x"]}, '"x" is not a column'),
        (TABLE, {"target": "churn", "part": "city"}, '"Bonn"'),
        (TABLE[["churn"]], {"target": "churn"}, "column other"),
        (TABLE[:0], {"target": "churn"}, "is empty: 0 rows, 5 columns"),
        (TABLE[:1], {"target": "churn"}, 'only one class, "yes"'),
        (TABLE.assign(churn=None), {"target": "churn"}, "missing in 4 of 4 rows"),
        (TABLE.assign(who=None), {"target": "churn", "group": "who"}, "group of row 0"),
        (TABLE, {"target": "churn", "kind": "regression"}, '"yes"'),
        (TABLE, {"target": "churn", "kind": "classificaton"}, 'Did you mean "classification"?'),
        (pd.concat([TABLE, TABLE], axis=1), {"target": "churn"}, 'duplicate column "age"'),
    ],
)
def test_invalid_tables(table, given, word):
    with pytest.raises(DataError) as caught:
        Dataset.from_table(table, **given, name="toy")
    assert word in str(caught.value)
    assert str(caught.value).startswith("toy")


LABELS = pd.DataFrame({"x": [1, 2, 3, 4], "y": ["no", "churned", "no", "churned"]})


def test_the_positive_class_can_be_chosen():
    assert Dataset.from_table(LABELS, "y").positive == "no"
    data = Dataset.from_table(LABELS, "y", positive="churned")
    assert data.classes == ("no", "churned") and data.positive == "churned"
    assert data.take(np.array([0])).positive == "churned"
    assert data.fingerprint != Dataset.from_table(LABELS, "y").fingerprint
    texts = LABELS.assign(x=list("abcd"))
    assert Dataset.from_columns(texts, ["x"], "y", positive="churned").positive == "churned"


@pytest.mark.parametrize(
    ("labels", "positive", "classes"),
    [
        ([0, 1], 0, (1, 0)),
        ([0, 1], "0", (1, 0)),
        (["true", "false"], False, ("true", "false")),
        ([1.0, 2.0], 1, (2.0, 1.0)),
    ],
)
def test_a_positive_class_is_found_by_its_text_or_value(labels, positive, classes):
    table = pd.DataFrame({"x": [1, 2], "y": labels})
    data = Dataset.from_table(table, "y", kind="classification", positive=positive)
    assert data.classes == classes


def test_a_positive_class_needs_two_classes_of_which_it_is_one():
    with pytest.raises(DataError, match='"churned"'):
        Dataset.from_table(LABELS, "y", positive="churnd")
    with pytest.raises(DataError):
        Dataset.from_table(LABELS.assign(y=list("abca")), "y", positive="a")
    with pytest.raises(DataError):
        Dataset.from_table(LABELS.assign(y=[0.1, 0.2, 0.3, 0.4]), "y", positive="a")


def test_the_order_of_an_ordered_categorical_target_is_kept():
    order = pd.CategoricalDtype(["small", "never", "big"], ordered=True)
    table = pd.DataFrame({"x": [1, 2], "y": pd.Series(["big", "small"], dtype=order)})
    assert Dataset.from_table(table, "y").classes == ("small", "big")
    plain = table.assign(y=table["y"].astype(str).astype("category"))
    assert Dataset.from_table(plain, "y").classes == ("big", "small")


def test_a_target_of_numbers_as_text_is_not_hundreds_of_classes():
    table = pd.DataFrame({"x": range(40), "y": [f"{i}.5" for i in range(40)]})
    with pytest.warns(UserWarning, match="regression"):
        data = Dataset.from_table(table, "y")
    assert data.kind == "regression" and data.target[:2].tolist() == [0.5, 1.5]
    with pytest.warns(UserWarning, match="regression"):
        assert (
            Dataset.from_table(table.assign(y=table["y"].str.replace(".", ",")), "y").target[1]
            == 1.5
        )
    with pytest.warns(UserWarning, match='"unknown"'):
        mostly = Dataset.from_table(table.assign(y=["unknown", *table["y"][1:]]), "y")
    assert len(mostly.classes) == 40
    labels = Dataset.from_table(table.assign(y=["01", "02"] * 20), "y")
    assert labels.classes == ("01", "02")
    assert len(Dataset.from_table(table, "y", kind="classification").classes) == 40


def test_a_target_can_be_values():
    table = LABELS[["x"]]
    for target in (LABELS["y"], LABELS["y"].to_numpy(), LABELS["y"].tolist(), LABELS[["y"]]):
        data = Dataset.from_table(table, target)
        assert data.target.tolist() == LABELS["y"].tolist()
        assert list(data.items.columns) == ["x"]
    permuted = Dataset.from_table(table, LABELS["y"].iloc[[1, 0, 3, 2]])
    assert permuted.target.tolist() == LABELS["y"].tolist()


def test_target_values_that_do_not_fit_the_table_are_refused():
    table = LABELS[["x"]]
    with pytest.raises(DataError, match="index"):
        Dataset.from_table(table, LABELS["y"].set_axis([5, 6, 7, 8]))
    with pytest.raises(DataError, match="3 values for 4 rows"):
        Dataset.from_table(table, ["a", "b", "a"])
    with pytest.raises(DataError, match='"y"'):
        Dataset.from_table(LABELS, LABELS["y"])


@pytest.mark.parametrize(
    ("target", "seen"),
    [
        (["y", "z"], "y, z"),
        ("y,z", "y, z"),
        (np.zeros((4, 3)), "3 columns"),
        (pd.Series([["a", "b"], ["a"], [], ["b"]]), "['a', 'b']"),
    ],
)
def test_several_targets_are_refused_by_name(target, seen):
    table = LABELS.assign(z=["a", "b", "a", "b"])
    with pytest.raises(DataError) as caught:
        Dataset.from_table(table, target)
    assert "multi-label" in str(caught.value) and seen in str(caught.value)


DAYS = [date(2024, 1, day) for day in (1, 2, 3, 4)]


class OtherFrame:
    """A data frame of another library, as polars has."""

    columns = ("x", "y")

    def __init__(self, arrow):
        self.arrow = arrow

    def to_pandas(self):
        if not self.arrow:
            raise ModuleNotFoundError("pyarrow is required")
        return LABELS.assign(day=pd.to_datetime(DAYS))

    def to_dict(self, as_series=True):
        return {**LABELS.to_dict("list"), "day": DAYS}


@pytest.mark.parametrize("arrow", [True, False])
def test_data_frames_of_other_libraries_are_converted(arrow):
    data = Dataset.from_table(OtherFrame(arrow), "y")
    assert data.target.tolist() == LABELS["y"].tolist()
    assert data.items["x"].tolist() == [1, 2, 3, 4]
    assert data.items["day"].dtype.kind == "M"


def test_a_path_is_not_a_table():
    with pytest.raises(DataError, match="from_csv"):
        Dataset.from_table("churn.csv", "y")


def test_weights_are_not_a_feature_and_follow_the_rows():
    table = LABELS.assign(w=[1, 2, 3, 4])
    data = Dataset.from_table(table, "y", weight="w")
    assert list(data.items.columns) == ["x"]
    assert data.take(np.array([2, 0])).weight.tolist() == [3.0, 1.0]
    assert data.fingerprint != Dataset.from_table(table, "y", drop=["w"]).fingerprint
    for weights in ([1, -1, 1, 1], [0, 0, 0, 0], [1, 1, 1, "a"], [1, 1, 1, None]):
        with pytest.raises(DataError):
            Dataset.from_table(table.assign(w=weights), "y", weight="w")


def test_the_warning_of_a_guess_points_to_the_caller():
    table = pd.DataFrame({"x": range(40), "text": [f"t{i}" for i in range(40)], "y": [0, 1] * 20})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Dataset.from_table(table, "y")
        Dataset.from_columns(table, ["text"], "y")
    assert [w.filename for w in caught] == [__file__, __file__]


def test_each_distinct_text_is_one_item_and_entities_keep_their_ids():
    data = Dataset.from_columns(PAIRS, ["a", "b"], "score", name="pairs")
    assert data.items.tolist() == ["hi", "yes", "hello", "no"]
    assert data.questions.to_dict("list") == {"a": [0, 1, 0], "b": [2, 3, 1]}
    assert data.mentioned().tolist() == [0, 1, 2, 3]
    assert data.take(np.array([1])).mentioned().tolist() == [1, 3]
    assert data.kind == "regression"
    assert Dataset.from_columns(PAIRS, "a", "score").fields == ["a"]  # one field needs no list
    given = {"modality": "entity", "label": str.upper, "kind": "regression"}
    data = Dataset.from_columns(PAIRS, ["a", "b"], "score", **given)
    assert data.items.to_dict() == {"hi": "HI", "yes": "YES", "hello": "HELLO", "no": "NO"}
    assert data.questions["a"].tolist() == ["hi", "yes", "hi"]
    assert data.mentions("b").rows.tolist() == [2, 3, 1]


@pytest.mark.parametrize("modality", ["text", "entity"])
def test_an_answer_may_be_an_item(modality):
    data = Dataset.from_columns(PAIRS, ["a"], "b", kind="items", modality=modality)
    assert sorted(data.items.tolist()) == ["hello", "hi", "no", "yes"]
    assert data.items.loc[data.target].tolist() == ["hello", "no", "yes"]
    # any item may be the answer, so all of them count as mentioned
    assert len(data.take(np.array([0])).mentioned()) == 4


@pytest.mark.parametrize("modality", ["text", "entity"])
def test_a_cell_may_be_a_bag(modality):
    frame = pd.DataFrame({"doc": [{"x": 2.0, "y": 1.0}, {"y": 1.0}], "q": ["y", "z"], "s": [1, 2]})
    data = Dataset.from_columns(frame, ["doc", "q"], "s", kind="regression", modality=modality)
    assert data.items.tolist() == ["x", "y", "z"]
    bags = data.mentions("doc")
    assert bags.rows.tolist() == [0, 1, 1]
    assert bags.offsets.tolist() == [0, 2, 3]
    assert bags.weights.tolist() == [2, 1, 1]
    assert data.mentions("q").rows.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"fields": []}, "the questions have no field"),
        ({"fields": ["a", "a"]}, 'duplicate field "a"'),
        ({"fields": ["a", "c"]}, '"c" is not a column'),
        ({"fields": ["a"], "modality": "texts"}, 'Did you mean "text"?'),
        ({"fields": ["a"], "modality": "table"}, "got a Series"),
        ({"fields": ["gap"]}, 'the column "gap" is missing in 1 rows (first: row 1)'),
    ],
)
def test_invalid_columns(given, word):
    frame = PAIRS.assign(gap=["x", None, "y"])
    with pytest.raises(DataError) as caught:
        Dataset.from_columns(frame, **{"target": "score", "name": "toy", **given})
    assert word in str(caught.value)


def test_bags_can_be_taken_and_blinded():
    data = entities(group=["g", "g", "h"])
    part = data.take(np.array([2, 0]))
    assert part.mentions("one").rows.tolist() == [3, 0, 0, 1]
    assert part.mentions("one").weights.tolist() == [2, 2, 1, 3]
    assert part.target.tolist() == [3, 1]
    assert part.group.tolist() == ["h", "g"]
    assert part.items is data.items
    whole = data.mentions_digest
    assert data.blind().mentions_digest == whole != data.take(np.array([2, 0])).mentions_digest
    assert data.take(np.arange(3)).mentions_digest == whole
    assert data.take(np.array([1])).mentioned().tolist() == [2, 3]
    assert len(data) == 3


def test_a_lookup_miss_raises():
    questions = pd.DataFrame({"one": ["w", "v"], "two": ["x", "y"]})
    with pytest.raises(DataError, match='"one": question 1 .*"v"'):
        entities(questions=questions, target=[1.0, 2.0])
    with pytest.raises(DataError, match='"q"'):
        entities(target=np.array(["w", "q", "x"]), kind="items")


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"target": [1.0]}, "1 values of target for 3 questions"),
        ({"target": [1.0, np.nan, 2.0]}, "missing in 1 of 3 rows"),
        ({"target": ["a", "b", "c"]}, 'numbers, got "a"'),
        ({"group": ["g"]}, "1 values of group"),
        ({"group": ["g", None, "h"]}, "the group of question 1 is missing"),
        ({"part": ["train", "dev", "test"]}, '"dev"'),
        ({"items": pd.Series([1, 2], index=["w", "w"])}, 'duplicate item id "w"'),
        ({"items": pd.DataFrame({"a": [1]})}, "got a DataFrame"),
        ({"questions": pd.DataFrame({"one": []}), "target": None}, "it has no questions"),
        ({"kind": "classification", "target": list("aab"), "classes": ("a", "c")}, 'target "b"'),
    ],
)
def test_invalid_arguments(given, word):
    with pytest.raises(DataError) as caught:
        entities(**given)
    assert word in str(caught.value)


def test_blind_hides_the_truth_and_keeps_the_number_of_classes():
    data = Dataset.from_table(TABLE, "churn")
    blind = data.blind()
    assert blind.target is None and data.target is not None
    assert len(blind.classes) == 2
    assert not any("churn" in str(column) for column in blind.items.columns)
    assert blind.take(np.array([0, 1])).target is None


def test_frame_follows_the_questions():
    data = Dataset.from_table(TABLE, "churn").take(np.array([2, 0]))
    assert data.frame()["age"].tolist() == [22, 31]
    texts = Dataset.from_columns(PAIRS, ["a"], "score")
    assert texts.frame().tolist() == ["hi", "yes", "hi"]
    with pytest.raises(DataError, match="2 fields"):
        Dataset.from_columns(PAIRS, ["a", "b"], "score").frame()
    with pytest.raises(DataError, match="bags"):
        entities(questions=pd.DataFrame({"one": [{"w": 1, "x": 1}, "y", "z"]})).frame()


def test_a_dataset_survives_pickling():
    data = pickle.loads(pickle.dumps(entities()))
    assert data.mentions("one").rows.tolist() == [0, 1, 2, 3, 0]
    assert data.fingerprint == entities().fingerprint


def test_a_sample_is_exact_and_keeps_rare_classes():
    table = pd.DataFrame({"x": range(1000), "y": ["rare"] * 3 + ["common"] * 997})
    data = Dataset.from_table(table, "y")
    for seed in range(5):
        part = data.sample(50, np.random.default_rng(seed))
        assert len(part) == len(part.items) == 50
        assert set(part.target) == {"rare", "common"}
        assert part.classes == data.classes
        # the truth still belongs to its row
        assert ((part.frame()["x"] < 3) == (part.target == "rare")).all()
    assert data.sample(1000, np.random.default_rng(0)) is data


def test_a_sample_takes_whole_groups_and_drops_unused_items():
    frame = pd.DataFrame({"t": [f"t{i}" for i in range(30)], "g": np.repeat(range(10), 3)})
    frame["y"] = np.arange(30) * 0.5
    data = Dataset.from_columns(frame, ["t"], "y", group="g", kind="regression")
    part = data.sample(10, np.random.default_rng(0))
    assert len(part) == len(part.items) == 9
    assert np.unique(part.group, return_counts=True)[1].tolist() == [3, 3, 3]
    assert len(data.sample(2, np.random.default_rng(0))) == 3  # one group at least
    with pytest.raises(DataError, match="rows must be"):
        data.sample(0, np.random.default_rng(0))
    # all candidates of an answer are kept
    frame = pd.DataFrame({"q": ["a", "b", "c"], "y": ["b", "c", "d"]})
    data = Dataset.from_columns(frame, ["q"], "y", kind="items", modality="entity")
    assert len(data.sample(1, np.random.default_rng(0)).items) == 4


def lookups():
    """Two of five items are asked about: a has the answers c and d, b has the answer c."""
    frame = pd.DataFrame({"q": list("aab"), "y": list("cdc")})
    data = Dataset.from_columns(frame, ["q"], "y", kind="items", modality="entity")
    items = pd.concat([data.items, pd.Series({"e": "e"})])
    return replace(data, items=items)


def test_a_subset_keeps_the_queries_of_the_whole():
    data = lookups()
    names = data.items.index
    first, last = data.take(np.array([0, 1])), data.take(np.array([2]))
    for each in (data, first, last, first.blind(), last.take(np.array([0]))):
        assert names[each.asked()].tolist() == ["a", "b"]
    assert names[data.sample(1, np.random.default_rng(0)).asked()].tolist() == ["a", "b"]
    # elsewhere the answers are no items, and a part asks about its own
    table = Dataset.from_table(pd.DataFrame({"x": [1, 2, 3], "y": list("pqp")}), "y")
    assert table.take(np.array([0, 2])).asked().tolist() == [0, 2]
    # the queries of other subsets change the fingerprint
    alone = replace(first)  # the same questions, but b is no query any more
    assert alone.asked().tolist() != first.asked().tolist()
    assert alone.fingerprint != first.fingerprint
    assert data.take(np.arange(3)).fingerprint == data.fingerprint


def test_an_encoder_may_learn_from_all_but_the_queries_of_others():
    data = lookups()
    names = data.items.index
    first, last = data.take(np.array([0, 1])), data.take(np.array([2]))
    assert set(names[data.learnable()]) == set("abcde")
    assert set(names[first.learnable()]) == set("acde")
    assert set(names[last.learnable()]) == set("bcde")
    assert set(names[last.mentioned()]) == set("abcde")  # what is embedded in the end
    # an item that is a query there and an answer here is known here
    chain = pd.DataFrame({"q": list("ab"), "y": list("bc")})
    linked = Dataset.from_columns(chain, ["q"], "y", kind="items", modality="entity")
    assert set(linked.items.index[linked.take(np.array([0])).learnable()]) == set("abc")
    assert set(linked.items.index[linked.take(np.array([1])).learnable()]) == set("bc")
    table = Dataset.from_table(pd.DataFrame({"x": [1, 2, 3], "y": list("pqp")}), "y")
    assert table.take(np.array([2, 0])).learnable().tolist() == [0, 2]


def test_everything_a_score_depends_on_changes_the_fingerprint():
    data = entities(group=["g", "g", "h"])
    bags = pd.DataFrame(
        {"one": [{"w": 1.0, "x": 2.0}, {"y": 1.0}, {"z": 2.0, "w": 2.0}], "two": ["z", "z", "x"]}
    )
    changed = [
        data,
        replace(data, name="other"),  # the folds hang on the name
        replace(data, items=data.items.str.lower()),
        replace(data, questions=bags),
        replace(data, questions=data.questions.rename(columns={"one": "uno"})),
        replace(data, questions=data.questions.assign(two=["z", "x", "z"])),
        replace(data, target=[1.0, 2.0, 4.0]),
        replace(data, group=["g", "h", "h"]),
        replace(data, group=None),
        replace(data, part=["train", "train", "test"]),
        replace(data, modality="text"),
        data.blind(),
        data.take(np.array([0, 1])),
        data.take(np.array([1, 0, 2])),
    ]
    assert len({each.fingerprint for each in changed}) == len(changed)
    assert replace(data, about={"license": "MIT"}).fingerprint == data.fingerprint
    assert data.take(np.arange(3)).fingerprint == data.fingerprint


steady = settings(deadline=None, derandomize=True, max_examples=80)


def rng(seed=0):
    return np.random.default_rng(seed)


def test_draws_by_hand():
    rows = sample_rows(100, 16, rng())
    assert len(set(rows.tolist())) == 16
    assert (np.diff(rows) > 0).all()
    assert rows.tolist() == sample_rows(100, 16, rng()).tolist()
    assert rows.tolist() != sample_rows(100, 16, rng(1)).tolist()
    classes = np.array(["a"] * 60 + ["b"] * 30 + ["c"] * 10)
    groups = np.repeat(np.arange(50), 2)
    rare = np.where(groups == 17, "rare", "common")
    for seed in range(20):
        drawn = classes[sample_rows(100, 20, rng(seed), classes)]
        assert [(drawn == c).sum() for c in "abc"] == [12, 6, 2]  # classes keep their shares
        drawn = rare[sample_rows(100, 10, rng(seed), rare, groups)]
        assert (drawn == "rare").sum() == 2 and len(drawn) == 10  # whole groups, every class


@steady
@given(st.lists(st.integers(0, 4), min_size=2, max_size=30), st.data())
def test_a_draw_is_exact_and_has_every_class_where_it_can(classes, data):
    classes = np.array(classes)
    wanted = data.draw(st.integers(1, len(classes)))
    rows = sample_rows(len(classes), wanted, rng(data.draw(st.integers(0, 9))), classes)
    assert len(np.unique(rows)) == wanted
    distinct = len(np.unique(classes))
    if wanted >= distinct:
        assert len(np.unique(classes[rows])) == distinct


@steady
@given(st.lists(st.integers(0, 5), min_size=2, max_size=30), st.data())
def test_groups_are_whole_and_no_more_than_wanted(groups, data):
    groups = np.array(groups)
    sizes = np.unique(groups, return_counts=True)[1]
    wanted = data.draw(st.integers(1, len(groups)))
    rows = sample_rows(len(groups), wanted, rng(data.draw(st.integers(0, 9))), None, groups)
    inside, outside = groups[rows], np.delete(groups, rows)
    assert not set(inside) & set(outside)
    if wanted >= sizes.min():
        assert len(rows) <= wanted
        # no group that was left out would have fitted as well
        counts = dict(zip(*np.unique(groups, return_counts=True), strict=True))
        assert all(counts[group] > wanted - len(rows) for group in set(outside))
    else:
        assert len(rows) == sizes.min()


@steady
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=2, max_size=30),
    st.booleans(),
    st.booleans(),
    st.integers(0, 9),
)
def test_a_nested_draw_contains_every_smaller_one(rows, by_class, by_group, seed):
    classes = np.array([c for c, _ in rows]) if by_class else None
    groups = np.array([g for _, g in rows]) if by_group else None
    before: set[int] = set()
    for wanted in range(1, len(rows) + 1):
        drawn = sample_rows(len(rows), wanted, rng(seed), classes, groups, nested=True)
        assert before <= set(drawn) and len(drawn) == len(set(drawn))
        before = set(drawn)
        if groups is None:
            assert len(drawn) == wanted
            if classes is not None and wanted >= len(set(classes)):
                assert set(classes[drawn]) == set(classes)
        else:
            inside = set(groups[drawn])
            assert not inside & set(np.delete(groups, drawn))
            assert len(drawn) <= wanted or len(inside) == 1
    assert len(before) == len(rows)


# -- roles ----------------------------------------------------------------------------------


def searches(roles, answers=("d1", "d2")):
    texts = pd.Series({"q1": "apple", "q2": "pear", "d1": "apple pie", "d2": "pear", "d3": "stone"})
    questions = pd.DataFrame({"query": ["q1", "q2"]})
    target = np.array(answers, dtype=object)
    return Dataset("s", texts, questions, target, "items", "text", roles=roles)


def test_all_items_but_queries_are_documents():
    roles = searches(("query",)).item_roles
    assert roles.main.tolist() == ["query", "query", "document", "document", "document"]
    assert roles.both.tolist() == []


def test_a_query_that_is_an_answer_has_both_roles():
    roles = searches(("query",), ("q2", "d2")).item_roles
    assert roles.main.tolist() == ["query", "document", "document", "document", "document"]
    assert roles.both.tolist() == [1]


def test_queries_among_the_candidates_have_both_roles():
    roles = searches(("query+document",)).item_roles
    assert set(roles.main) == {"document"} and roles.both.tolist() == [0, 1]


def test_a_subset_keeps_the_roles_of_the_whole():
    whole = searches(("query",))
    assert whole.take(np.array([0])).item_roles is whole.item_roles


def test_a_role_that_is_no_query_is_that_of_the_field_only():
    frame = pd.DataFrame({"text": ["a", "b"], "label": ["x", "y"]})
    data = Dataset.from_columns(frame, ["text"], "label", name="d").with_roles(["classification"])
    assert data.item_roles.main.tolist() == ["classification", "classification"]
    assert data.role_of("text") == "classification"


def test_more_roles_than_fields_are_refused():
    with pytest.raises(DataError, match="2 roles"):
        searches(("query", "document"))
