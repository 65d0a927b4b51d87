"""The report: one HTML file that needs nothing else, with all its data and scripts inside.

Readers without scripts see tables. Names are data: they are escaped as HTML, and stand in a script
element only as JSON without the sign ``<``. The page allows itself its own scripts alone.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from karat.report.bundle import make_bundle
from karat.report.compact import clean, to_json
from karat.report.notes import plain
from karat.report.plain import plain_sections
from karat.results.files import write_atomic

#: where the scripts and styles of the page stand in the package; the order is that of their names
FOLDER = "page_files"


def report(
    runs: Any, path: str | Path = "report.html", *, title: str | None = None, umap: bool = False
) -> Path:
    """Write the report of some runs to a file and return its path.

    ``runs`` are run folders, folders of them, Run objects, or a tidy table of scores. ``umap`` adds
    maps of vectors by UMAP, which must be installed.
    """
    text = make_page(make_bundle(runs, title=title, umap=umap))
    write_atomic(Path(path), text)
    return Path(path)


def make_page(bundle: Mapping[str, Any], live: str | bool | None = False) -> str:
    """Return the page of a bundle; a live one may ask the server it came from for news.

    ``live`` may be the address to ask at.
    """
    scripts, title = page_files(".js"), escape(clean(plain(bundle["title"])))
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        f'content="{escape(policy(scripts, bool(live)))}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title} – Karat</title><style>{''.join(page_files('.css'))}</style>"
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


def policy(scripts: Sequence[str], live: bool = False) -> str:
    """Return what the page may do: run these scripts, and, if it is live, ask its own server."""
    sums = (base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts)
    allowed = " ".join(f"'sha256-{each}'" for each in sums) or "'none'"
    asked = "'self'" if live else "'none'"
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; "
        f"img-src data: blob:; connect-src {asked}; base-uri 'none'; form-action 'none'"
    )


def page_files(ending: str) -> list[str]:
    """Return the scripts or styles of the page, in the order of their names."""
    folder = files("karat.report").joinpath(FOLDER)
    if not folder.is_dir():
        return []
    found = sorted((f for f in folder.iterdir() if f.name.endswith(ending)), key=lambda f: f.name)
    return [file.read_text(encoding="utf-8") for file in found]
