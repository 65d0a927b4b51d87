"""What run.json and a record must contain: damaged ones are named, and others are shown."""

import contextlib
import functools
import json
import operator
import random
import shutil

import pytest

import karat
from karat.analysis.checks import check_runs
from karat.errors import DataError, DefinitionError
from karat.models.tabular_encoders import OneHotTable
from karat.results.load import status
from karat.results.run import Run, open_runs
from karat.results.stored_facts import check_record


def record(**changes):
    return {
        **{"spec": "s", "model": "forest", "task": "iris", "kind": "", "fold": 0, "repeat": 0},
        **{"seed": 42, "metric": "acc", "status": "ok", "info": "", "views": [], "notes": []},
        **{"history": [], "utc": "2026-01-02T03:04:05", **changes},
    }


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, ""),
        ({"value": None}, ""),
        ({"value": 1}, ""),
        ({"metric": "größe"}, ""),
        ({"epoch": True}, "history.epoch"),
        ({"epoch": 1.0}, "history.epoch"),
        ({"epoch": 2**63}, "history.epoch"),
        ({"metric": ["loss"]}, "history.metric"),
        ({"metric": "\ud800"}, "history.metric"),
        ({"value": float("inf")}, "history.value"),
        ({"value": "0.5"}, "history.value"),
    ],
)
def test_a_wrong_step_of_the_history_is_named(changes, wrong):
    step = {"epoch": 1, "metric": "loss", "value": 0.75}
    assert check_record(record(history=[step, {**step, **changes}])) == wrong
    assert check_record(record(history=[{"epoch": 1, "value": 0.5}])) == "history.metric"


WRONG = [None, True, -1, 2**40, 10**30, 1e308, "", "\udc80", [], [None], {}, {"a": None}, 1.5]
#: texts in place of a value, or of the whole file
NUMBERS = ["1e999", "-1e999", "NaN", "9" * 400, "9" * 5000]
FILES = ["null", "[]", "{}", "0", "", "\0" * 20, "[" * 100_000, '{"a":' * 50_000]


def places(value, path=()):
    """Yield the keys that lead to each value inside a JSON value."""
    value = dict(enumerate(value)) if isinstance(value, list) else value
    for key, each in value.items() if isinstance(value, dict) else ():
        yield (*path, key)
        yield from places(each, (*path, key))


def damage(text, rng):
    how = rng.choice(["cut", "file", "letter", "missing", "number", "value", "value", "value"])
    at = rng.randrange(len(text))
    if how in ("cut", "letter"):
        return text[:at] + ("" if how == "cut" else chr(rng.randrange(32, 127)) + text[at + 1 :])
    if how == "file":
        return rng.choice(FILES)
    value = json.loads(text)
    *path, last = rng.choice(list(places(value)))
    inner = functools.reduce(operator.getitem, path, value)
    if how == "missing":
        del inner[last]
    else:
        inner[last] = rng.choice(WRONG) if how == "value" else "a number"
    return json.dumps(value).replace('"a number"', rng.choice(NUMBERS))


@pytest.fixture(scope="module")
def two_runs(two_classes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    task = two_classes(corruptions={"noise_gaussian": [0.5]})
    karat.evaluate({"good": OneHotTable(), "bad": OneHotTable()}, task, output=folder)
    return folder, task


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_run_is_left_out_and_the_others_are_shown(two_runs, tmp_path, seed):
    rng = random.Random(seed)
    folder, task = shutil.copytree(two_runs[0], tmp_path / "results"), two_runs[1]
    (run,) = folder.glob("bad.*")
    records = sorted((run / "jobs").iterdir())
    file = rng.choice([run / "run.json"] * len(records) + records)
    text = damage(file.read_text(encoding="utf-8"), rng)
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    assert "good" in status(folder)["model"].tolist()
    with contextlib.suppress(DefinitionError):  # the name of a metric is no longer one
        assert "good" in karat.leaderboard(folder).index
        check_runs(folder)
    for each in open_runs(folder):
        each.finish()
        with contextlib.suppress(DataError):
            karat.rescore(each)
    (resumed,) = karat.evaluate({"bad": OneHotTable()}, task, output=folder, resume=True)
    assert resumed.results()["status"].tolist() == ["ok"] * 4


@pytest.mark.parametrize("text", ["null", '{"model": "m"}', '{"model": "m", "tasks": null}'])
def test_a_damaged_plan_has_one_message(two_runs, tmp_path, text):
    folder = shutil.copytree(two_runs[0], tmp_path / "results")
    (run,) = folder.glob("bad.*")
    (run / "run.json").write_text(text)
    with pytest.warns(UserWarning) as caught:
        assert karat.leaderboard(folder).index.tolist() == ["good"]
    assert [run.name in str(each.message) for each in caught] == [True]
    with pytest.raises(DataError, match=r"run\.json"):
        Run.open(run).about  # noqa: B018


# -- item tables ----------------------------------------------------------------------------
