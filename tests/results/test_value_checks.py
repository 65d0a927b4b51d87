"""Checks of single values: what passes each of them, and what does not."""

import pytest

from karat.results import value_checks as checks

#: by check: values that pass, and values that do not
VALUES = {
    checks.is_any_text: (["", "\udc80"], [None, 1]),
    checks.is_text: (["", "é"], ["\udc80", None, 1]),
    checks.is_name: (["a"], ["", None]),
    checks.is_integer: ([0, -5], [True, 2**63, 1.0, "1"]),
    checks.is_count: ([0, 7], [-1, True, 2**31, 1.5]),
    checks.is_number: ([0, 1.5], [float("nan"), float("inf"), True, "1"]),
    checks.is_object: ([{}], [[], None]),
    checks.is_counted_pair: ([["a", "b", 2]], [["a", "b"], ["a", 1, 2], "ab2"]),
    checks.is_timing: ([{}, {"10": 0.5, "1": None}], [{"x": 1.0}, {"1": "a"}, []]),
    checks.is_shared: ([[], [1, 2, "group"]], [[1, 2], [1, -2, "group"], None]),
    checks.is_give_away: ([[], ["column", 0.9]], [["column"], ["column", "a"], None]),
    checks.is_observed: ([{"zero": 1, "lengths": [1.0, 2.0, 3.0]}], [{"zero": 0.5}, []]),
    checks.is_probe: ([None, "nearest", {}], [1, []]),
    checks.is_split: ([{"use": "kfold", "count": 5}], [{}, {"use": "kfold", "rows": 1}, "kfold"]),
    checks.none_or(checks.is_count): ([None, 1], [-1]),
    checks.list_of(checks.is_count, 0, 2): ([[], [1, 2]], [[1], [1, -1], None]),
    checks.object_of(checks.is_count): ([{}, {"a": 1}], [{"a": -1}, {1: 1}, []]),
}


@pytest.mark.parametrize("check", VALUES)
def test_a_check_tells_right_values_from_wrong_ones(check):
    right, wrong = VALUES[check]
    assert all(map(check, right)) and not any(map(check, wrong))
