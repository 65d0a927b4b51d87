from hypothesis import given
from hypothesis import strategies as st

from karat.report.bundle import make_bundle
from karat.report.shown import Budget, Shown
from karat.results.still import Still


@given(st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6))))
def test_rounds_name_every_pair_once_and_no_task_waits_for_another(pairs):
    shown = Shown([], [], [])
    shown.__dict__["done"] = dict.fromkeys(pairs)
    order = list(shown.rounds())
    assert sorted(order) == sorted(pairs)
    for task in {task for task, _ in pairs}:
        models = [model for t, model in order if t == task]
        assert models == sorted(models), "the best first"
    turns = [sum(t == task for t, _ in order[:i]) for i, (task, _) in enumerate(order)]
    assert turns == sorted(turns), "nobody has a second turn before all had the first"


def test_a_budget_is_spent_by_the_bytes_of_json():
    budget = Budget(10)
    assert budget.take(["abc"])  # ["abc"] is 7 bytes
    assert not budget.take("ab")  # 4, and 3 are left
    assert budget.take(0.5)
    assert budget.left == 0


def test_a_page_reads_a_run_once(make_run):
    run = make_run("m", {"t": [0.5, 0.7]})
    still = Still(run.folder)
    assert len(still.records()) == 2
    assert len(still.scores()) == 2
    (run.folder / "jobs" / "t.1.json").unlink()
    run.finish()
    assert (len(still.records()), len(still.scores()), len(run.records())) == (2, 2, 1)
    assert make_bundle(run)["folds"] == [[[0.5]]], "another page sees what is there now"
