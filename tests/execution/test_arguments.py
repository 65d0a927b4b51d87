"""The objects among the arguments of evaluate, and arguments of earlier spellings."""

import inspect

import karat
from karat.execution.arguments import RESPELLED, run_settings
from karat.execution.evaluation import make_options


def test_negative_workers_count_cores_as_scikit_learn_does(monkeypatch):
    monkeypatch.setattr("karat.execution.arguments.available_cores", lambda: 8)
    settings = [run_settings(n, "results", ()) for n in (0, 1, 3, -1, -2, -100)]
    assert [each["workers"] for each in settings] == [0, 1, 3, 8, 7, 1]


def test_every_argument_of_an_earlier_spelling_has_its_new_one():
    parameters = inspect.signature(karat.evaluate).parameters
    for name, spelling in RESPELLED.items():
        assert name not in parameters
        assert spelling.partition("=")[0] in parameters
        new = spelling.partition("=")[2].replace("MODELS", "None")
        assert new.startswith(('"', "5", "-1")) or eval(new, {"karat": karat})


def test_what_an_object_states_reaches_the_run(tmp_path):
    output = karat.Output(tmp_path, items=False, inference=[1])
    part = karat.Only("pen*", folds=[1], max_rows=50)
    machines = karat.Machines(constraint="test")
    settings = run_settings(machines, output, part, "retry-failed")
    options = make_options(settings)
    assert options.only == ["pen*"] and options.only_folds == [1] and options.max_rows == 50
    assert options.constraint == "test" and options.resume == "retry-failed"
    assert (options.output, options.items, options.inference) == (tmp_path, False, [1])
