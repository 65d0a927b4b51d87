"""GEval over HTTP: what can be chosen, checks of an order, and results as JSON and as a zip."""

from __future__ import annotations

import csv
import io
import re
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pandas as pd

from karat.config.catalog import Catalog
from karat.core import registry
from karat.data.download import is_local
from karat.errors import DataError, DefinitionError, KaratError, did_you_mean
from karat.ext.compat.geval.extensions import Extensions
from karat.ext.compat.geval.gold import (
    ALL,
    GOLD_STANDARDS,
    PROTOCOLS,
    TASKS,
    Gold,
    lower_is_better,
    ranking,
    task_names,
)
from karat.ext.compat.geval.result_files import Store, compared
from karat.ext.serve.server import ApiError, ServerSettings
from karat.ext.serve.snapshots import ServedRun, count_job_states
from karat.ext.serve.submissions import RESULT, GevalOrder
from karat.models.vectors.vector_formats import VECTOR_FILE_FORMATS, check_format
from karat.probes.similarity import Measure, names
from karat.results.run_folders import find_run_folders

#: files of a result folder that clients get; the folder karat has predictions and logs of jobs
ENDINGS = ("_results.csv", "_ignoredData.txt", "_ignoredData.csv", "log.txt")
COMPARISON = ("comparison_values.csv", "comparison_ranking.csv")
#: largest number of rows of a file as JSON, and of bytes of all files in a zip
MAX_ROWS, MAX_BYTES = 5000, 256 * 2**20
RESULT_NAME = RESULT + r"[\w.@+-]+"
NO_GOLD = (
    "start karat serve with --geval-gold DIR, the folder with GEval's data, or put the data at "
    "$KARAT_DATA/geval"
)


@partial(registry.served_systems.register, "geval")
class GevalServer:
    """GEval's tasks on a server; the results are in the served folder, as of ``karat geval``."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._progress: dict[Path, ServedRun] = {}

    @cached_property
    def extensions(self) -> Extensions:
        """The tasks and gold standards of this server besides GEval's own."""
        gold = self.settings.geval_gold
        return Extensions(self.settings.define, None if gold is None else str(gold))

    # -- what can be chosen ---------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """Return everything that an order can name, and which gold standards are here."""
        with self._lock:
            _ = self.extensions.catalog
            golds = [
                {"task": gold.task, "name": gold.name, "available": self._is_here(gold)}
                for gold in GOLD_STANDARDS
            ]
            choices: dict[str, Any] = {
                "tasks": [{"name": long, "short": short} for long, short in TASKS.items()],
                "gold_standards": golds,
                "formats": [*VECTOR_FILE_FORMATS, *registry.vector_formats],
                "similarity_metrics": [*names(), *registry.measures],
                "analogy_functions": list(registry.analogy_functions),
                "protocols": list(PROTOCOLS),
            }
        here = any(gold["available"] for gold in golds)
        return {**choices, "message": "" if here else f"There are no gold standards: {NO_GOLD}."}

    def _is_here(self, gold: Gold) -> bool:
        """Return whether the files of a gold standard are in the folder, installed or cached."""
        definition = self._definitions.get("datasets", gold.dataset)
        lists = [definition["sources"]]
        lists += [pairs] if (pairs := (definition.get("options") or {}).get("pairs")) else []
        folder = self.settings.geval_gold
        if folder is None:
            return all(map(is_local, lists))
        places = [next(s["folder"] for s in sources if "folder" in s) for sources in lists]
        return all((folder / path.removeprefix("geval/")).is_file() for path in places)

    @cached_property
    def _definitions(self) -> Any:
        return Catalog().definitions

    def available_tasks(self, tasks: Sequence[str]) -> list[str]:
        """Return the tasks to run: gold standards that are not on this machine are left out."""
        available = []
        for task in task_names("tasks", list(tasks) or ALL, self.extensions):
            golds = [
                standard for standard in self.extensions.golds([task]) if standard in GOLD_STANDARDS
            ]
            here = [gold for gold in golds if self._is_here(gold)]
            if len(here) == len(golds):  # also of tasks that are not GEval's
                available.append(task)
            else:
                available += [f"{task}:{gold.name}" for gold in here]
        return available

    # -- orders ---------------------------------------------------------------------------------

    def check(self, order: GevalOrder) -> None:
        """Raise an ApiError if an order names something that is not on this server."""
        with self._lock:
            _ = self.extensions.catalog
            self._check_names(order)
            if not self.available_tasks(order.tasks):
                message = "there is no gold standard for these tasks on this server"
                raise ApiError(422, message, NO_GOLD, field="tasks")

    def _check_names(self, order: GevalOrder) -> None:
        for task in order.tasks:
            start = task.partition(":")[0].lower()
            spellings = [spelling.lower() for pair in TASKS.items() for spelling in pair]
            if ":" in task and start not in spellings:  # code is chosen by the operator only
                raise _refused("tasks", f'there is no task "{task}"')
        _checked("tasks", lambda: task_names("tasks", order.tasks or ALL, self.extensions))
        for field in ("vector_file_format", "similarity_metric", "analogy_function"):
            if ":" in getattr(order, field):
                raise _refused(field, f'there is no "{getattr(order, field)}"')
        if order.vector_file_format:
            _checked("vector_file_format", lambda: check_format(order.vector_file_format))
        _checked("similarity_metric", lambda: Measure(order.similarity_metric))
        if order.analogy_function:
            name = order.analogy_function
            _checked("analogy_function", lambda: registry.analogy_functions.get(name))
        _checked("compare_with", lambda: self.stored_ids(order.compare_with))

    @property
    def _store(self) -> Store:
        return Store(self.settings.folder)

    # -- results --------------------------------------------------------------------------------

    def result_of(self, evaluation: str) -> str:
        """Return the name of the result folder of an evaluation, or an empty string."""
        folders = self.settings.folder.glob(f"{RESULT}{evaluation}*/")
        results = [path for path in folders if re.fullmatch(RESULT_NAME, path.name)]
        return max(results, key=lambda path: path.stat().st_mtime).name if results else ""

    def describe(self, evaluation: str) -> dict[str, Any]:
        """Return the progress of an evaluation, and the name of its result folder at its end."""
        name = self.result_of(evaluation)
        ended = name and (self.settings.folder / name / "log.txt").is_file()
        return {"progress": self.progress(evaluation), "result": name if ended else ""}

    def progress(self, evaluation: str) -> dict[str, Any]:
        """Return the number of jobs by state of an evaluation."""
        name = self.result_of(evaluation)
        folder = self.settings.folder / name / "karat"
        for path in find_run_folders(folder) if name else ():
            with suppress(KaratError, OSError):
                run = ServedRun(path, folder.resolve(), self._progress.get(path))
                if len(self._progress) > 20:
                    self._progress.clear()
                self._progress[path] = run
                return count_job_states({run.id: run})
        return count_job_states({})

    def results(self) -> list[dict[str, Any]]:
        """Return the result folders, newest first."""
        by_time = []
        for log in self.settings.folder.glob(f"{RESULT}*/log.txt"):
            if _is_inside(log, self.settings.folder) and re.fullmatch(RESULT_NAME, log.parent.name):
                by_time.append((log.stat().st_mtime, {"name": log.parent.name, **_configured(log)}))
        return [facts for _, facts in sorted(by_time, key=lambda entry: entry[0], reverse=True)]

    def result(self, name: str) -> dict[str, Any]:
        """Return the files of a result folder as JSON."""
        folder = self._folder(name)
        log = _read(folder / "log.txt")[:200_000]
        tables = {}
        for path in _files(folder):
            if path.name.endswith("_results.csv"):
                tables[path.name] = _table(path)
        ignored = {
            path.name: _read(path).splitlines()[:MAX_ROWS]
            for path in _files(folder)
            if "_ignoredData." in path.name
        }
        facts: dict[str, Any] = {"name": name, **_configured(folder / "log.txt"), "log": log}
        facts["problems"] = _section(log, "PROBLEMS")
        return {**facts, "tables": tables, "ignored": ignored, **self._compared(folder)}

    def _compared(self, folder: Path) -> dict[str, Any]:
        """Return the comparison with earlier runs, as it was when the run ended."""
        paths = [path for path in _files(folder) if path.name in COMPARISON]
        return {path.stem: _table(path) for path in paths}

    def archive(self, name: str) -> bytes:
        """Return GEval's files of a result folder as a zip."""
        buffer, size = io.BytesIO(), 0
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in _files(self._folder(name)):
                size += path.stat().st_size
                if size > MAX_BYTES:
                    raise ApiError(422, "the files are too large for a zip", "read them as JSON")
                facts = zipfile.ZipInfo(f"{name}/{path.name}", (1980, 1, 1, 0, 0, 0))
                facts.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(facts, _read(path))
        return buffer.getvalue()

    def _folder(self, name: str) -> Path:
        folder = self.settings.folder / name
        valid = re.fullmatch(RESULT_NAME, name) is not None
        if not valid or not _is_inside(folder / "log.txt", self.settings.folder):
            raise ApiError(404, f'there is no result "{name[:200]}"', "see /api/v1/geval/results")
        return folder

    # -- earlier runs ---------------------------------------------------------------------------

    def runs(self) -> list[dict[str, Any]]:
        """Return the runs whose scores are stored, newest last, with their tasks."""
        table = self._stored()
        names, summaries = shown_ids(table), []
        for run, part in table.groupby("test_name", sort=False):
            golds = part[["task_name", "gold_standard_file"]].drop_duplicates()
            tasks = list(dict.fromkeys(golds["task_name"]))
            facts = {"tasks": tasks, "gold_standards": len(golds), "scores": len(part)}
            coverage = None if part["coverage"].isna().all() else float(part["coverage"].mean())
            summaries.append({"id": names[str(run)], **facts, "coverage": coverage})
        return summaries

    def comparison(self, run: str, others: Sequence[str]) -> dict[str, Any]:
        """Return the scores of a run and of others, and the ranks of the run."""
        table = self._stored()
        names = shown_ids(table)
        table = table.assign(test_name=[names[name] for name in table["test_name"]])
        self._check_runs([run, *others], list(names.values()))
        values = compared(table, run, list(others) or [ALL])
        ranks = ranking(values, run)
        ranks["lower_is_better"] = [lower_is_better(str(name)) for name in ranks["metric"]]
        return {"run": run, "values": _rows(values), "ranks": _rows(ranks)}

    def stored_ids(self, client_ids: Sequence[str]) -> list[str]:
        """Return the ids of runs in the file of scores, from the ids that clients see."""
        stored = {name: run for run, name in shown_ids(self._stored()).items()}
        self._check_runs(client_ids, list(stored))
        return [stored[name] for name in client_ids]

    def _check_runs(self, runs: Sequence[str], available: Sequence[str]) -> None:
        for run in runs:
            if run not in available:
                hint = did_you_mean(run[:200], available).strip() or "see /api/v1/geval/runs"
                message = f'there is no run "{run[:200]}"'
                raise ApiError(404, message, hint, field="compare_with")

    def _stored(self) -> pd.DataFrame:
        try:
            return self._store.read()
        except (DataError, OSError) as error:
            raise ApiError(422, "comparison.csv is damaged", "move the file away") from error


def _checked(field: str, check: Callable[[], Any]) -> None:
    """Turn an error about a name into one about a field of the order."""
    try:
        check()
    except DefinitionError as error:
        raise _refused(field, error.messages[0]) from error
    except KaratError as error:
        raise _refused(field, str(error)) from error


def _refused(field: str, message: str) -> ApiError:
    return ApiError(422, message[:500], "see /api/v1/geval", field=field)


def _is_inside(path: Path, root: Path) -> bool:
    """Return whether a path is a file of a folder, not reached through a link out of it."""
    return path.is_file() and path.resolve().is_relative_to(root.resolve())


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        named = path.name.endswith(ENDINGS) or path.name in COMPARISON
        if named and _is_inside(path, folder):
            yield path


def _shown(run: str) -> str:
    """Return a run id without the folders of this machine.

    >>> _shown("/home/me/v_200_cosine_2_1"), _shown("v_200_cosine_2_1")
    ('v_200_cosine_2_1', 'v_200_cosine_2_1')
    """
    return Path(run).name


def shown_ids(table: pd.DataFrame) -> dict[str, str]:
    """Return the ids that clients see by the stored ones, which may contain folders.

    >>> shown_ids(pd.DataFrame({"test_name": ["/a/v_2_1", "/b/v_2_1", "/a/v_2_1"]}))
    {'/a/v_2_1': 'v_2_1', '/b/v_2_1': 'v_2_1 (2)'}
    """
    client_ids: dict[str, str] = {}
    for run in dict.fromkeys(map(str, table["test_name"])):
        name, same = _shown(run), 1
        while name in client_ids.values():
            same += 1
            name = f"{_shown(run)} ({same})"
        client_ids[run] = name
    return client_ids


def _read(path: Path) -> str:
    """Return the text of a file of a result without the folders of this machine."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    text = text.replace(str(path.absolute().parents[1]), "DIR")
    if path.name in COMPARISON:
        return _without_folders(text)
    if path.name == "log.txt":
        return re.sub(r"(?m)^(\w*(?:path|filename|define)): .*/", r"\1: ", text)
    return text


def _without_folders(text: str) -> str:
    r"""Return a comparison with the names of runs instead of their paths.

    >>> _without_folders('test_name score\n"/my files/v_2_1" 0.5\n')
    'test_name score\nv_2_1 0.5\n'
    """
    separator = _separator(text)
    rows = list(csv.reader(io.StringIO(text), delimiter=separator))
    if not rows or rows[0][:1] != ["test_name"]:
        return text
    buffer = io.StringIO()
    written = csv.writer(buffer, delimiter=separator, lineterminator="\n")
    written.writerows([_shown(row[0]), *row[1:]] if row else row for row in rows)
    return buffer.getvalue()


def _configured(log: Path) -> dict[str, str]:
    """Return the settings of a run from its log."""
    lines = dict(line.partition(": ")[::2] for line in _section(_read(log), "TESTED CONFIGURATION"))
    names = ("tasks", "similarity_metric", "top_k", "vector_size", "protocol", "started")
    facts = {name: lines.get(name, "") for name in names}
    return {
        **facts,
        "vectors": Path(lines.get("vector_filename", "")).name,
        "run": _shown(lines.get("run id", "")),
    }


def _section(log: str, title: str) -> list[str]:
    r"""Return the lines below a title of a log, up to an empty line.

    >>> _section("A\none\ntwo\n\nB\nnone\n", "A"), _section("B\nnone\n", "B")
    (['one', 'two'], [])
    """
    part = re.search(rf"^{title}\n(.*?)(?:\n\n|\Z)", log, re.DOTALL | re.MULTILINE)
    lines = part[1].splitlines() if part else []
    return [] if lines == ["none"] else lines


def _separator(text: str) -> str:
    """Return what separates the columns of a table: commas, or blanks."""
    return "," if "," in text.partition("\n")[0] else " "


def _table(path: Path) -> dict[str, Any]:
    """Return the columns and rows of a table."""
    options: dict[str, Any] = {"keep_default_na": False, "na_values": ["", "nan", "NaN"]}
    text = _read(path)
    try:
        table = pd.read_csv(io.StringIO(text), sep=_separator(text), **options)
    except ValueError as error:
        raise ApiError(422, f"{path.name} cannot be read", "see the files of the result") from error
    head = table.head(MAX_ROWS)
    facts = {"columns": list(map(str, table.columns)), "total": len(table)}
    return {**facts, "rows": [list(row.values()) for row in _rows(head)]}


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    plain = table.astype(object).where(table.notna(), None)
    row_dicts: list[Mapping[Any, Any]] = plain.to_dict(orient="records")
    return [{str(name): value for name, value in row.items()} for row in row_dicts]
