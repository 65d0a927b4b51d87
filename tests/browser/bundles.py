"""Synthetic bundles that fill every section of the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.stats.paired_tests import mean_of
from karat.stats.pairwise_ranks import mean_ranks
from karat.stats.ranking import Ranks, rank_each, rank_models, ranked_on_few

KINDS = ("classification", "regression", "similarity", "clustering")
METRICS = {
    "classification": (["auc", "acc", "logloss"], [True, True, False]),
    "regression": (["rmse", "r2"], [False, True]),
    "similarity": (["spearman"], [True]),
    "clustering": (["v_measure"], [True]),
}
#: more cells than this take too long to test
MANY = 5_000
NASTY = (
    '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">',
    "quote \" and ' and `${window.hacked = 3}` & </style></script>",
    "\u202eright to left\u202c \u200f\u2067mark\u2069",
    "long " + "x" * 10_240,
)


def make_bundle(
    models: int, tasks: int, *, folds: int = 5, seed: int = 0, missing: float = 0.12
) -> dict[str, Any]:
    """Return a bundle; scores differ by model, task and fold."""
    rng = np.random.default_rng(seed)
    kinds = [KINDS[min(t * len(KINDS) // tasks, len(KINDS) - 1)] for t in range(tasks)]
    skill = np.sort(rng.uniform(0, 0.25, models))[::-1]
    values, scores, states = [], [], []
    for t in range(tasks):
        up = METRICS[kinds[t]][1][0]
        table = 0.6 + skill[:, None] + rng.normal(0, 0.03, (models, 1))
        table = np.round(np.clip(table + rng.normal(0, 0.015, (models, folds)), 0, 1), 5)
        table = table if up else np.round(80 * (1.2 - table), 3)
        draw = rng.random(models)
        state = np.where(draw < missing / 3, "f", np.where(draw < missing, "d", "."))
        # one of the folds of some models failed, and all of others
        table[draw > 0.97, 0] = np.nan
        table[state != "."] = np.nan
        state = np.where((state == ".") & np.isnan(table).all(axis=1), "f", state)
        values.append(table if up else -table)
        states.append("".join(state))
        scores.append(table)
    order = np.lexsort((np.nan_to_num(_means_of_ranks(values, states), nan=np.inf),))
    values = [table[order] for table in values]
    scores = [table[order] for table in scores]
    states = ["".join(np.array(list(state))[order]) for state in states]
    return _bundle(rng, kinds, values, scores, states)


def _takes(states: list[str]) -> np.ndarray:
    return np.array([[sign in ".f" for sign in state] for state in states]).T


def _means_of_ranks(values: list[np.ndarray], states: list[str]) -> np.ndarray:
    return np.nan_to_num(mean_ranks(rank_each(values, _takes(states))))


def _ranks(values: list[np.ndarray], states: list[str]) -> Ranks:
    """Return the ranks; for very many models with made-up intervals."""
    if values[0].shape[0] * len(values) <= MANY:
        return rank_models(values, _takes(states))
    mean = _means_of_ranks(values, states)
    each = rank_each(values, _takes(states))
    same, top = np.ones((len(mean), len(mean))), np.ones(len(mean), dtype=bool)
    return Ranks(mean, mean - 10, mean + 10, ["a"] * len(mean), top, each, same)


def _bundle(rng: Any, kinds: list[str], values: Any, scores: Any, states: Any) -> dict[str, Any]:
    ranks, few = _ranks(values, states), ranked_on_few(_takes(states))
    models, tasks = len(values[0]), len(values)
    notes = [f"{models} models by mean rank over {tasks} tasks.", "A second note."]
    title = f"synthetic {models} × {tasks}"
    return {
        **{"schema": 1, "title": title, "karat": "0.1.0", "made": "2026-11-16T08:00:00"},
        **{"confidence": 0.95, "rule": "worst", "notes": notes},
        "models": [_model(rng, m, f"encoder-{m:03d}", ranks, few) for m in range(models)],
        "tasks": [_task(t, kind, len(scores[t][0])) for t, kind in enumerate(kinds)],
        "scores": [_metrics(kinds[t], mean_of(scores[t])) for t in range(tasks)],
        "spread": [_plain(np.std(np.nan_to_num(table), axis=1)) for table in scores],
        "folds": [[_folds(row) for row in table] for table in scores],
        "states": states,
        "tests": {"friedman": None, "cliques": [], "pairs": None},
        **{name: [] for name in ("curves", "learning", "maps", "cards", "checks", "runs", "cut")},
        **{"failures": _failures(scores, states), "robustness": None, "details": {}},
        "groups": [_whole(models, tasks)],
        **{"verdict": [make_verdict(0, 1)], "partial": [], "cheapest": []},
    }


def _whole(models: int, tasks: int) -> dict[str, Any]:
    """Return the group of all models on all tasks."""
    whole = {"name": "", "models": list(range(models)), "tasks": list(range(tasks))}
    return {**whole, "rows": [{} for _ in range(models)]}


def _cheapest(models: int, cost: str) -> dict[str, Any]:
    """Return an answer in which the first model is the reference and the third the cheapest."""
    names = [f"encoder-{m:03d}" for m in range(models)]
    points = [
        {
            **{"model": name, "base": names[m % 2], "cost": 4096 / 4**m, "score": 0.8 - m / 100},
            **{"difference": -m / 100 if m else None, "verdict": "worse" if m else "reference"},
            **{f"difference_{end}": -m / 100 + d if m else None for end, d in ENDS.items()},
        }
        for m, name in enumerate(names)
    ]
    columns = ["model", cost, "score", "difference", "verdict"]
    rows = [[name, "1,024", "0.800", "-0.010 [-0.020, 0.000]", "worse"] for name in names]
    return {
        **{"cost": cost, "margin": 0.025, "level": 0.8, "notes": [f"A note on {cost}."]},
        **{"reference": names[0], "model": names[2], "points": points},
        **{"sentence": f"{names[2]} is the cheapest by {cost}.", "columns": columns, "rows": rows},
    }


#: the ends of an interval
ENDS = {"low": -0.01, "high": 0.01}


def make_verdict(winner: int, other: int, **more: Any) -> dict[str, Any]:
    """Return a verdict in which every line is known."""
    names = [f"encoder-{m:03d}" for m in (winner, other)]
    whats = ("answer", "margin", "basis", "cost")
    lines = [{"what": what, "text": f"{names[0]} {what} {names[1]}."} for what in whats]
    step = {"text": "compare them", "command": f"karat compare results -a {names[0]} -b {names[1]}"}
    facts = {"name": "", "kind": "ranking", "state": "clear", "winner": winner, "next": other}
    facts |= {"top": [winner], "reason": "", "margin": None, "lines": lines, "next_step": step}
    return {**facts, "weak": ["KRT402 One failed.", "Few tasks."], **more}


def _failures(scores: list[np.ndarray], states: list[str]) -> list[dict[str, Any]]:
    """Return the failures, as many as a bundle lists."""
    found = []
    for t, table in enumerate(scores):
        for m, f in np.argwhere(np.isnan(table)).tolist():
            if states[t][m] in ".f":
                found.append({"model": m, "task": t, "fold": f, "status": "failed"})
    return [{**each, "info": "ValueError: no", "log": LOG} for each in found[:2000]]


def _folds(row: np.ndarray) -> list[float | None] | None:
    return None if np.isnan(row).all() else _plain(row)


def _plain(values: Any) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def _metrics(kind: str, first: np.ndarray) -> list[list[float | None]]:
    """Return more metrics that reverse the order of the models."""
    metrics, higher = METRICS[kind]
    turned = [first if up == higher[0] else 1 - first for up in higher]
    return [_plain(first if k == 0 else -turned[k]) for k in range(len(metrics))]


def _task(t: int, kind: str, folds: int) -> dict[str, Any]:
    metrics, higher = METRICS[kind]
    names = {"name": f"{kind[:4]}-{t:03d}", "kind": kind, "dataset": f"data-{t // 2}"}
    counts = {"folds": folds, "questions": 100 + t, "duplicate_rows": [3, 100] if t == 0 else None}
    return {**names, "metrics": metrics, "higher": higher, **counts}


def _model(rng: Any, m: int, name: str, ranks: Any, few: np.ndarray) -> dict[str, Any]:
    rank, low, high = (
        None if np.isnan(each[m]) else float(each[m])
        for each in (ranks.mean, ranks.low, ranks.high)
    )
    return {
        **{"name": name, "model": name, "run": f"{name}.synthetic", "suite": "synthetic"},
        **{"constraint": "default", "stamp": "20261116T080000", "seed": 42, "rank": rank},
        **{"low": low, "high": high, "tie": ranks.ties[m], "top": bool(ranks.top[m])},
        "few": bool(few[m]),
        "seconds": float(10 ** rng.uniform(-0.5, 3)),
        "memory_mb": float(10 ** rng.uniform(2, 4)),
        "dimensions": int(2 ** rng.integers(5, 11)),
        **{"failed": int(rng.integers(3)), "declined": int(rng.integers(3)), "elo": None},
        **{"borda": None, "wins": None, "command": None, "pareto": False},
    }


def make_full(models: int = 12, tasks: int = 10) -> dict[str, Any]:
    """Return a bundle with something in every section."""
    bundle = make_bundle(models, tasks, seed=3)
    rng = np.random.default_rng(1)
    p = rng.random((models, models))
    p = np.minimum(p, p.T) * (rng.random((models, models)) < 0.7)
    diff = [[0.01 * (b - a) for b in range(models)] for a in range(models)]
    bundle["tests"] = {
        **{"procedure": "max-T over tasks", "why": ""},
        "friedman": {"test": "Friedman", "statistic": 31.2, "p": 0.00021, "tasks": tasks},
        "cliques": [[0, 1, 2], [2, 3, 4, 5], [6, 7], list(range(8, models))],
        "pairs": {"p": np.minimum(p, p.T).tolist(), "diff": diff},
        "by_task": [{"test": "corrected t", "why": "", "p": p.tolist()} for _ in range(tasks)],
    }
    bundle["curves"] = [_curve(t, name, models) for t in (0, 2) for name in CORRUPTIONS]
    columns = ["task", "metric", "model", "clean", "corrupted", "retention", "worst view"]
    rest = ["0.7 [0.6, 0.8]", "78%", "typos 0.4"]
    clean = [(f"encoder-{m:03d}", f"{0.9 - m / 50:.3f}") for m in range(models)]
    rows = [["clas-000", "auc ↑", *each, *rest] for each in clean]
    bundle["robustness"] = {"columns": columns, "rows": rows}
    bundle["cheapest"] = [[_cheapest(models, cost) for cost in ("bytes", "seconds")]]
    bundle["learning"] = [_learning(metric, models) for metric in ("train_loss", "score")]
    bundle["details"] = {"0": [_answers(rng, m) for m in range(4)], "4": [_numbers(rng)]}
    error = {"model": 1, "task": 0, "fold": 2, "status": "error", "info": "ValueError: 3 rows"}
    late = {"model": 3, "task": 5, "fold": None, "status": "timeout", "info": "60 s", "log": ""}
    bundle["failures"] += [{**error, "log": LOG}, late]
    bundle["maps"] = [_map(rng, ["business", "sport", "arts"]), _map(rng, None)]
    bundle["cards"] = [_card(d) for d in range(tasks // 2)]
    check = {
        "code": "KRT104",
        "title": "No better",
        "message": "No better than random.",
        "advice": "Look at the rows.",
    }
    places = (("note", None, 1), ("error", 2, None), ("warning", 0, 0))
    bundle["checks"] = [{**check, "level": v, "model": m, "task": t} for v, m, t in places]
    bundle["runs"] = [_run(m) for m in range(models)]
    bundle["cut"] = ["Logs are shown from their last 500 characters on."]
    return bundle


CORRUPTIONS = ("typos", "missing", "noise", "swapped", "units")
LOG = 'Traceback (most recent call last):\n  File "encoder.py", line 3\nValueError: 3 rows'


def _curve(t: int, name: str, models: int) -> dict[str, Any]:
    x = [0, 0.1, 0.2, 0.4]
    lines = []
    for m in range(models):
        drop = 0.15 + 0.06 * m + 0.1 * CORRUPTIONS.index(name) * (m % 3)
        mean = [round(0.92 - m / 60 - drop * s, 4) for s in x]
        band = [0.01 + 0.04 * s for s in x]
        low, high = ([v + sign * b for v, b in zip(mean, band, strict=True)] for sign in (-1, 1))
        lines.append({"model": m, "x": x, "mean": mean, "low": low, "high": high})
    return {"task": t, "metric": "auc", "higher": True, "corruption": name, "lines": lines}


def _learning(metric: str, models: int) -> dict[str, Any]:
    x = np.arange(1, 31)
    lines = [(0.3 + (1 + m / 5) / x, 0.1 / x) for m in range(models)]
    made = [{"mean": mean.tolist(), "std": std.tolist()} for mean, std in lines]
    numbered = [{"model": m, "x": x.tolist(), **line} for m, line in enumerate(made)]
    return {"task": 1, "metric": metric, "lines": numbered}


def _answers(rng: Any, m: int) -> dict[str, Any]:
    counts = [[40, 3, 2], [5, 30 + m, 0], [1, 1, 18]]
    bins = [(c, c**1.3, int(rng.integers(5, 90))) for c in np.linspace(0.05, 0.95, 10).tolist()]
    keys = ("confidence", "accuracy", "count")
    return {
        "model": m,
        "confusion": {"classes": ["cat", "dog", "<b>fish</b>"], "counts": counts},
        "calibration": [dict(zip(keys, each, strict=True)) for each in bins],
        "scatter": None,
        "rows": [[i % 5, f"row-{i}", "cat", "<i>dog</i>", 0.99 - i / 100] for i in range(20)],
        "items": {} if m else {f"row-{i}": f"<b>text</b> {i}" for i in range(19)},
    }


def _numbers(rng: Any) -> dict[str, Any]:
    truth = rng.normal(50, 12, 150)
    answer = truth + rng.normal(0, 6, 150)
    rows = [[0, i, float(truth[i]), float(answer[i]), None] for i in range(10)]
    pairs = np.column_stack([truth, answer]).tolist()
    return {"model": 0, "confusion": None, "calibration": None, "scatter": pairs, "rows": rows}


def _map(rng: Any, labels: list[str] | None) -> dict[str, Any]:
    label = rng.integers(3, size=240)
    centre = np.array([[0, 0], [4, 1], [1, 4]])[label]
    points = centre + rng.normal(0, 0.8, (240, 2))
    color = label if labels else points[:, 0]
    return {
        **{"model": 0, "task": 0, "method": "pca", "labels": labels, "explained": [0.41, 0.2]},
        "points": [[float(x), float(y), c.item()] for (x, y), c in zip(points, color, strict=True)],
        **({"keys": [f"k{i}" for i in range(240)], "items": {"k0": "<i>x</i>"}} if labels else {}),
    }


def _card(d: int) -> dict[str, Any]:
    return {
        **{"dataset": f"data-{d}", "source": "https://example.org/data", "license": "CC-BY-4.0"},
        **{"citation": "Somebody (2020).", "fingerprint": "ab12" * 8, "items": 500},
        **{"columns": 12, "kind": "table", "tasks": [2 * d, 2 * d + 1]},
        **dict.fromkeys(("questions", "title", "homepage", "sha256")),
    }


def _run(m: int) -> dict[str, Any]:
    versions = {"karat": "0.1.0", "python": "3.11.7", "numpy": "2.4.6", "model": f"1.{m}"}
    return {
        **{"model": m, "folder": f"encoder-{m:03d}.synthetic", "seed": 42, "versions": versions},
        "command": "karat run synthetic -m 'encoder-*' --seed 42",
        **{"platform": "Linux-x86_64", "jobs": 50, "ok": 49, "failed": 1},
    }


def make_nasty() -> dict[str, Any]:
    """Return a bundle with hostile names and texts."""
    bundle = make_full(8, 8)
    for i, name in enumerate(NASTY):
        bundle["models"][i]["name"] = name
        bundle["tasks"][i]["name"] = f"{name} task"
        bundle["tasks"][i]["kind"] = f"{name} kind"
        bundle["tasks"][i]["dataset"] = name
        bundle["cards"][i] |= {"dataset": name, "license": name, "source": "javascript:alert(1)"}
        bundle["runs"][i] |= {"command": name, "folder": name, "versions": {name: name}}
        bundle["curves"][i]["corruption"] = name
    bundle["title"] = NASTY[0]
    bundle["notes"] = [*NASTY]
    bundle["failures"] = [
        {"model": i, "task": i, "fold": 0, "status": name, "info": name, "log": name}
        for i, name in enumerate(NASTY)
    ]
    bundle["checks"] = [
        {"code": name, "level": name, "model": 0, "task": 0, "message": name, "advice": name}
        for name in NASTY
    ]
    bundle["robustness"] = {"columns": ["model", *NASTY[:2]], "rows": [list(NASTY[:3])]}
    answer = _cheapest(4, "bytes")
    for point, name in zip(answer["points"], NASTY, strict=True):
        point |= {"model": name, "base": name, "verdict": name}
    answer |= {"reference": NASTY[0], "model": NASTY[1], "sentence": NASTY[0], "notes": [*NASTY]}
    bundle["cheapest"] = [[{**answer, "rows": [[name] * 5 for name in NASTY]}]]
    bundle["details"]["0"][0]["confusion"]["classes"] = list(NASTY[:3])
    bundle["details"]["0"][0]["rows"] = [[0, 0, NASTY[0], NASTY[1], 0.5]]
    bundle["maps"][0]["labels"] = list(NASTY[:3])
    bundle["cut"] = [*NASTY]
    lines = [{"what": "answer", "text": NASTY[0]}, {"what": "margin", "text": NASTY[1]}]
    step = {"text": NASTY[0], "command": NASTY[1]}
    bundle["verdict"] = [make_verdict(0, 1, lines=lines, weak=[*NASTY], next_step=step)]
    return bundle


def make_groups() -> dict[str, Any]:
    """Return a bundle of two groups of models that share only the last model."""
    bundle = make_full(7, 8)
    tables, texts = ([0, 2, 4, 6], [0, 1, 2, 3]), ([1, 3, 5, 6], [4, 5, 6, 7])
    groups = []
    for name, (models, tasks) in (("tables", tables), ("texts", texts)):
        rows = [{"rank": 1 + i, "low": 1, "high": 4, "tie": "abcd"[i]} for i in range(4)]
        groups.append({"name": name, "models": models, "tasks": tasks, "rows": rows})
    verdicts = [make_verdict(0, 2, name="tables"), make_verdict(1, 3, name="texts")]
    notes = ["Models of tables.", "Models of texts.", "A note.", "tables: one.", "texts: two."]
    notes.append("tables, texts: both: of them.")
    more = {"verdict": verdicts, "partial": [[0, 1, 2, 5], [1, 5, 3, 5]], "notes": notes}
    return {**bundle, "groups": groups, **more}
