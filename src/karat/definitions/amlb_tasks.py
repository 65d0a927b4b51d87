"""Translate a benchmark of the AutoML Benchmark into tasks and a suite."""

from __future__ import annotations

from typing import Any

from karat import registry
from karat.definitions.amlb import IGNORED, LIMITS, Translation, limits_of, plain_node
from karat.definitions.places import Key, Node, mistake_at
from karat.errors import did_you_mean

DEFAULTS = "__defaults__"
TASK_KEYS = (
    *("name", "enabled", "description", "openml_task_id", "openml_dataset_id", "dataset", "id"),
    *("metric", *LIMITS, "min_vol_size_mb", "quantile_levels", *IGNORED),
)
DATASET_KEYS = ("path", "train", "test", "target", "type", "features", "name")
SERIES_KEYS = (
    *("freq", "forecast_horizon_in_steps", "seasonality", "id_column", "timestamp_column"),
)
TYPES = ("binary", "multiclass", "classification", "regression")
#: their default metrics; the first is the result
USUAL = {
    "binary": ["auc", "logloss", "acc", "balacc"],
    "multiclass": ["logloss", "acc", "balacc"],
    "numbers": ["rmse", "r2", "mae"],
}
#: default number of folds of a single file
FOLDS = 10


def add_benchmark(made: Translation, root: Node, suite: str) -> None:
    """Add the tasks of a list as ``suite.name``, and the suite of the runnable ones."""
    defaults: dict[Key, Node] = {}
    tasks: dict[str, Node] = {}
    for place, node in enumerate(root.value, start=1):
        name = node.child("name")
        if name is None:
            text = f"task {place} of the list has no name; add name: …"
            made.mistakes.append(mistake_at(node, ("tasks",), text))
        elif name.value == DEFAULTS:
            made.check_keys(node, ("tasks", DEFAULTS), TASK_KEYS)
            defaults = {key: child for key, child in node.value.items() if key != "name"}
        elif not isinstance(name.value, str | int) or isinstance(name.value, bool):
            made.wrong(name, ("tasks", "?", "name"), "a name")
        elif any(str(name.text).lower() == other.lower() for other in tasks):
            made.wrong(name, ("tasks", str(name.text), "name"), "a unique name")
        else:
            made.check_keys(node, ("tasks", str(name.text)), TASK_KEYS)
            tasks[str(name.text)] = node
    left_out: dict[Key, Node] = {}
    runnable = []
    for name, node in tasks.items():
        task = _Task(made, suite, name, node.renewed({**defaults, **node.value}))
        if task.refused:
            left_out[name] = plain_node(task.refused, node)
        else:
            runnable.append(plain_node(f"{suite}.{name}", node))
        made.entries.append(("tasks", f"{suite}.{name}", task.definition()))
    suite_entry = {"tasks": root.renewed(runnable), "left_out": root.renewed(left_out)}
    made.entries.append(("suites", suite, root.renewed(suite_entry)))


class _Task:
    """One of their tasks during translation; ``refused`` is the reason why it cannot be run."""

    def __init__(self, made: Translation, suite: str, name: str, node: Node) -> None:
        self.made = made
        self.name = name
        self.node = node
        self.path: tuple[Key, ...] = ("tasks", f"{suite}.{name}")
        self.refused = ""
        self.entry: dict[Key, Any] = {"called": name}
        self._limits()
        self._data()
        self._metrics()
        enabled = node.child("enabled")
        if enabled is not None and enabled.value is False:
            self._refuse(enabled, "it is not enabled.")

    def definition(self) -> Node:
        """Return the definition; that of a refused task holds only the reason."""
        if self.refused:
            return plain_node({"called": self.name, "refuse": self.refused}, self.node)
        return plain_node(self.entry, self.node)

    def _refuse(self, node: Node, why: str) -> None:
        self.refused = self.refused or f'{node.place}: the task "{self.name}" is skipped: {why}'

    def _limits(self) -> None:
        if (text := self.node.child("description")) is not None:
            self.entry["description"] = text
        for key, value in limits_of(self.made, self.node, self.path):
            if key in LIMITS:
                self.entry[key] = value

    def _metrics(self) -> None:
        metric = self.node.child("metric")
        if metric is None or metric.value in (None, []):
            self.entry["usual"] = USUAL
            return
        listed = metric.value if isinstance(metric.value, list) else [metric]
        for each in listed:
            if not isinstance(each.value, str):
                self.made.wrong(metric, (*self.path, "metric"), "a metric or a list of metrics")
                return
            if each.value not in registry.metrics:
                near = did_you_mean(each.value, registry.metrics)
                self._refuse(each, f'unknown metric "{each.value}".{near}')
        self.entry["metrics"] = metric.renewed(listed)

    # -- data -------------------------------------------------------------------------------

    def _data(self) -> None:
        given = [
            key
            for key in ("openml_task_id", "openml_dataset_id", "dataset")
            if self.node.child(key) is not None and self.node.value[key].value is not None
        ]
        if not given:
            self._refuse(self.node, "it has neither openml_task_id nor dataset.")
            return
        if len(given) > 1:
            self._refuse(
                self.node.value[given[1]], f"{' and '.join(given)} are mutually exclusive."
            )
            return
        node = self.node.value[given[0]]
        if given[0] == "dataset":
            self._files(node)
        elif not isinstance(node.value, int) or isinstance(node.value, bool) or node.value < 1:
            self.made.wrong(node, (*self.path, given[0]), "an OpenML id")
        elif given[0] == "openml_task_id":
            self._load(node, "karat.data.openml_tasks:openml_task", task_id=node)
            self.entry["split"] = {"use": "karat.data.openml_tasks:openml_folds", "task_id": node}
        else:
            self._load(node, "karat.data.openml:openml_table", data_id=node)
            self.entry["split"] = {"use": "kfold", "folds": self._folds()}

    def _load(self, node: Node, use: str, **params: Any) -> None:
        self.entry["dataset"] = plain_node({"load": {"use": use, **params}}, node)

    def _folds(self) -> int:
        folds = self.entry.get("folds")
        return folds.value if folds is not None and folds.value >= 2 else FOLDS

    def _files(self, node: Node) -> None:
        if not isinstance(node.value, str | dict | list) or not node.value:
            self.made.wrong(node, (*self.path, "dataset"), "a path, a mapping or a list of paths")
            return
        if isinstance(node.value, dict):
            kind = node.child("type")
            series = [key for key in SERIES_KEYS if key in node.value]
            if series or (kind is not None and kind.value == "timeseries"):
                self._refuse(
                    node.value[series[0]] if series else node,
                    "it is a time series, which is not supported.",
                )
                return
            self.made.check_keys(node, (*self.path, "dataset"), DATASET_KEYS)
            if kind is not None and kind.value is not None and kind.value not in TYPES:
                self.made.wrong(kind, (*self.path, "dataset", "type"), f"one of {', '.join(TYPES)}")
            elif kind is not None and kind.value is not None:
                numbers = kind.value == "regression"
                self.entry["kind"] = "regression" if numbers else "classification"
        self._load(node, "karat.data.amlb:amlb_table", dataset=node)
        self.entry["split"] = {"use": "karat.data.amlb:amlb_folds", "folds": self._folds()}
