"""Export for places that publish results: model cards and Every Eval Ever.

A model card has its results in the key ``model-index`` of its metadata. Every Eval Ever has a JSON
file per model and suite, by the schema of the Python package ``every_eval_ever``. Both have the
mean over folds on clean data, its interval, the hash of the data as revision, and the command.
"""

from __future__ import annotations

import io
import json
import math
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from ruamel.yaml import YAML

from karat import __version__
from karat.analysis.leaderboard import fold_ratios, within_limits
from karat.core.files import safe_name, safe_names
from karat.core.formatting import plain, rounded
from karat.errors import (
    DataError,
    KaratError,
)
from karat.metrics.metric import get_metric
from karat.output.markdown_table import escape_markdown
from karat.results.load import Gathered, gather_scores
from karat.stats.paired_tests import CONFIDENCE, corrected_t

if TYPE_CHECKING:
    from karat.results.run import Runs

URL = "https://github.com/karat-bench/karat"
#: version of the schema of Every Eval Ever
EEE_SCHEMA = "0.3.0"
#: Karat does not know who ran an evaluation
SOURCE = {
    "source_name": "Karat",
    "source_type": "evaluation_run",
    "source_organization_name": "unknown",
    "evaluator_relationship": "other",
}
#: names of tasks on the Hugging Face hub, by kind and modality; others have the name of the kind
TASKS = {
    ("classification", "table"): "tabular-classification",
    ("regression", "table"): "tabular-regression",
    ("classification", "text"): "text-classification",
    ("similarity", "text"): "sentence-similarity",
    ("retrieval", "text"): "text-retrieval",
    ("classification", "entity"): "graph-ml",
}
#: names of metrics on the hub; others have Karat's names
METRICS = {
    "acc": "accuracy",
    "auc": "roc_auc",
    "auc_ovr": "roc_auc",
    "f1_macro": "f1",
    "spearman": "spearmanr",
    "pearson": "pearsonr",
}


@dataclass(frozen=True)
class _Score:
    """The score of a model on a task in a metric, with its interval; NaN if it has no interval."""

    metric: str
    higher: bool
    mean: float
    low: float
    high: float
    spread: float
    folds: int


@dataclass(frozen=True)
class _Result:
    """The scores of a model on a task, the task's facts in the plan, and the run's plan."""

    task: str
    kind: str
    facts: Mapping[str, Any]
    settings: Mapping[str, Any]
    ended: str
    scores: list[_Score]

    @property
    def command(self) -> str:
        """The command of the run, or an empty text."""
        command = self.settings.get("command") or ""
        return command if isinstance(command, str) else " ".join(map(str, command))


def _results(runs: Runs) -> dict[str, list[_Result]]:
    """Return the results by model, in the order of the tasks."""
    gathered = gather_scores(runs)
    table = gathered.scores[gathered.scores["value"].notna()]
    tasks = list(dict.fromkeys(table["task"]))
    ratios = dict(zip(tasks, fold_ratios(gathered, tasks), strict=True))
    values: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    for (model, task, metric), part in table.groupby(["model", "task", "metric"], sort=False):
        values.setdefault((model, task), {})[metric] = part["value"].to_numpy(dtype=float)
    results: dict[str, list[_Result]] = {}
    for (model, task), by_metric in values.items():
        settings, facts, ended = _origin(gathered, model, task)
        order = sorted(by_metric, key=lambda name: (name != gathered.metrics.get(task), name))
        scores = [_score(gathered, name, by_metric[name], ratios[task]) for name in order]
        kind = str(gathered.kinds.get(task) or "")
        results.setdefault(model, []).append(
            _Result(
                task=task, kind=kind, facts=facts, settings=settings, ended=ended, scores=scores
            )
        )
    if not results:
        raise DataError("the runs have no score to export.")
    return {
        model: sorted(of_model, key=lambda r: tasks.index(r.task))
        for model, of_model in results.items()
    }


def _score(gathered: Gathered, metric: str, values: np.ndarray, ratio: float) -> _Score:
    tested = corrected_t(values, ratio)
    mean = np.array([values.mean()])
    ends = np.array([[tested.low], [tested.high]], dtype=float)
    low, high = within_limits(ends[0], ends[1], mean, metric)[:, 0]
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    try:
        higher = gathered.higher(metric)
    except KaratError:
        higher = True
    return _Score(
        metric=metric,
        higher=higher,
        mean=float(mean[0]),
        low=float(low),
        high=float(high),
        spread=spread,
        folds=len(values),
    )


def _origin(gathered: Gathered, model: str, task: str) -> tuple[Any, Any, str]:
    """Return the plan of the newest run with a task, the task's facts, and its last time."""
    origins: list[tuple[str, Any, Any, str]] = []
    for run, name, labels in gathered.sources:
        tasks = [entry for entry in run.about["tasks"] if labels.get(entry["name"]) == task]
        if name == model and tasks:
            times = [str(r["utc"]) for r in run.records() if r["task"] == tasks[0]["name"]]
            origins.append((str(run.about["stamp"]), run.about, tasks[0], max(times, default="")))
    _, settings, facts, ended = max(origins, key=lambda origin: origin[0], default=("", {}, {}, ""))
    return settings, facts, ended


def _finite(**values: float) -> dict[str, float]:
    return {name: value for name, value in values.items() if math.isfinite(value)}


# -- model cards ----------------------------------------------------------------------------


def model_cards(runs: Runs) -> Iterator[tuple[str, str]]:
    """Yield ``README.md`` of every model, with its results as metadata and as a table."""
    by_model = _results(runs)
    for name, (model, results) in zip(safe_names(by_model), by_model.items(), strict=True):
        folder = f"{name}/" if len(by_model) > 1 else ""
        yield f"{folder}README.md", _card(model, results)


def _card(model: str, results: list[_Result]) -> str:
    index = [{"name": plain(model), "results": [_index_entry(result) for result in results]}]
    file = io.StringIO()
    writer: Any = YAML(typ="safe", pure=True)
    writer.default_flow_style, writer.sort_base_mapping_type_on_output = False, False
    writer.width = 10_000
    writer.dump({"model-index": index}, file)
    lines = ["| task | metric | score | 95 % interval | folds |", "|---|---|---|---|---|"]
    for result in results:
        for score in result.scores:
            ends = f"{rounded(score.low)} – {rounded(score.high)}"
            span = ends if math.isfinite(score.low) else "–"
            cells = (result.task, score.metric, rounded(score.mean), span, str(score.folds))
            lines.append(f"| {' | '.join(escape_markdown(plain(cell)) for cell in cells)} |")
    commands = list(dict.fromkeys(result.command for result in results if result.command))
    console = "\n".join(plain(command).replace("`", "'") for command in commands)
    ran = f"\nEvaluated with [Karat]({URL}) {__version__}"
    ran += f":\n\n```console\n{console}\n```\n" if commands else ".\n"
    title = escape_markdown(plain(model))
    return f"---\n{file.getvalue()}---\n\n# {title}\n\n" + "\n".join(lines) + "\n" + ran


def _index_entry(result: _Result) -> dict[str, Any]:
    """Return a result as ``model-index`` has it."""
    modality = str(result.facts.get("modality") or "")
    data_facts = result.facts.get("about")
    data_facts = data_facts if isinstance(data_facts, Mapping) else {}
    name = str(result.facts.get("dataset") or result.task)
    dataset = {
        "name": plain(data_facts.get("title") or name),
        "type": plain(name),
        "config": plain(result.task),
        "split": "test",
    }
    if result.facts.get("fingerprint"):
        dataset["revision"] = str(result.facts["fingerprint"])
    task = TASKS.get((result.kind, modality), result.kind or "other")
    return {
        "task": {"type": task, "name": plain(result.task)},
        "dataset": dataset,
        "metrics": [_index_metric(result, score) for score in result.scores],
        "source": {"name": f"Karat {result.settings.get('karat') or __version__}", "url": URL},
    }


def _index_metric(result: _Result, score: _Score) -> dict[str, Any]:
    args: dict[str, Any] = {"folds": score.folds}
    args |= _finite(std=score.spread)
    if math.isfinite(score.low):
        args |= {"confidence": CONFIDENCE, "low": score.low, "high": score.high}
    args |= {"seed": result.settings["seed"]} if result.settings.get("seed") is not None else {}
    args |= {"command": plain(result.command)} if result.command else {}
    kind = METRICS.get(score.metric, score.metric)
    return {"type": kind, "value": score.mean, "name": score.metric, "args": args}


# -- Every Eval Ever ------------------------------------------------------------------------


def every_eval_ever_records(runs: Runs) -> Iterator[tuple[str, str]]:
    """Yield ``data/<suite>/<developer>/<model>/<id>.json`` of every model and suite."""
    for model, results in _results(runs).items():
        suites = dict.fromkeys(str(result.settings.get("suite") or "") for result in results)
        for suite in suites:
            of_suite = [
                result for result in results if str(result.settings.get("suite") or "") == suite
            ]
            developer, _, name = model.rpartition("/")
            record = _eee_record(model, developer or "unknown", suite or "unknown", of_suite)
            text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
            # the same results have the same name
            number = uuid.uuid5(uuid.NAMESPACE_URL, f"{URL}#{text}")
            path = [safe_name(part) for part in (suite or "unknown", developer or "unknown", name)]
            yield "/".join(["data", *path, f"{number}.json"]), text


def _eee_record(model: str, developer: str, suite: str, results: list[_Result]) -> dict[str, Any]:
    settings = results[0].settings
    ended = max(result.ended for result in results)
    moment = _epoch(ended)
    params = settings.get("params") or {}
    details = {"deployment_type": "unknown", "model_availability": "unknown"}
    details |= {"version": str(settings["version"])} if settings.get("version") else {}
    details |= {"parameters": json.dumps(params, sort_keys=True)} if params else {}
    return {
        "schema_version": EEE_SCHEMA,
        "evaluation_id": f"{suite}/{model}/{moment}",
        "evaluation_timestamp": moment,
        "retrieved_timestamp": moment,
        "source_metadata": SOURCE,
        "eval_library": {
            "name": "karat",
            "version": str(settings.get("karat") or __version__),
            "additional_details": {"url": URL},
        },
        "model_info": {
            "name": model,
            "id": model if "/" in model else f"{developer}/{model}",
            "developer": developer,
            "additional_details": details,
        },
        "evaluation_results": [
            _eee_result(result, score) for result in results for score in result.scores
        ],
    }


def _epoch(utc: str) -> str:
    try:
        moment = datetime.fromisoformat(utc)
    except ValueError:
        return "0"
    return str(int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()))


def _eee_result(result: _Result, score: _Score) -> dict[str, Any]:
    data = {"fingerprint": str(result.facts.get("fingerprint") or "")}
    entry: dict[str, Any] = {
        "evaluation_result_id": f"{result.task}/{score.metric}",
        "evaluation_name": result.task,
        "source_data": {
            "dataset_name": str(result.facts.get("dataset") or result.task),
            "source_type": "other",
            "additional_details": {name: value for name, value in data.items() if value},
        },
        "metric_config": {
            "metric_id": METRICS.get(score.metric, score.metric),
            "metric_name": score.metric,
            "lower_is_better": not score.higher,
            "score_type": "continuous",
            **_limits(score.metric),
        },
        "score_details": {"score": score.mean, **_uncertainty(score)},
    }
    if result.command:
        entry["generation_config"] = {"generation_args": {"execution_command": result.command}}
    return entry


def _limits(metric: str) -> dict[str, Any]:
    try:
        low, high = get_metric(metric).range
    except KaratError:
        return {"min_score": None, "max_score": None}
    ends = {"min_score": low, "max_score": high}
    texts = {math.inf: "Infinity", -math.inf: "-Infinity"}
    return {name: texts.get(value, value) for name, value in ends.items()}


def _uncertainty(score: _Score) -> dict[str, Any]:
    """Return the interval over folds, corrected after Nadeau and Bengio."""
    if not math.isfinite(score.low):
        return {}
    interval = {"lower": score.low, "upper": score.high, "confidence_level": CONFIDENCE}
    method = "corrected resampled t interval over folds (Nadeau and Bengio, 2003)"
    interval_facts = {
        "confidence_interval": {**interval, "method": method},
        "num_samples": score.folds,
    }
    return {"uncertainty": {**interval_facts, **_finite(standard_deviation=score.spread)}}
