"""A static site of runs: the leaderboard, a page per model and task, the report, and JSON of each.

::

    index.html, index.json            the leaderboard
    report.html, report.json          the interactive report and its data
    models/<name>.html, <name>.json   one of each per model
    tasks/<name>.html, <name>.json    one of each per task
    style.css

All numbers are those of the report. The pages need no server and no JavaScript, except the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from karat.core.files import safe_names
from karat.core.formatting import count, duration, format_rank, plain, rounded
from karat.core.notebook import PageFiles
from karat.core.writing import DRAFT, write_together
from karat.errors import DataError
from karat.metrics.metric import metric_label
from karat.output.table import Cell, Column, Table, text_column
from karat.reporting.details import clean, to_json
from karat.reporting.formats import to_html
from karat.reporting.page import ICON, leaderboard_tables, make_bundle, make_page, page_files
from karat.reporting.verdict import verdict_lines

if TYPE_CHECKING:
    from karat.results.run import Runs

#: a folder with other files is not overwritten; this file marks one that was made before
MARK = "style.css"
POLICY = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
STATES = {"f": "failed", "d": "not applicable", "n": "not run"}
#: what is shown about the dataset of a task
CARD = ("dataset", "title", "license", "citation", "homepage", "source", "fingerprint", "sha256")
#: what is shown about a run
RUN = ("folder", "command", "seed", "constraint", "karat", "platform")


def site(
    runs: Runs, output: str | Path = "site", *, title: str | None = None, pool: str = "variant"
) -> list[Path]:
    """Write a static site of some runs, and return its files.

    Parameters
    ----------
    runs
        Run folders, folders of them, or Run objects.
    output
        Folder of the site. It must be new, empty, or the folder of an earlier site, whose pages are
        replaced.
    title
        Title of the site. Default: the names of the suites.
    pool
        Which runs are one model, as in ``leaderboard``.
    """
    folder = Path(output)
    _check_folder(folder)
    bundle = make_bundle(runs, title=title, pool=pool)
    contents = dict(_Site(bundle).files())
    write_together(folder, contents)
    for kind in ("models", "tasks"):  # pages of models and tasks that are no longer there
        for path in sorted((folder / kind).glob("*")):
            if f"{kind}/{path.name}" not in contents and path.suffix in (".html", ".json"):
                path.unlink()
    return PageFiles(folder / name for name in contents)


def _check_folder(folder: Path) -> None:
    """Raise ``DataError`` if a folder has files that are not those of a site."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file; choose another --output.")
    if folder.is_dir() and any(not path.name.startswith(DRAFT) for path in folder.iterdir()):
        head = _style().partition("\n")[0]
        mark = folder / MARK
        if not mark.is_file() or not mark.read_text("utf-8", "replace").startswith(head):
            raise DataError(
                f"{folder} has other files than those of a site; choose another --output."
            )


def _style() -> str:
    return "/* The style of a site made by karat report --site. */\n" + "".join(page_files(".css"))


@dataclass(frozen=True)
class _Page:
    """A page: its title, facts as pairs, and sections as (heading, HTML)."""

    title: str
    facts: Sequence[tuple[str, str]]
    sections: Sequence[tuple[str, str]]
    up: str = ""
    current: str = ""
    json: str = ""


class _Site:
    """The pages of a bundle."""

    def __init__(self, bundle: Mapping[str, Any]) -> None:
        self.bundle = bundle
        self.models, self.tasks = bundle["models"], bundle["tasks"]
        self.model_files = safe_names(model["name"] for model in self.models)
        self.task_files = safe_names(task["name"] for task in self.tasks)

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the content of every file."""
        yield MARK, _style()
        yield "index.html", self._html(self._index())
        yield "index.json", to_json(self._index_data())
        yield "report.html", make_page(self.bundle)
        yield "report.json", to_json(self.bundle)
        for m, name in enumerate(self.model_files):
            yield f"models/{name}.html", self._html(self._model(m))
            yield f"models/{name}.json", to_json(self._model_data(m))
        for t, name in enumerate(self.task_files):
            yield f"tasks/{name}.html", self._html(self._task(t))
            yield f"tasks/{name}.json", to_json(self._task_data(t))

    # -- the frame --------------------------------------------------------------------------

    def _html(self, page: _Page) -> str:
        title = _text(page.title)
        site_title = _text(self.bundle["title"])
        ways = [("index.html", "Leaderboard"), ("report.html", "Report")]
        links = "".join(
            f'<li><a href="{page.up}{to}"{_current(to == page.current)}>{name}</a></li>'
            for to, name in ways
        )
        links += f'<li><a href="{quote(page.json)}">JSON</a></li>'
        facts = "".join(
            f'<div class="named"><dt>{escape(name)}</dt><dd>{_text(value)}</dd></div>'
            for name, value in page.facts
        )
        sections = "\n".join(
            f'<section><div class="head"><h2>{escape(heading)}</h2></div>{text}</section>'
            for heading, text in page.sections
            if text
        )
        last_job = escape(str(self.bundle["made"]))
        return (
            f"{_head(f'{title} – {site_title}', page.up)}\n"
            f'<body>\n<header class="top"><p class="brand">Karat</p><h1>{title}</h1>'
            f'<dl class="facts">{facts}</dl></header>\n'
            f'<nav class="ways" aria-label="Pages"><ul>{links}</ul></nav>\n'
            f"<main>\n{sections}\n</main>\n"
            f'<footer class="foot"><p>Karat {escape(str(self.bundle["karat"]))}; '
            f"last job {last_job}.</p></footer>\n</body></html>\n"
        )

    def _model_link(self, m: int, up: str = "") -> str:
        return f"{up}models/{quote(self.model_files[m])}.html"

    def _task_link(self, t: int, up: str = "") -> str:
        return f"{up}tasks/{quote(self.task_files[t])}.html"

    def _model_cell(self, m: int, up: str = "../") -> Cell:
        return Cell(plain(self.models[m]["name"]), link=self._model_link(m, up))

    # -- the leaderboard --------------------------------------------------------------------

    def _index(self) -> _Page:
        lines = verdict_lines(self.bundle.get("verdict", ()))
        texts = [_text(line) for line in lines]
        answer = "".join(f'<p class="answer">{text}</p>' for text in texts[:1])
        answer += "".join(f"<p>{text}</p>" for text in texts[1:])
        places = {model["name"]: m for m, model in enumerate(self.models)}
        groups = self.bundle.get("groups", ())
        sections = [("Verdict", answer)]
        for (heading, table), group in zip(leaderboard_tables(self.bundle), groups, strict=True):
            names = [self.models[m]["name"] for m in group["models"]]
            links = [self._model_link(places[name]) for name in names]
            first = replace(table.model, cells=_linked(table.model.cells, links))
            sections.append((heading, to_html(replace(table, model=first), classes=True)))
        sections.append(("Tasks", self._task_list()))
        facts = [
            ("models", f"{len(self.models):,}"),
            ("tasks", f"{len(self.tasks):,}"),
            ("runs", f"{len(self.bundle['runs']):,}"),
        ]
        return _Page(
            title=self.bundle["title"],
            facts=facts,
            sections=sections,
            up="",
            current="index.html",
            json="index.json",
        )

    def _task_list(self) -> str:
        names = [Cell(plain(t["name"]), link=self._task_link(i)) for i, t in enumerate(self.tasks)]
        best = [self._order(t)[:1] for t in range(len(self.tasks))]
        winners = [self._model_cell(m[0], "") if m else Cell("–") for m in best]
        scores = [
            rounded(self.bundle["scores"][t][0][m[0]]) if m else "–" for t, m in enumerate(best)
        ]
        columns = [
            text_column("kind", (task["kind"] for task in self.tasks), right=False),
            text_column("dataset", (plain(task["dataset"]) for task in self.tasks), right=False),
            text_column("folds", (task["folds"] for task in self.tasks)),
            text_column("test items", (_number(task["questions"]) for task in self.tasks)),
            text_column("metric", (self._metric(t) for t in range(len(self.tasks))), right=False),
            text_column("best", scores),
            Column("best model", winners, right=False),
        ]
        return _as_html(Column("task", names, right=False), columns)

    def _metric(self, t: int, position: int = 0) -> str:
        task = self.tasks[t]
        return plain(metric_label(task["metrics"][position], task["higher"][position]))

    def _order(self, t: int) -> list[int]:
        """Return the models with a score on a task, best first; ties in the order of the ranks."""
        values = self.bundle["scores"][t][0]
        scored = [m for m, value in enumerate(values) if value is not None]
        sign = -1 if self.tasks[t]["higher"][0] else 1
        return sorted(scored, key=lambda m: sign * values[m])

    @cached_property
    def _places(self) -> list[dict[int, int]]:
        """The place of each model by task; equal scores share the better place."""
        by_task = []
        for t in range(len(self.tasks)):
            values, order = self.bundle["scores"][t][0], self._order(t)
            places: dict[int, int] = {}
            for number, m in enumerate(order, start=1):
                before = order[number - 2] if number > 1 else None
                tied = before is not None and values[before] == values[m]
                places[m] = places[before] if tied and before is not None else number
            by_task.append(places)
        return by_task

    def _index_data(self) -> dict[str, Any]:
        keys = ("title", "karat", "made", "notes", "verdict", "groups")
        models = [{**model, "page": self._model_link(m)} for m, model in enumerate(self.models)]
        tasks = [{**task, "page": self._task_link(t)} for t, task in enumerate(self.tasks)]
        return {**{key: self.bundle.get(key) for key in keys}, "models": models, "tasks": tasks}

    # -- one model --------------------------------------------------------------------------

    def _model(self, m: int) -> _Page:
        model = self.models[m]
        facts = self._ranks_of(m)
        facts += [("time", duration(model["seconds"]))] if model["seconds"] is not None else []
        facts += [("dimensions", f"{model['dimensions']:g}")] if model["dimensions"] else []
        sections = [
            ("Scores", self._scores_of_model(m)),
            ("Checks", self._findings("model", m)),
            ("Failures", self._failures(m)),
            ("Runs", _pairs_table([r for r in self.bundle["runs"] if r.get("model") == m], RUN)),
        ]
        json = f"{self.model_files[m]}.json"
        return _Page(
            title=model["name"], facts=facts, sections=sections, up="../", current="", json=json
        )

    def _ranks_of(self, m: int) -> list[tuple[str, str]]:
        """Return the rank of a model among the ranked models of each of its groups."""
        groups = self.bundle.get("groups") or [
            {"name": "", "models": range(len(self.models)), "rows": self.models}
        ]
        facts = []
        for group in groups:
            if m not in group["models"]:
                continue
            row = group["rows"][list(group["models"]).index(m)]
            ranked = sum(model["rank"] is not None for model in group["rows"])
            low, high = format_rank(row["low"]), format_rank(row["high"])
            name = f", {plain(group['name'])}" if len(groups) > 1 else ""
            of = f" of {count(ranked, 'model')}" if row["rank"] is not None else ""
            facts.append((f"rank{name}", f"{format_rank(row['rank'])}{of}"))
            facts += [(f"95 %{name}", f"{low} – {high}")] if low != "–" else []
        return facts

    def _scores_of_model(self, m: int) -> str:
        run = [t for t in range(len(self.tasks)) if self.bundle["states"][t][m] != "n"]
        if not run:
            return "<p>No task was run.</p>"
        names = [Cell(plain(self.tasks[t]["name"]), link=self._task_link(t, "../")) for t in run]
        scores, spreads, places, best, gaps = [], [], [], [], []
        for t in run:
            value, spread = self.bundle["scores"][t][0][m], self.bundle["spread"][t][m]
            state = self._state(t, m)
            rank = self._places[t].get(m)
            first = m if rank == 1 else next(iter(self._order(t)), None)
            score = Cell("" if value is None else rounded(value), rank == 1)
            scores.append(Cell(state, faint=True) if value is None else score)
            spreads.append("" if spread is None or value is None else f"± {rounded(spread)}")
            places.append("–" if rank is None else f"{rank} of {len(self._order(t))}")
            gaps.append("–" if first is None else rounded(self.bundle["scores"][t][0][first]))
            link = "" if first is None else self._model_link(first, "../")
            best.append(
                Cell("–" if first is None else plain(self.models[first]["name"]), link=link)
            )
        columns = [
            text_column("metric", (self._metric(t) for t in run), right=False),
            Column("score", scores),
            text_column("over folds", spreads),
            text_column("place", places),
            text_column("best", gaps),
            Column("best model", best, right=False),
        ]
        return _as_html(Column("task", names, right=False), columns)

    def _model_data(self, m: int) -> dict[str, Any]:
        tasks = [self._scores(t, m) | {"task": task["name"]} for t, task in enumerate(self.tasks)]
        runs = [run for run in self.bundle["runs"] if run.get("model") == m]
        return {
            **self.models[m],
            "tasks": [t for t in tasks if t["state"] != "not run"],
            "runs": runs,
        }

    def _scores(self, t: int, m: int) -> dict[str, Any]:
        values = [scores[m] for scores in self.bundle["scores"][t]]
        folds = self.bundle["folds"]
        return {
            "state": STATES.get(self.bundle["states"][t][m], "ok"),
            "scores": dict(zip(self.tasks[t]["metrics"], values, strict=True)),
            "spread": self.bundle["spread"][t][m],
            "place": self._places[t].get(m),
            "folds": folds[t][m] if folds is not None else None,
        }

    # -- one task ---------------------------------------------------------------------------

    def _task(self, t: int) -> _Page:
        task = self.tasks[t]
        facts = [
            ("kind", task["kind"]),
            ("metric", self._metric(t)),
            ("folds", f"{task['folds']:,}"),
            ("test items", _number(task["questions"])),
        ]
        cards = [card for card in self.bundle["cards"] if t in card["tasks"]]
        sections = [
            ("Scores", self._scores_of_task(t)),
            ("Data", "".join(_facts_list(card, CARD) for card in cards)),
            ("Checks", self._findings("task", t)),
        ]
        json = f"{self.task_files[t]}.json"
        return _Page(
            title=task["name"],
            facts=[f for f in facts if f[1]],
            sections=sections,
            up="../",
            current="",
            json=json,
        )

    def _scores_of_task(self, t: int) -> str:
        ranked = self._order(t)
        rest = [m for m, s in enumerate(self.bundle["states"][t]) if s in "fd" and m not in ranked]
        models = [*ranked, *rest]
        if not models:
            return "<p>No model was run.</p>"
        names = [
            Cell(plain(self.models[m]["name"]), link=self._model_link(m, "../")) for m in models
        ]
        columns = [text_column("place", (self._places[t].get(m, "–") for m in models))]
        for position, _ in enumerate(self.tasks[t]["metrics"]):
            values = self.bundle["scores"][t][position]
            higher = self.tasks[t]["higher"][position]
            present = [values[m] for m in models if values[m] is not None]
            top = (max if higher else min)(present, default=None)
            cells = [
                Cell(rounded(values[m]), values[m] == top)
                if values[m] is not None
                else Cell(self._state(t, m) if not position else "–", faint=True)
                for m in models
            ]
            columns.append(Column(self._metric(t, position), cells))
            if not position:
                spreads = (self.bundle["spread"][t][m] for m in models)
                texts = ("" if spread is None else f"± {rounded(spread)}" for spread in spreads)
                columns.append(text_column("over folds", texts))
        return _as_html(Column("model", names, right=False), columns)

    def _task_data(self, t: int) -> dict[str, Any]:
        models = [
            self._scores(t, m) | {"model": model["name"]} for m, model in enumerate(self.models)
        ]
        cards = [card for card in self.bundle["cards"] if t in card["tasks"]]
        planned = [model for model in models if model["state"] != "not run"]
        return {**self.tasks[t], "models": planned, "data": cards}

    # -- both -------------------------------------------------------------------------------

    def _state(self, t: int, m: int) -> str:
        return STATES.get(self.bundle["states"][t][m], "–")

    def _findings(self, kind: str, number: int) -> str:
        findings = [finding for finding in self.bundle["checks"] if finding[kind] == number]
        return _pairs_table(findings, ("code", "level", "message", "advice"))

    def _failures(self, m: int) -> str:
        failures = [
            {
                **failure,
                "task": self.tasks[failure["task"]]["name"] if failure["task"] is not None else "",
            }
            for failure in self.bundle["failures"]
            if failure["model"] == m
        ]
        return _pairs_table(failures, ("task", "fold", "info"))


def _head(title: str, up: str) -> str:
    """Return the head of a page with an escaped title."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title} – Karat</title>"
        f'<link rel="icon" href="data:image/svg+xml,{quote(ICON)}">'
        f'<link rel="stylesheet" href="{up}{MARK}"></head>'
    )


def _current(is_current: bool) -> str:
    return ' aria-current="page"' if is_current else ""


def _linked(cells: Sequence[Cell], links: Sequence[str]) -> list[Cell]:
    return [replace(cell, link=link) for cell, link in zip(cells, links, strict=True)]


def _text(value: object) -> str:
    return escape(clean(plain(value)))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,}"


def _pairs_table(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> str:
    """Return a table of the values of these keys; those that no row has are left out."""
    used = [key for key in keys if any(row.get(key) not in (None, "") for row in rows)]
    if not rows or not used:
        return ""
    first, *columns = (
        text_column(key, (plain(_shown(row.get(key))) for row in rows), right=False) for key in used
    )
    return _as_html(first, columns)


def _as_html(first: Column, columns: list[Column]) -> str:
    """Return a table without groups of rows, caption and notes."""
    table = Table(groups=[], model=first, columns=columns, starts=[], caption="", notes=[])
    return to_html(table, classes=True)


def _shown(value: object) -> str:
    return "" if value is None else str(value)


def _facts_list(card: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Return facts as a list of definitions; a homepage is a link."""
    items = []
    for key in keys:
        value = card.get(key)
        if value in (None, ""):
            continue
        text = _text(value)
        if key == "homepage" and str(value).startswith(("https://", "http://")):
            text = f'<a href="{text}" rel="nofollow noopener">{text}</a>'
        items.append(f"<div><dt>{escape(key)}</dt><dd>{text}</dd></div>")
    return f'<dl class="evidence">{"".join(items)}</dl>'
