"""Items that belong together: declared groups, columns kept with the items, near duplicates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core.predictions import Predictions
from karat.errors import DataError, DefinitionError
from karat.results.clusters import (
    INDEPENDENT,
    NEAR_DUPLICATES,
    check_cluster_column,
    check_labels,
    cluster_scores,
    column_labels,
    declared_groups,
    item_clusters,
    known_clusters,
    near_duplicates,
    unit_notes,
)
from karat.results.item_tables import LENGTH
from karat.results.load import gather_scores

from ..cluster_data import run_users


def answers(group=None, **more) -> Predictions:
    rows = len(group) if group is not None else 12
    return Predictions(np.zeros(rows), np.zeros(rows), group=group, **more)


@pytest.fixture(scope="module")
def users(tmp_path_factory):
    return run_users(tmp_path_factory.mktemp("users"))


# -- declared groups ------------------------------------------------------------------------


def test_groups_are_the_unit_if_they_are_enough_and_hold_several_items():
    six = np.repeat(np.arange(6), 2)
    assert declared_groups([answers(six)], by_group=False)[0].tolist() == [*map(str, six)]
    # a group may be in several folds
    halves = [answers(np.repeat([0, 1, 2], 2)), answers(np.repeat([3, 4, 5], 2))]
    assert len(declared_groups(halves, by_group=False)) == 2
    assert declared_groups([answers(np.repeat(np.arange(5), 2))], by_group=False) is None
    assert declared_groups([answers(np.arange(12))], by_group=False) is None
    assert declared_groups([answers()], by_group=False) is None


def test_ranked_lists_and_means_over_groups_have_units_of_their_own():
    six = np.repeat(np.arange(6), 2)
    assert declared_groups([answers(six)], by_group=True) is None
    ranked = answers(six, rank=np.ones(12), candidates=np.full(12, 3))
    assert declared_groups([ranked], by_group=False) is None
    # rows of one question by several measures are not rows of a group
    repeated = answers(np.repeat(np.arange(6), 2), question=np.tile(np.arange(6), 2))
    assert declared_groups([repeated], by_group=False) is None


# -- columns --------------------------------------------------------------------------------


def test_a_missing_cell_is_a_cluster_of_its_own():
    items = pd.DataFrame({"user": ["ann", "", "", "ann"]}, index=list("0123"))
    labels = column_labels(items, "user")
    assert labels["0"] == labels["3"] and labels.nunique() == 3


def test_texts_with_the_same_letters_or_beginning_are_near_duplicates():
    template = "your order of the blue teapot has been sent to the address below this morning "
    long = [template + word * 30 for word in ("tea", "cup")]
    labels = near_duplicates(["A b, 12!", "ab", "abc", *long])
    assert labels[0] == labels[1] != labels[2] and labels[3] == labels[4]
    texts = pd.DataFrame({"text": ["Hi 1", "hi 2", "Bye"], LENGTH: ["4", "4", "3"]})
    assert known_clusters(texts) == ["text", NEAR_DUPLICATES]
    assert column_labels(texts, NEAR_DUPLICATES).tolist() == ["hi", "hi", "bye"]
    # short names are no texts
    assert known_clusters(pd.DataFrame({"city": ["Rome", "Oslo"]})) == ["city"]


def test_the_clusters_of_stored_predictions(users):
    folds = [users[0].predictions("users")]
    (labels,) = item_clusters(users[0], "users", folds, "user")
    assert labels[:11].tolist() == ["u0"] * 10 + ["u1"]
    assert item_clusters(users[0], "users", folds) is None
    # a column that the task does not have
    assert item_clusters(users[0], "users", folds, "nothing") is None
    with pytest.raises(DataError, match='"same" has one value in users: at least 6 clusters'):
        item_clusters(users[0], "users", folds, "same")


def test_a_column_is_checked_before_anything_is_tested(users):
    tasks = [("users", users[0], "users")]
    assert check_cluster_column("user", tasks) == []
    with pytest.raises(DefinitionError, match=r'no column "usr".* Did you mean "user"\? There are'):
        check_cluster_column("usr", tasks)
    with pytest.raises(DefinitionError, match='"same" has one value in users'):
        check_cluster_column("same", tasks)
    with pytest.raises(DefinitionError, match='"y" has 2 values in t: at least 6'):
        check_labels("y", {"t": pd.DataFrame({"y": ["a", "b"] * 9})})
    with pytest.raises(DefinitionError, match="the items have no column of texts. There are: y"):
        check_labels("near-duplicates", {"t": pd.DataFrame({"y": ["a", "b"] * 9})})


def test_too_few_values_in_several_tasks_are_one_message():
    cells = {"s": "a", "t": "ab", "u": "a"}
    tables = {task: pd.DataFrame({"y": list(own) * 9}) for task, own in cells.items()}
    with pytest.raises(DefinitionError) as raised:
        check_labels("y", tables)
    wanted = '"y" has one value in s, u; 2 values in t: at least 6 clusters are needed'
    assert len(raised.value.messages) == 1 and wanted in str(raised.value)


def test_a_column_of_some_tasks_leaves_a_note_on_the_others():
    tables = {
        "with": pd.DataFrame({"user": list("abcdef") * 2}),
        "few": pd.DataFrame({"user": list("ab") * 6}),
        "without": pd.DataFrame({"city": list("abcdef") * 2}),
        "not kept": None,
    }
    few, absent = check_labels("user", tables)
    assert few.startswith('"user" has 2 values in few') and "without, not kept" in absent
    assert check_labels(None, tables) == []


def test_runs_without_items_and_tables_of_scores_have_no_clusters(users):
    with pytest.raises(DefinitionError, match="no items are kept with these runs"):
        check_labels("user", {"t": None})
    board = karat.leaderboard(users).attrs  # runs are not changed
    assert "cluster" not in board
    given = gather_scores(users)
    assert cluster_scores(given, None) is given
    assert cluster_scores(given, "user").cluster == "user" and given.cluster == ""
    rows = [("t", m, 0, 0, -1, "", 0.0, 0, "acc", 0.5) for m in "ab"]
    names = ["task", "model", "fold", "repeat", "epoch", "corruption", "severity", "draw"]
    table = pd.DataFrame(rows, columns=[*names, "metric", "value"])
    with pytest.raises(DefinitionError, match="a table has no items"):
        karat.leaderboard(table, cluster="user")


def test_one_line_says_what_the_unit_is():
    assert unit_notes({"t": (0, 50)}) == [INDEPENDENT]
    assert unit_notes({}) == []
    both = unit_notes({"t": (0, 50), "u": (7, 70)}, "user")
    assert both == [
        'u: The unit is the cluster "user": 7 clusters of 70 items.',
        f"t: {INDEPENDENT}",
    ]
