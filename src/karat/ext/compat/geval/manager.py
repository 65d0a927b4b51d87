"""GEval's entry point ``FrameworkManager``, and the evaluation behind ``karat geval``."""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import click
import pandas as pd

from karat.core.dataset import Dataset
from karat.core.writing import write_atomic
from karat.errors import FAILURES, DataError, DefinitionError, KaratError, KaratWarning, Unavailable
from karat.execution.arguments import Machines
from karat.execution.embedding_cache import VectorStage
from karat.execution.evaluation import evaluate as run_tasks
from karat.execution.object_store import ObjectStore
from karat.execution.plan import make_plan
from karat.execution.progress import LineProgress, Progress, choose_progress
from karat.execution.session import Stopped
from karat.execution.workers import available_cores
from karat.ext.compat.geval.extensions import ManagerRun, OwnGold, own_trials, supervise
from karat.ext.compat.geval.gold import (
    ALL,
    METRICS,
    NONE,
    TASKS,
    Coverage,
    Gold,
    GoldTrial,
    Parameters,
    annotated_entities,
    comparison_text,
    extensions_of,
    from_xml,
    load_gold,
    lower_is_better,
    ranking,
    task_names,
    trials,
    truth,
)
from karat.ext.compat.geval.result_files import (
    GevalOutcome,
    Repeat,
    Store,
    compared,
    compared_rows,
    result_tables,
    stem_of,
)
from karat.models.adapters import adapt
from karat.models.model_identity import object_identity
from karat.models.vector_files import VectorFile
from karat.models.vectors.decompression import plain_suffix
from karat.models.vectors.vector_formats import HDF5, VECTOR_FILE_SUFFIXES
from karat.results.run import Run

#: metrics printed for each gold standard
MAIN = {
    "accuracy",
    "accuracy_over_all",
    "root_mean_squared_error",
    "v_measure_score",
    "harmonic_mean",
    "kendalltau_correlation",
    "kendalltau_correlation_penalised",
}
NOTES = {
    "legacy": (
        "protocol legacy: cumulative shuffles, rows of one entity in both train and test, scaling "
        "in clustering only. Use it only to compare with published numbers. Document similarity "
        "is labeled correctly: published tables have with_weights and without_weights swapped."
    ),
    "corrected": (
        "protocol corrected: repeated folds that keep the rows of one entity together, vectors "
        "scaled on the training fold. C=nested and NestedChoice are selected on inner folds; "
        "picking the best of the other models by test score would be optimistic."
    ),
}


class FrameworkManager:
    """Evaluates a vector file on GEval's six tasks.

    >>> FrameworkManager().check_parameters(tasks=["Class", "SemAn"])["tasks"]
    ['Classification', 'SemanticAnalogies']
    """

    def __init__(
        self, progress: Progress | None = None, evaluation_manager: type | None = None
    ) -> None:
        self.progress = progress
        self.evaluation_manager = evaluation_manager

    def evaluate(
        self,
        vector_filename: str = "",
        vector_file_format: str = "txt",
        vector_size: int | None = None,
        parallel: bool = False,
        tasks: str | Iterable[str] = "_all",
        similarity_metric: Any = "cosine",
        top_k: int = 2,
        compare_with: str | Iterable[str] = "_all",
        debugging_mode: bool = False,
        analogy_function: Any = None,
        result_directory_path: str | Path | None = None,
        protocol: str = "corrected",
        gold_directory_path: str | Path | None = None,
        datasets: str | Iterable[str] = "_all",
        missing_related: str = "tied",
        svm_gamma: str = "scale",
        vector_file: str = "",
        define: Sequence[str | Path] = (),
        constraint: str = "default",
        workers: int | None = None,
        result_name: str | None = None,
    ) -> Path:
        """Run the tasks, write GEval's files, and return their folder.

        ``vector_file`` is another name of ``vector_filename``; one of them is needed.

        ``protocol="legacy"`` reproduces the published numbers. ``gold_directory_path`` is a folder
        with the layout of GEval's data; by default, missing gold standards are downloaded.
        ``datasets`` are the gold standards to evaluate; those that cannot be read are left out
        with a warning. ``missing_related`` ranks related entities without a vector last: "tied",
        or in a "random" order, as GEval's document defines it. ``svm_gamma`` is "scale", or "auto"
        as in the results that GEval recorded with scikit-learn before 0.22, whose folds the legacy
        protocol then uses for classes.
        ``similarity_metric`` is the name of a scikit-learn metric or a function of two vectors that
        returns a similarity. ``tasks`` may have own tasks, gold standards (``"Class:my_gold"``) and
        task managers, ``vector_file_format`` may be a data manager, and ``define`` are files that
        define some of them. ``constraint`` limits every job (``karat list constraints``),
        ``workers`` is the number of processes, and ``result_name`` the name of the folder.
        """
        parameters = {n: v for n, v in locals().items() if n not in ("self", "vector_file")}
        parameters["vector_filename"] = vector_filename or vector_file
        return self.evaluate_parameters(Parameters(**parameters))

    def evaluate_parameters(self, parameters: Parameters) -> Path:
        """Run the tasks of a parameter record, such as one read from an XML file."""
        if self.evaluation_manager is not None:
            manager = supervise(self.evaluation_manager, parameters.checked())
            return Path(getattr(manager, "result_directory", "results"))
        evaluation = run_parameters(parameters.checked(), self.progress)
        if evaluation.left_out:
            warnings.warn(evaluation.missing_gold(), KaratWarning, stacklevel=2)
        return evaluation.folder

    def get_parameters_xmlFile(self, path: str | Path) -> Parameters:
        """Return the parameters of an XML file: a mapping, also for ``evaluate_parameters``."""
        return from_xml(path)

    def check_parameters(self, **parameters: Any) -> dict[str, Any]:
        """Return the parameters in canonical spelling; raise if one is invalid."""
        if "vector_filename" in parameters:
            return vars(Parameters(**parameters).checked())
        if "tasks" in parameters:
            parameters["tasks"] = task_names("tasks", parameters["tasks"])
        return parameters


def run_parameters(params: Parameters, progress: Progress | None = None) -> _Evaluation:
    """Evaluate checked parameters, write GEval's files and return what happened."""
    default = LineProgress(verbose=True) if params.debugging_mode else Progress()
    evaluation = _Evaluation(params, progress or default)
    evaluation.run()
    return evaluation


@dataclass
class _Evaluation:
    """An evaluation and its results: ``values`` are the compared scores, if there are any."""

    params: Parameters
    progress: Progress
    problems: list[str] = field(default_factory=list)
    name: str = ""
    values: pd.DataFrame | None = None
    failed: bool = False
    left_out: list[str] = field(default_factory=list)
    #: gold standards without any vector, whose missing entities are written all the same
    uncovered: list[Coverage] = field(default_factory=list)
    managed: ManagerRun = field(init=False)

    def run(self) -> None:
        root = Path(self.params.result_directory_path or "results")
        store = Store(root)
        store.check(self.params.compare_with)  # type: ignore[arg-type]
        self.begun = datetime.now()
        encoder, identity = self._encoder()
        self.format = encoder.suffix.removeprefix(".")
        self.own = extensions_of(self.params)
        managers = self.own.managers(self.params.tasks)
        loaded = [*filter(None, map(self._loaded, self._chosen(bool(managers))))]
        self._convert(encoder, identity, [] if managers else [data for _, data, _ in loaded])
        self._check_size()
        coverages = [self._covered(*gold, encoder) for gold in loaded]
        covered = [coverage for coverage in coverages if coverage is not None]
        self._make_folder(root, bool(covered or managers))
        self.managed = ManagerRun(self.params, self.folder, encoder)
        planned = {coverage.gold: self._planned(coverage) for coverage in covered}
        try:
            runs = self._run(planned)
        except Stopped as stop:
            self.problems.insert(0, f"stopped: {stop.progress}; nothing was added to {store.path}")
            self._write(stop.runs, covered, planned, None)
            raise
        self.managed.run(managers)
        self.problems += self.managed.problems
        self._write(runs, covered, planned, store)

    def _make_folder(self, root: Path, useful: bool) -> None:
        """Make the folder, write the entities of gold standards without any vector, or raise."""
        message = f"no gold standard can be evaluated with {self.params.vector_filename}:"
        failure = "\n  ".join([message, *self.problems])
        if not useful and not self.uncovered:
            raise DataError(failure)
        name = self.params.result_name or f"result_{self.begun:%Y-%m-%d_%H-%M-%S}"
        self.folder = _new_folder(root, name)
        missing = [coverage.write(self.folder) for coverage in self.uncovered]
        if not useful:
            raise DataError(f"{failure} Missing entities: {missing[0]}")

    def missing_gold(self) -> str:
        """Return a message that names the gold standards that could not be read."""
        names = ", ".join(self.left_out)
        return (
            f"not evaluated, as the gold standard is missing: {names}. The results of the others "
            f"are in {self.folder}; choose gold standards with datasets."
        )

    def _chosen(self, managed: bool) -> list[Gold]:
        """Return the gold standards of the tasks; own task managers need none."""
        wanted, tasks = self.params.datasets, self.params.tasks
        golds = self.own.golds(tasks)
        if ALL not in wanted:
            golds = [gold for gold in golds if isinstance(gold, OwnGold) or gold.name in wanted]
        if not golds and not managed:
            raise DefinitionError(
                f"datasets: none of {', '.join(wanted)} is a gold standard of {', '.join(tasks)}."
            )
        return golds

    def _check_size(self) -> None:
        """Raise if the metric does not fit the vectors."""
        chosen = self.own.labels(self.params.tasks)
        measured = {"Clustering", "DocumentSimilarity", "EntityRelatedness"} & {*chosen}
        if self.params.similarity_metric == "haversine" and measured and self.size not in (0, 2):
            raise DataError(
                f"similarity_metric haversine needs vectors of 2 dimensions (latitude and "
                f"longitude in radians); {self.params.vector_filename} has {self.size}. Choose "
                f"another metric, such as cosine."
            )

    def _encoder(self) -> tuple[VectorFile, str]:
        """Return the vector file and its identity."""
        params = self.params
        # a file suffix that determines the format overrides the default "txt"
        by_suffix = plain_suffix(Path(params.vector_filename)) in VECTOR_FILE_SUFFIXES
        form = (
            None if by_suffix and params.vector_file_format == "txt" else params.vector_file_format
        )
        encoder = VectorFile(params.vector_filename, params.vector_size, form)
        self.model = adapt(encoder, Path(params.vector_filename).name)
        if self.model.unavailable:
            raise DataError(self.model.unavailable)
        return encoder, object_identity(encoder) or ""

    def _convert(self, encoder: VectorFile, identity: str, used: Sequence[Dataset]) -> None:
        """Convert the vector file into the cache, or read only the vectors that these data use."""
        # analogies are searched in all vectors, and worker processes read the converted file
        some = used and not self._workers() and all(data.kind != "items" for data in used)
        names = [name for data in used for name in data.items.index] if some else None
        with tempfile.TemporaryDirectory(prefix="karat-") as scratch:
            folder = Path(scratch)
            stage = VectorStage(ObjectStore(folder / "store"), self.progress, True, folder)
            stage.convert(encoder, identity, self.model, names)
        self.size = 0 if encoder.suffix in HDF5 else encoder.transform([]).shape[1]

    def _loaded(self, gold: Gold) -> tuple[Gold, Dataset, Sequence[str]] | None:
        """Return a gold standard with its data and the entities of annotations, if it is found."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                folder: Any = self.params.gold_directory_path
                is_own = isinstance(gold, OwnGold)
                data = gold.load() if isinstance(gold, OwnGold) else load_gold(gold, folder)
                documents = gold.task == "DocumentSimilarity" and not is_own
                return gold, data, annotated_entities(gold, folder) if documents else []
        except (DataError, Unavailable) as error:
            self.problems.append(f"{gold.task}, {gold.name}: left out: {error}")
            self.left_out.append(f"{gold.task} {gold.name}")
            return None

    def _covered(
        self, gold: Gold, data: Dataset, mentions: Sequence[str], encoder: VectorFile
    ) -> Coverage | None:
        coverage = Coverage.of(gold, data, encoder, mentions)
        if not coverage.questions.any():
            self.problems.append(
                f"{gold.task}, {gold.name}: left out: none of its {len(coverage.items)} entities "
                f"has a vector."
            )
            self.uncovered.append(coverage)
            return None
        return coverage

    def _planned(self, coverage: Coverage) -> list[GoldTrial]:
        """Return the trials that can be run; add the reasons against the others to the problems."""
        # GEval joins these rows with the vectors before it splits
        trained = coverage.gold.task in ("Classification", "Regression")
        joined = self.params.protocol == "legacy" and trained
        data = coverage.covered() if joined else coverage.data
        runnable = []
        gold = coverage.gold
        defined = isinstance(gold, OwnGold) and gold.defined is not None
        for trial in own_trials(gold, data) if defined else trials(gold, data, self.params):
            try:
                make_plan([self.model], [trial.task])
                runnable.append(trial)
            except KaratError as error:
                self.problems.append(f"{trial.task.name}: not run: {error}")
        return runnable

    def _run(self, planned: Mapping[Gold, list[GoldTrial]]) -> list[Run]:
        tasks = [trial.task for group in planned.values() for trial in group]
        if not tasks:
            return []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KaratWarning)  # problems are printed at the end
            return run_tasks(
                {self.model.name: self.model.prototype},
                tasks,
                output=self.folder / "karat",  # with all predictions
                workers=Machines(self._workers(), constraint=self.params.constraint),
                define=self.params.define,
                progress=self.progress,
            )

    def _workers(self) -> int:
        """Return the number of worker processes; limits other than the default need one."""
        least = 0 if self.params.constraint == "default" else 1
        return max(self.params.workers or (available_cores() if self.params.parallel else 0), least)

    def _write(
        self,
        runs: list[Run],
        covered: list[Coverage],
        planned: Mapping[Gold, list[GoldTrial]],
        store: Store | None,
    ) -> None:
        records = [record for run in runs for record in run.records()]
        done = {record["task"] for record in records if record["status"] == "ok"}
        self.failed = any(record["status"] in FAILURES for record in records)
        self.failed |= bool(self.managed.problems)
        self.problems += _grouped_problems(records)
        legacy = self.params.protocol == "legacy"
        by_task: dict[str, list[dict[str, Any]]] = {}
        for record in records:
            by_task.setdefault(record["task"], []).append(record)
        repeats: list[Repeat] = []
        for coverage in covered:
            finished = [trial for trial in planned[coverage.gold] if trial.task.name in done]
            if finished:
                repeats += GevalOutcome(coverage, finished, runs[0], by_task, legacy).repeats()
        written = [coverage.write(self.folder).name for coverage in covered]
        for name, table in result_tables(repeats).items():
            write_atomic(self.folder / name, table.to_csv(index=False))
            written.append(name)
        if (repeats or self.managed.rows) and store:
            for name, table in self._compare(repeats, records, store).items():
                write_atomic(self.folder / name, comparison_text(table))
                written.append(name)
        self._log(covered, records, written)

    def _compare(
        self, repeats: list[Repeat], records: list[dict[str, Any]], store: Store
    ) -> dict[str, pd.DataFrame]:
        """Store the scores, and return them with those of earlier runs, and their ranks."""
        legacy = self.params.protocol == "legacy"
        widths = (int(record["dimensions"]) for record in records if record.get("dimensions"))
        self.size = self.size or next(widths, 0)
        rows = [*compared_rows(repeats), *self.managed.rows]
        self.name = store.add(stem_of(self.params, self.size), rows)
        self.values = compared(store.read(), self.name, self.params.compare_with)  # type: ignore[arg-type]
        ranks = ranking(self.values, self.name, first=0 if legacy else 1)
        if legacy:
            ranks = ranks.drop(columns=["coverage", "lowest_coverage", "highest_coverage"])
        return {"comparison_values.csv": self.values, "comparison_ranking.csv": ranks}

    def _log(
        self, covered: list[Coverage], records: list[dict[str, Any]], written: list[str]
    ) -> None:
        lines = ["TESTED CONFIGURATION", *self._configuration(), ""]
        lines += [NOTES[self.params.protocol], ""]
        for task in self.own.labels(self.params.tasks):
            lines += [
                f"  {coverage.summary()}" for coverage in covered if coverage.gold.task == task
            ]
            spent = [r.get("seconds") or 0.0 for r in records if r["task"].startswith(f"{task} ")]
            jobs = "1 job" if len(spent) == 1 else f"{len(spent)} jobs"
            lines.append(f"{task} execution time: {sum(spent):.2f} seconds, {jobs}")
        lines += self.managed.log
        elapsed = (datetime.now() - self.begun).total_seconds()
        lines += [f"all tasks, from start to end: {elapsed:.2f} seconds", ""]
        lines += ["PROBLEMS", *(self.problems or ["none"]), ""]
        if self.params.debugging_mode:
            lines += ["JOBS", *(_job_line(record) for record in records), ""]
        lines += ["FILES", *written]
        write_atomic(self.folder / "log.txt", "\n".join(lines) + "\n")

    def _configuration(self) -> list[str]:
        named = {f.name: getattr(self.params, f.name) for f in fields(Parameters)}
        named["vector_file_format"] = self.format
        named["vector_size"] = self.size or self.params.vector_size or "as in the file"
        named["run id"] = self.name or "none: nothing was scored"
        named["started"] = self.begun.strftime("%Y-%m-%d %H:%M:%S")
        for name, value in named.items():
            if callable(value):
                named[name] = getattr(value, "__qualname__", repr(value))
            elif isinstance(value, list | tuple):
                named[name] = ", ".join(map(str, value))
        return [f"{name}: {value}" for name, value in named.items()]


def _grouped_problems(records: list[dict[str, Any]]) -> list[str]:
    """Return one line per distinct problem, with the number of folds it affected."""
    counts = Counter(
        (record["task"], record["status"], record["info"])
        for record in records
        if record["status"] != "ok"
    )
    return [
        f"{task}: {status}{f' ({count} folds)' if count > 1 else ''}: {info}"
        for (task, status, info), count in counts.items()
    ]


def _job_line(record: Mapping[str, Any]) -> str:
    scores = {name: value for view in record["views"] for name, value in view["scores"].items()}
    numbers = ", ".join(f"{name} {value}" for name, value in scores.items())
    notes = "; ".join(record["notes"])
    parts = [f"{record['task']}, fold {record['fold']}", record["status"], numbers, notes]
    return ": ".join(part for part in parts if part)


def _new_folder(root: Path, stem: str) -> Path:
    for attempt in count(1):
        folder = root / (stem if attempt == 1 else f"{stem}-{attempt}")
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            if root.is_file():
                raise DataError(f"{root} is a file; choose another result directory.") from None
        except OSError as error:
            raise DataError(f"cannot write into {root}: {error.strerror}.") from error
    raise AssertionError("unreachable")


def run_geval(parameters: Parameters) -> int:
    """Evaluate, print the best score of each gold standard, and return the exit code."""
    verbose = truth("debugging_mode", parameters.debugging_mode)
    try:
        report = run_parameters(parameters.checked(), choose_progress(verbose=verbose))
    except Stopped as stop:
        click.echo(f"stopped: {stop.progress}.", err=True)
        return 130
    _show(report)
    if report.left_out:
        click.echo(f"error: {report.missing_gold()}", err=True)
        return 2
    return 1 if report.failed or report.values is None else 0


def _show(report: _Evaluation) -> None:
    """Print one line per gold standard and main metric, then the problems and the folder."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("task", "gold standard", "coverage", "model", "metric", "score"):
        justify: Any = "right" if column in ("coverage", "score") else "left"
        table.add_column(column, justify=justify, no_wrap=column not in ("gold standard", "model"))
    for cells in _best_scores(report):
        table.add_row(*map(Text, cells))
    console = Console()
    needed = console.measure(table).maximum  # in a file, nothing is cut off
    console.print(table, width=None if console.is_terminal else max(console.width, needed))
    for problem in report.problems:
        console.print(Text(problem), style="yellow")
    console.print(Text(f"\n{report.folder}"))


def _best_scores(report: _Evaluation) -> Iterator[tuple[str, ...]]:
    if report.values is None:
        return
    table = report.values[report.values["test_name"] == report.name]
    keys = ["task_name", "gold_standard_file", "metric"]
    for (task, gold, metric), rows in table.groupby(keys, sort=False):
        # selected on inner folds only, so preferred to the best score on the test folds
        honest = rows["model"] == "NestedChoice"
        rows = rows[honest] if honest.any() else rows
        scores = pd.to_numeric(rows["score_value"])
        if (metric not in MAIN and task in METRICS) or scores.isna().all():
            continue
        best: Any = rows.loc[scores.idxmin() if lower_is_better(str(metric)) else scores.idxmax()]
        named = [best[name] for name in ("model", "model_configuration") if best[name] != NONE]
        model = next(iter(named), "")
        others = f" (best of {len(rows)})" if len(rows) > 1 else ""
        coverage, score = f"{best['coverage']:.1%}", f"{best['score_value']:.4f}"
        yield (
            TASKS.get(str(task), str(task)),
            str(gold),
            coverage,
            model + others,
            str(metric),
            score,
        )
