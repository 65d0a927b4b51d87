"""Two models paired by task and fold: tables of scores, directions, and what cannot be paired."""

from __future__ import annotations

import pytest

from karat.analysis.pairing import cluster_pairing, pair, pair_with
from karat.errors import DefinitionError

from ..score_data import score_table

SCORES = {"t": {"a": [0.5, 0.7], "b": [0.6, 0.4]}, "u": {"a": [0.9, 0.8]}}


def test_scores_of_the_shared_folds_are_paired():
    pairing = pair(score_table(SCORES), "a", "b", None, "folds")
    assert (pairing.first, pairing.second, pairing.models) == ("a", "b", 2)
    assert [paired.task for paired in pairing.tasks] == ["t", "u"]
    assert pairing.compared == [0]
    assert pairing.tasks[0].first.tolist() == [0.5, 0.7]
    assert pairing.tasks[0].second.tolist() == [0.6, 0.4]
    assert pairing.tasks[1].states == ("ok", "not run") and pairing.tasks[1].held == (2, 0)


def test_several_models_are_paired_with_a_reference():
    table = score_table({"t": {"a": [0.5], "b": [0.6], "c": [0.7]}})
    pairings = pair_with(table, "c", ["a", "b"], None)
    assert {name: each.tasks[0].first.tolist() for name, each in pairings.items()} == {
        "a": [0.5],
        "b": [0.6],
    }


def test_clusters_need_stored_predictions():
    pairing = pair(score_table(SCORES), "a", "b", None, "folds")
    assert cluster_pairing(pairing, "") is pairing
    with pytest.raises(DefinitionError, match='cluster "author" needs stored predictions'):
        cluster_pairing(pairing, "author")


@pytest.mark.parametrize(
    ("names", "on", "words"),
    [
        (("a", "c"), "folds", 'no model "c"'),
        (("a", "a"), "folds", "name two models"),
        (("a", "b"), "fold", 'Did you mean "folds"'),
        (("a", "b"), "rows", "needs run folders"),
    ],
)
def test_what_cannot_be_paired(names, on, words):
    with pytest.raises(DefinitionError, match=words):
        pair(score_table(SCORES), *names, None, on)
