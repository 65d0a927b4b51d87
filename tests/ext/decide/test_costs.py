"""What models cost: of tables of scores, as stated, and kinds that are not known."""

from __future__ import annotations

import math

import pytest

from karat.errors import DefinitionError
from karat.ext.decide.costs import COSTS, STATED, ModelCosts
from karat.results.load import gather_scores

from ...score_data import score_table


@pytest.fixture
def scores():
    return gather_scores(score_table({"t": {"a": [0.5, 0.6], "b": [0.6, 0.7]}}))


def test_stated_costs_hold_for_all_tasks(scores):
    costs = ModelCosts(scores, {"a": 2.0})
    assert costs.kind is STATED and costs.of("a") == costs.of("a", ["t"]) == 2.0
    assert math.isnan(costs.of("b"))


def test_a_table_of_scores_records_no_size(scores):
    assert math.isnan(ModelCosts(scores, "bytes").of("a"))


def test_costs_of_tasks_are_combined_by_their_kind(scores):
    costs = ModelCosts(scores, "bytes")
    costs.by_task = {"a": {"t": 8.0, "u": 16.0}}
    assert (costs.of("a"), costs.of("a", ["t"])) == (16.0, 8.0)
    costs.kind = COSTS["price"]
    assert costs.of("a") == 24.0


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        ("byte", 'Did you mean "bytes"'),
        ({"c": 1.0}, '"c"'),
        ({"a": -1.0}, ">= 0"),
    ],
)
def test_invalid_costs(scores, cost, words):
    with pytest.raises(DefinitionError, match=words):
        ModelCosts(scores, cost)
