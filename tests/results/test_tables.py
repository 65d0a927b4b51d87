"""The tables of a run: columns in order, one golden table each; and damaged run folders."""

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
from karat.results.tables import (
    AMLB_COLUMNS,
    KARAT_COLUMNS,
    SCORE_COLUMNS,
    results_table,
    scores_table,
)

ABOUT = {
    **{"model": "forest", "constraint": "test", "mode": "local", "version": "1.0"},
    **{"params": {"trees": 2}, "karat": "0.1.0"},
    "tasks": [
        {"name": "iris", "dataset": "iris", "metrics": ["acc", "logloss"]},
        {"name": "far", "dataset": "far-away", "metrics": ["?"]},
    ],
}


def record(**changes):
    return {
        **{"spec": "s", "model": "forest", "task": "iris", "kind": "", "fold": 0, "repeat": 0},
        **{"seed": 42, "metric": "acc", "status": "ok", "info": "", "views": [], "notes": []},
        **{"history": [], "utc": "2026-01-02T03:04:05", **changes},
    }


def view(corruption="", severity=0.0, **changes):
    return {
        **{"corruption": corruption, "severity": severity, "coverage": 1.0},
        **{"scores": {"acc": 0.9, "logloss": 0.1 + 0.2}, "reasons": {}, "status": "ok"},
        **{"info": "", **changes},
    }


FULL = record(
    views=[view(), view("noise", 0.5, scores={"acc": 0.5, "logloss": None})],
    history=[{"epoch": 1, "metric": "loss", "value": 0.75}],
    notes=["slow", "late"],
    dimensions=4,
    train_questions=100,
    questions=50,
    embed_seconds=0.75,
    load_seconds=0.5,
    fit_seconds=1.5,
    predict_seconds=0.25,
    score_seconds=0.125,
    seconds=2.5,
    cpu_seconds=2.25,
    peak_memory_mb=128.0,
)
FAILED = record(fold=1, seed=43, status="failed", info='ValueError: "a", b')
DECLINED = record(task="far", fold=None, repeat=None, seed=None, metric="?", status="declined")
DECLINED["info"] = "offline"

GOLDEN_RESULTS = """\
id,task,framework,constraint,fold,result,metric,mode,version,params,tag,utc,duration,models,seed,\
info,acc,logloss,status,repeat,corruption,severity,draw,affected,coverage,dimensions,train_questions,questions,\
embed_seconds,load_seconds,fit_seconds,predict_seconds,score_seconds,seconds,cpu_seconds,peak_memory_mb,notes
iris,iris,forest,test,0,0.9,acc,local,1.0,"{""trees"": 2}",karat-0.1.0,2026-01-02T03:04:05,1.5,,42,\
,0.9,0.30000000000000004,ok,0,,0.0,0,,1.0,4,100,50,0.75,0.5,1.5,0.25,0.125,2.5,2.25,128.0,slow; late
iris,iris,forest,test,0,0.5,acc,local,1.0,"{""trees"": 2}",karat-0.1.0,2026-01-02T03:04:05,1.5,,42,\
,0.5,,ok,0,noise,0.5,0,,1.0,4,100,50,0.75,0.5,1.5,0.25,0.125,2.5,2.25,128.0,slow; late
iris,iris,forest,test,1,,acc,local,1.0,"{""trees"": 2}",karat-0.1.0,2026-01-02T03:04:05,,,43,\
"ValueError: ""a"", b",,,failed,0,,0.0,0,,,,,,,,,,,,,,
far-away,far,forest,test,,,?,local,1.0,"{""trees"": 2}",karat-0.1.0,2026-01-02T03:04:05,,,,\
offline,,,declined,,,0.0,0,,,,,,,,,,,,,,
"""

GOLDEN_SCORES = """\
task,model,repeat,fold,corruption,severity,draw,epoch,metric,value
iris,forest,0,0,,0.0,0,1,loss,0.75
iris,forest,0,0,,0.0,0,-1,acc,0.9
iris,forest,0,0,,0.0,0,-1,logloss,0.30000000000000004
iris,forest,0,0,noise,0.5,0,-1,acc,0.5
iris,forest,0,0,noise,0.5,0,-1,logloss,
"""


def test_golden_results():
    table = results_table(ABOUT, [FULL, FAILED, DECLINED])
    assert table.to_csv(index=False) == GOLDEN_RESULTS


def test_golden_scores():
    assert scores_table([FULL, FAILED, DECLINED]).to_csv(index=False) == GOLDEN_SCORES


def test_order_of_columns():
    scored = record(views=[view(scores={"rmse": 1.0, "auc": 0.5, "Brier": 0.1})])
    columns = list(results_table(ABOUT, [scored]).columns)
    assert columns == [*AMLB_COLUMNS, "Brier", "acc", "auc", "logloss", "rmse", *KARAT_COLUMNS]


def test_tables_without_records():
    columns = list(results_table(ABOUT, []).columns)
    assert columns == [*AMLB_COLUMNS, "acc", "logloss", *KARAT_COLUMNS]
    empty = scores_table([])
    assert list(empty.columns) == list(SCORE_COLUMNS)
    assert empty["value"].dtype == float


def test_info_of_each_view():
    failing = view("missing", 0.1, scores={}, status="failed", info="ValueError: NaN")
    odd = view("noise", 0.5, scores={"acc": None}, reasons={"acc": "Scoring acc: no rows"})
    job = record(status="failed", info="missing@0.1: ValueError: NaN", views=[view(), failing, odd])
    table = results_table(ABOUT, [job])
    assert table["status"].tolist() == ["ok", "failed", "ok"]
    assert table["info"].tolist() == ["", "ValueError: NaN", "Scoring acc: no rows"]
    # the failure of a job without failed views is in each row
    late = record(status="failed", info="KeyError: 'epoch'", views=[view()])
    assert results_table(ABOUT, [late])["info"].tolist() == ["KeyError: 'epoch'"]


# -- damaged folders ----------------------------------------------------------------------------

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
