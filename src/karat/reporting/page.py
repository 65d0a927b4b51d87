"""The report: one self-contained HTML file.

Without JavaScript it shows tables. Names are escaped as HTML; inside the script element they are
JSON without ``<``. The content security policy allows only the scripts of the page.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from karat.analysis.formatting import plain, rounded, short
from karat.core.files import write_atomic
from karat.reporting.bundle import make_bundle
from karat.reporting.details import clean, to_json
from karat.reporting.formats import (
    Cell,
    Column,
    Table,
    format_rank,
    metric_label,
    text_column,
    to_html,
)
from karat.reporting.notes import SIGNS
from karat.reporting.verdict import verdict_lines
from karat.results.load import DECLINED, FAILED, NOT_RUN

#: with more cells than this, the leaderboard has no task columns
MAX_CELLS = 5_000
#: maximum number of failures and findings
MAX_ROWS = 200
#: longer names are cut
NAME = 200
#: what is shown about a dataset
TEXTS = ("source", "license", "citation", "sha256")
_STATES = {"f": SIGNS[FAILED], "d": SIGNS[DECLINED], "n": SIGNS[NOT_RUN]}

Bundle = Mapping[str, Any]


def plain_sections(bundle: Bundle) -> list[str]:
    """Return the sections with data, for a page without JavaScript."""
    robust = bundle["robustness"] or {"columns": (), "rows": ()}
    checks, failures = bundle["checks"], bundle["failures"]
    finding, card = ("code", "level", "message", "advice"), ("dataset", *TEXTS, "fingerprint")
    run = ("folder", "command", "seed", "platform", "versions")
    tables: list[tuple[str, Sequence[str], list[Any]]] = [
        ("Robustness", robust["columns"], robust["rows"]),
        (
            f"Checks: {len(checks):,}",
            ("model", "task", *finding),
            [(*_names(bundle, each), *(each[key] for key in finding)) for each in checks],
        ),
        (
            f"Failures: {len(failures):,}",
            ("model", "task", "fold", "reason"),
            [(*_names(bundle, each), each["fold"], each["info"]) for each in failures],
        ),
        ("Datasets", card, [[each[key] for key in card] for each in bundle["cards"]]),
        ("Provenance", run, [[_joined(each[key]) for key in run] for each in bundle["runs"]]),
    ]
    lines = verdict_lines(bundle.get("verdict", ()))
    found = [("Verdict", _paragraphs(lines))] if lines else []
    found += [(name, to_html(each, classes=True)) for name, each in leaderboard_tables(bundle)]
    answers = [each["sentence"] for group in bundle.get("cheapest", ()) for each in group]
    found += [("Cheapest equivalent model", _paragraphs(answers))] if answers else []
    found += [(title, _rows(names, rows)) for title, names, rows in tables if rows]
    if bundle["cut"]:
        items = "".join(f"<li>{escape(plain(sentence))}</li>" for sentence in bundle["cut"])
        found.append(("Left out", f'<ul class="notes">{items}</ul>'))
    return [f"<section><h2>{escape(title)}</h2>{text}</section>" for title, text in found]


def _paragraphs(lines: Sequence[str]) -> str:
    return "".join(f"<p>{escape(plain(line))}</p>" for line in lines)


def _rows(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table of the first rows, and a note that counts the others."""
    first, *columns = (
        text_column(name, ("" if value is None else value for value in values), right=False)
        for name, values in zip(names, zip(*rows[:MAX_ROWS], strict=True), strict=True)
    )
    rest = len(rows) - MAX_ROWS
    notes = [f"{rest:,} more are shown with JavaScript only."] if rest > 0 else []
    return to_html(Table([], first, columns, [], "", notes), classes=True)


def _names(bundle: Bundle, each: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the model and the task, or empty texts."""
    for key, named in (("model", bundle["models"]), ("task", bundle["tasks"])):
        yield "" if each[key] is None else short(named[each[key]]["name"], NAME)


def _joined(value: Any) -> Any:
    return ", ".join(map(" ".join, value.items())) if isinstance(value, dict) else value


def leaderboard_tables(bundle: Bundle) -> Iterator[tuple[str, Table]]:
    """Yield title and table of each group of models that can be compared."""
    # the page of a server without runs has no group
    groups = bundle.get("groups") or [{"name": "", "models": [], "tasks": [], "rows": []}]
    about, notes = bundle["notes"][: len(groups)], bundle["notes"][len(groups) :]
    small = len(bundle["models"]) * len(bundle["tasks"]) <= MAX_CELLS
    if not small:
        number = len(bundle["tasks"])
        notes = [*notes, f"Scores on {number:,} tasks are shown with JavaScript only."]
    for place, group in enumerate(groups):
        last = place == len(groups) - 1
        columns = _columns(bundle, group, small)
        title = f"Leaderboard: {group['name']}" if len(groups) > 1 else "Leaderboard"
        yield title, Table([], *columns, [], about[place], notes if last else [])


def _columns(bundle: Bundle, group: Bundle, small: bool) -> tuple[Column, list[Column]]:
    """Return the models and the other columns: ranks, tasks if they are few, costs."""
    pairs = zip(group["models"], group["rows"], strict=True)
    models = [{**bundle["models"][m], **row} for m, row in pairs]
    scores = {t: [bundle["scores"][t][0][m] for m in group["models"]] for t in group["tasks"]}
    scored = [t for t, values in scores.items() if _best(values, True) is not None]
    ranks = (format_rank(m["rank"]) for m in models)
    ends = ([format_rank(m[end]) for end in ("low", "high")] for m in models)
    spans = (low if low == "–" else f"{low} – {high}" for low, high in ends)
    columns = [
        *(text_column("rank", ranks), text_column("95 %", spans)),
        text_column("tie", (model["tie"] or "" for model in models), right=False),
        *(column for key in _RATINGS for column in _numbers(models, key)),
        *(_task(bundle, t, group["models"]) for t in scored if small),
        *(column for key in _COSTS for column in _numbers(models, key)),
    ]
    return text_column("model", (model["name"] for model in models), right=False), columns


def _task(bundle: Bundle, t: int, models: Sequence[int]) -> Column:
    task, states = bundle["tasks"][t], bundle["states"][t]
    means = bundle["scores"][t][0]
    higher = task["higher"][0]
    best = _best([means[m] for m in models], higher)
    cells = [
        Cell(_STATES.get(states[m], "–"), faint=True)
        if means[m] is None
        else Cell(rounded(means[m]), means[m] == best)
        for m in models
    ]
    label = plain(metric_label(task["metrics"][0], higher))
    return Column(plain(task["name"]), cells, label, part="task")


def _best(values: Sequence[float | None], higher: bool) -> float | None:
    scores = [value for value in values if value is not None]
    return (max(scores) if higher else min(scores)) if scores else None


#: headings, formats and units of the other columns
_RATINGS = {"wins": "{:.3f}", "borda": "{:.1f}", "elo": "{:.0f}"}
_COSTS = {
    "failed": ("failed", "{:.0f}", 1.0),
    "declined": ("n/a", "{:.0f}", 1.0),
    "seconds": ("time", "{:.1f} s", 1.0),
    "memory_mb": ("memory", "{:.1f} GB", 1 / 1024),
}


def _numbers(models: Sequence[Mapping[str, Any]], key: str) -> Iterator[Column]:
    """Yield the column of a rating or a cost, if a model has one."""
    heading, form, unit = _COSTS.get(key) or (key, _RATINGS[key], 1.0)
    values = [model[key] for model in models]
    best = _best(values, True)
    if best is not None:
        texts = ["–" if value is None else form.format(value * unit) for value in values]
        marks = [key in _RATINGS and value == best for value in values]
        part = "rank" if key in _RATINGS else "cost"
        yield Column(heading, [Cell(*each) for each in zip(texts, marks, strict=True)], part=part)


#: folder of the scripts and styles, which are used in the order of their names
FOLDER = "html"


def report(
    runs: Any,
    path: str | Path = "report.html",
    *,
    title: str | None = None,
    umap: bool = False,
    pool: str = "variant",
) -> Path:
    """Write the report of some runs to a file and return its path.

    ``runs`` are run folders, folders of them, Run objects, or a tidy table of scores. ``umap`` adds
    UMAP maps of vectors; it must be installed. ``pool`` is as in ``leaderboard``.
    """
    text = make_page(make_bundle(runs, title=title, umap=umap, pool=pool))
    write_atomic(Path(path), text)
    return Path(path)


def make_page(bundle: Mapping[str, Any], live: str | bool | None = False) -> str:
    """Return the page of a bundle; a live page polls its server, or the address ``live``."""
    scripts, title = page_files(".js"), escape(clean(plain(bundle["title"])))
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        f'content="{escape(policy(scripts, bool(live)))}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title} – Karat</title>{_tags(bundle, title)}"
        f"<style>{''.join(page_files('.css'))}</style>"
    )
    body = (
        f'<header class="top"><p class="brand">Karat</p><h1>{title}</h1></header>\n'
        f'<main id="plain">\n{chr(10).join(plain_sections(bundle))}\n</main>\n'
        f'<script type="application/json" id="bundle">{to_json(bundle)}</script>\n'
        + "".join(f"<script>{script}</script>\n" for script in scripts)
    )
    kind = f'data-live="{"true" if live else "false"}"'
    kind += f' data-address="{escape(live)}"' if isinstance(live, str) else ""
    return (
        f'<!doctype html>\n<html lang="en" {kind}><head>{head}</head>\n'
        f"<body>\n{body}</body></html>\n"
    )


#: the diamond next to the name
ICON = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>"
    "<path d='M8 1l7 7-7 7-7-7z' fill='#c8951a'/></svg>"
)


def _tags(bundle: Mapping[str, Any], title: str) -> str:
    """Return the icon of the page, and what links to the page show."""
    lines = [*verdict_lines(bundle.get("verdict", ())), *bundle["notes"]]
    about = escape(clean(plain(next(iter(lines), ""))))
    texts = {"og:type": "website", "og:site_name": "Karat", "og:title": title}
    texts |= {"og:description": about} if about else {}
    meta = "".join(f'<meta property="{name}" content="{text}">' for name, text in texts.items())
    named = f'<meta name="description" content="{about}">' if about else ""
    return f'{named}{meta}<link rel="icon" href="data:image/svg+xml,{quote(ICON)}">'


def policy(scripts: Sequence[str], live: bool = False) -> str:
    """Return the content security policy: these scripts, and requests to its server if live."""
    sums = (base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts)
    allowed = " ".join(f"'sha256-{each}'" for each in sums) or "'none'"
    connect = "'self'" if live else "'none'"
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; "
        f"img-src data: blob:; connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


def page_files(ending: str) -> list[str]:
    """Return the scripts or styles of the page, in the order of their names."""
    folder = files("karat.reporting").joinpath(FOLDER)
    if not folder.is_dir():
        return []
    found = sorted((f for f in folder.iterdir() if f.name.endswith(ending)), key=lambda f: f.name)
    return [file.read_text(encoding="utf-8") for file in found]
