"""Views: own generators by name, ids and groups that follow, contracts of corruptions."""

import numpy as np
import pandas as pd
import pytest

from karat import registry
from karat.corruptions.view import CLEAN, VECTORS, View, see, views
from karat.dataset import Dataset
from karat.errors import ContractError, DataError, DefinitionError

ROWS = 40


@pytest.fixture
def own(monkeypatch):
    """Register corruptions for one test."""

    def add(**parts):
        corruptions = registry.corruptions
        corruptions.get("typos")
        monkeypatch.setattr(corruptions, "_parts", {**corruptions._parts, **parts})

    return add


def table(**given):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.standard_normal(ROWS),
            "n": rng.integers(0, 9, ROWS),
            "g": np.arange(ROWS) // 4,
            "y": rng.choice(["rare", "common", "usual"], ROWS),
        }
    )
    return Dataset.from_table(frame, "y", name="toy", group="g", **given)


def texts(modality="text", repeat=False):
    words = ["alpha", "bravo", "alpha" if repeat else "charlie", "delta"]
    frame = pd.DataFrame({"t": words, "y": ["a", "b", "a", "b"]})
    return Dataset.from_columns(frame, ["t"], "y", name="words", modality=modality)


def gone(data, view, seed=1, fold=0):
    return see(data, view, seed, fold).items.isna().to_numpy()


# -- views ----------------------------------------------------------------------------------


def test_the_clean_view_comes_first_then_each_severity():
    found = list(views({"noise": [0.1, 0.4], "typos": (1.0,)}))
    assert found == [CLEAN, View("noise", 0.1), View("noise", 0.4), View("typos", 1.0)]
    assert [view.name for view in found] == ["clean", "noise@0.1", "noise@0.4", "typos@1"]


def test_two_severities_never_share_a_name():
    names = {View("noise", s).name for s in (0.1, 0.1 + 1e-9, 0.1234567, 0.1234568, 1e-7)}
    assert len(names) == 5


def test_no_corruption_and_severity_zero_are_the_identity():
    data = table()
    assert see(data, CLEAN, 1, 0) is data
    for name in registry.corruptions:
        assert see(data, View(name, 0.0), 1, 0) is data


# -- draws ----------------------------------------------------------------------------------


def test_the_generator_comes_from_seed_fold_and_name_alone(own):
    drawn = {}

    def spy(name):
        def corrupt(X, y, severity, rng):
            drawn.setdefault(name, []).append(tuple(rng.random(3)))
            return X, y

        return corrupt

    own(one=spy("one"), two=spy("two"))
    data = table()
    see(data, View("one", 0.1), 1, 0)
    see(data, View("two", 0.1), 1, 0)
    see(data, View("one", 0.4), 1, 0)  # all severities share their draws
    see(data.take(np.arange(5)), View("one", 0.1), 1, 0)
    assert len(set(drawn["one"])) == 1
    assert not set(drawn["one"]) & set(drawn["two"])
    see(data, View("one", 0.1), 1, 1)
    see(data, View("one", 0.1), 2, 0)
    assert len(set(drawn["one"])) == 3


@pytest.mark.parametrize("name", list(registry.corruptions))
@pytest.mark.parametrize("make", [table, texts])
def test_the_dataset_does_not_change(name, make):
    data = make()
    mark = data.fingerprint
    try:
        seen = see(data, View(name, 0.5), 1, 0)
    except Exception as error:
        assert isinstance(error, DefinitionError)  # it says what it takes or needs
    else:
        # what changes vectors has nothing to do with the items
        of_vectors = VECTORS in getattr(registry.corruptions.get(name), "takes", ())
        assert (seen.items is data.items) == of_vectors
    vars(data).pop("fingerprint")
    assert data.fingerprint == mark


# -- rows -----------------------------------------------------------------------------------


def test_rows_ids_groups_and_truth_stay_together():
    data = table().take(np.array([7, 3, 30, 12]))
    seen = see(data, View("noise_gaussian", 0.5), 1, 0)
    assert seen.truth.tolist() == data.truth.tolist()
    assert seen.group.tolist() == data.group.tolist() == [1, 0, 7, 3]
    assert seen.classes == data.classes
    assert seen.frame().index.tolist() == [7, 3, 30, 12]
    moved = (seen.frame()["x"] - data.frame()["x"]).abs()
    assert (moved > 0).all()
    assert (moved < 5 * data.frame()["x"].std()).all()


def drop_rare(X, y, severity, rng):
    rare = y == "rare"
    kept = ~(rare & (rng.random(len(y)) < severity))
    return X[kept], y[kept]


def test_a_corruption_may_drop_rows(own):
    own(drop_rare=drop_rare)
    data = table()
    seen = see(data, View("drop_rare", 1.0), 1, 0)
    kept = np.flatnonzero(data.truth != "rare")
    assert 0 < len(seen) == len(kept) < ROWS
    assert seen.truth.tolist() == data.truth[kept].tolist()
    assert seen.group.tolist() == data.group[kept].tolist()
    assert seen.frame()["x"].tolist() == data.frame()["x"].to_numpy()[kept].tolist()
    assert seen.items.index.tolist() == kept.tolist()
    assert seen.classes == data.classes  # the rare class is still a class
    some = see(data, View("drop_rare", 0.5), 1, 0)
    assert set(seen.items.index) <= set(some.items.index)


def test_a_corruption_may_repeat_and_reorder_rows(own):
    def twice(X, y, severity, rng):
        both = pd.concat([X, X.iloc[::-1]])
        return both, y.loc[both.index]

    own(twice=twice)
    data = table()
    seen = see(data, View("twice", 1.0), 1, 0)
    order = np.concatenate([np.arange(ROWS), np.arange(ROWS)[::-1]])
    assert seen.group.tolist() == data.group[order].tolist()
    assert seen.truth.tolist() == data.truth[order].tolist()
    assert seen.frame()["x"].tolist() == data.frame()["x"].to_numpy()[order].tolist()
    assert seen.items.index.is_unique


def test_a_corruption_may_change_the_truth(own):
    def flip(X, y, severity, rng):
        return X, y.where(rng.random(len(y)) >= severity, "common")

    own(flip=flip)
    assert set(see(table(), View("flip", 1.0), 1, 0).truth) == {"common"}


@pytest.mark.parametrize(
    ("corrupt", "word"),
    [
        (lambda X, y, s, rng: X, "DataFrame"),
        (lambda X, y, s, rng: (X.to_numpy(), y), "DataFrame"),
        (lambda X, y, s, rng: (X["x"], y), "DataFrame"),
        (lambda X, y, s, rng: None, "DataFrame"),
        (lambda X, y, s, rng: (X, None), "40 .*0"),
        (lambda X, y, s, rng: (X[:5], y), "5 .*40"),
        (lambda X, y, s, rng: (X[:0], y[:0]), "no rows"),
        (lambda X, y, s, rng: (X.add_prefix("r", axis=0), y), "index of X"),
        (lambda X, y, s, rng: (X.set_axis(range(100, 140)), y), "index of X"),
        (lambda X, y, s, rng: (X[:5], y[5:10]), "indexes"),
    ],
)
def test_wrong_results_of_a_corruption(own, corrupt, word):
    own(broken=corrupt)
    with pytest.raises(ContractError, match=f"broken@0.5 .*{word}"):
        see(table(), View("broken", 0.5), 1, 0)


def test_a_new_label_is_refused(own):
    own(relabel=lambda X, y, s, rng: (X, y.where(y != "rare", "new")))
    with pytest.raises(DataError, match='"new"'):
        see(table(), View("relabel", 0.5), 1, 0)


# -- texts and entities ---------------------------------------------------------------------


def test_texts_are_changed_row_by_row():
    seen = see(texts(), View("typos", 1.0), 1, 0)
    assert seen.frame().tolist() == ["lahpa", "rbvao", "hcraile", "edtla"]
    again = see(texts(repeat=True), View("typos", 1.0), 1, 0)
    assert again.frame().tolist() == ["lahpa", "rbvao", "lahpa", "edtla"]
    assert again.truth.tolist() == list("abab")


@pytest.mark.parametrize("repeat", [False, True])
def test_entities_keep_the_ids_by_which_vectors_are_looked_up(repeat):
    data = texts("entity", repeat)
    seen = see(data, View("typos", 1.0), 1, 0)
    assert seen.items.loc["alpha"] == "lahpa"
    assert seen.frame().index.tolist() == data.frame().index.tolist()
    assert seen.truth.tolist() == list("abab")


def pairs(items, kind="numbers", truth=(1.0, 2.0)):
    questions = pd.DataFrame({"one": [0, 1], "two": [2, 0]})
    modality = "table" if isinstance(items, pd.DataFrame) else "text"
    return Dataset("pairs", items, questions, np.array(truth), kind, modality)


def test_an_item_of_several_questions_is_changed_once():
    data = pairs(pd.Series(["abcd", "efgh", "ijkl", "mnop"]))
    seen = see(data, View("typos", 1.0), 1, 0)
    assert seen.items.to_dict() == {0: "badc", 1: "fehg", 2: "jilk"}
    assert seen.questions.equals(data.questions)
    assert seen.truth.tolist() == [1, 2]


def test_pairs_of_table_rows_keep_the_types_of_their_columns():
    items = pd.DataFrame({"n": [1, 2, 3], "w": ["a", "b", "c"], "x": [0.5, 1.5, 2.5]})
    seen = see(pairs(items), View("noise_gaussian", 0.5), 1, 0)
    assert seen.items["w"].tolist() == ["a", "b", "c"]
    assert [t.kind for t in seen.items.dtypes[["n", "x"]]] == ["f", "f"]
    empty = see(pairs(items), View("missingness_mcar", 1.0), 1, 0)
    assert empty.items.isna().all(axis=None)


def test_where_items_are_asked_for_by_name_none_may_be_dropped(own):
    own(drop=lambda X, y, s, rng: (X[1:], y))
    with pytest.raises(ContractError, match="drop@0.5 .*pairs"):
        see(pairs(pd.Series(list("abcd"))), View("drop", 0.5), 1, 0)


def test_bags_are_changed_item_by_item():
    items = pd.Series(["abcd", "efgh"], index=["p", "q"])
    questions = pd.DataFrame({"doc": [{"p": 1.0, "q": 2.0}, {"q": 1.0}]})
    data = Dataset("docs", items, questions, np.ones(2), "numbers", "entity")
    seen = see(data, View("typos", 1.0), 1, 0)
    assert seen.items.to_dict() == {"p": "badc", "q": "fehg"}
    assert seen.mentions("doc").weights.tolist() == [1, 2, 1]


# -- where the answer is an item ------------------------------------------------------------


def search(items):
    """The items at 3 and 1 ask for others; the item at 3 asks twice."""
    names = items.index
    questions = pd.DataFrame({"query": names[[3, 1, 3]]})
    modality = "table" if isinstance(items, pd.DataFrame) else "text"
    return Dataset("search", items, questions, names[[0, 2, 4]].to_numpy(), "items", modality)


@pytest.mark.parametrize("index", [list("pqrst"), [9, 7, 5, 3, 1], [("a", i) for i in range(5)]])
def test_only_what_is_asked_about_is_changed(own, index):
    calls = []

    def louder(X, y, s, rng):
        calls.append((X.tolist(), y))
        return X.str.upper(), y

    own(louder=louder)
    items = pd.Series(list("vwxyz"), index=pd.Index(index, tupleize_cols=False))
    data = search(items)
    seen = see(data, View("louder", 0.5), 1, 0)
    assert calls == [(["w", "y"], None)]  # each item once, and no answer is shown
    assert seen.items.tolist() == ["v", "W", "x", "Y", "z"]
    assert seen.items.index.equals(items.index) and data.items.tolist() == list("vwxyz")
    assert seen.questions.equals(data.questions) and seen.truth.tolist() == data.truth.tolist()


def test_only_the_cells_of_queries_are_changed(own):
    def empty(X, y, s, rng):
        return X.mask(np.ones(X.shape, dtype=bool)), y

    own(empty=empty)
    items = pd.DataFrame(
        {
            "n": [1, 2, 3, 4, 5],
            "w": list("vwxyz"),
            "flag": [True, False] * 2 + [True],
            "kind": pd.Categorical(list("uvuvu")),
            "day": pd.date_range("2024-01-01", periods=5),
        },
        index=list("pqrst"),
    )
    seen = see(search(items), View("empty", 1.0), 1, 0).items
    asked, others = ["q", "s"], ["p", "r", "t"]
    assert seen.loc[asked].isna().all(axis=None)
    assert (seen.loc[others] == items.loc[others]).all(axis=None)
    assert seen.index.equals(items.index) and seen["day"].dtype == items["day"].dtype
    assert seen["kind"].dtype == items["kind"].dtype and seen["n"].dtype.kind == "f"


def test_a_search_cannot_lose_a_query(own):
    own(drop=lambda X, y, s, rng: (X[1:], y))
    with pytest.raises(ContractError, match="drop@0.5 .*search"):
        see(search(pd.Series(list("vwxyz"))), View("drop", 0.5), 1, 0)


def test_the_three_items_of_an_analogy_are_changed_and_the_answer_is_not(own):
    own(louder=lambda X, y, s, rng: (X.str.upper(), y))
    ids = list("abcd")
    asked = pd.DataFrame({"a": ["a"], "b": ["b"], "c": ["c"]})
    data = Dataset("four", pd.Series(ids, index=ids), asked, np.array(["d"]), "items", "entity")
    assert see(data, View("louder", 0.5), 1, 0).items.tolist() == ["A", "B", "C", "d"]
