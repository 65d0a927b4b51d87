"""The tables of a run: columns in order, and one golden table each."""

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
info,acc,logloss,status,repeat,corruption,severity,draw,affected,coverage,dimensions,\
vector_precision,vector_bytes,train_questions,questions,\
embed_seconds,load_seconds,fit_seconds,predict_seconds,score_seconds,seconds,cpu_seconds,\
peak_memory_mb,notes
iris,iris,forest,test,0,0.9,acc,local,1.0,"{""trees"": 2}",karat-0.1.0,2026-01-02T03:04:05,1.5,,42,\
,0.9,0.30000000000000004,ok,0,,0.0,0,,1.0,4,float32,16,100,50,0.75,0.5,1.5,0.25,0.125,2.5,\
2.25,128.0,slow; late
iris,iris,forest,test,0,0.5,acc,local,1.0,"{""trees"": 2}",karat-0.1.0,2026-01-02T03:04:05,1.5,,42,\
,0.5,,ok,0,noise,0.5,0,,1.0,4,float32,16,100,50,0.75,0.5,1.5,0.25,0.125,2.5,2.25,128.0,slow; late
iris,iris,forest,test,1,,acc,local,1.0,"{""trees"": 2}",karat-0.1.0,2026-01-02T03:04:05,,,43,\
"ValueError: ""a"", b",,,failed,0,,0.0,0,,,,,,,,,,,,,,,,
far-away,far,forest,test,,,?,local,1.0,"{""trees"": 2}",karat-0.1.0,2026-01-02T03:04:05,,,,\
offline,,,declined,,,0.0,0,,,,,,,,,,,,,,,,
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
