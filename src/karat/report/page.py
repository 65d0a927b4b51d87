"""The report: one self-contained HTML file.

Without JavaScript it shows tables. Names are escaped as HTML; inside the script element they are
JSON without ``<``. The content security policy allows only the scripts of the page.
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

#: folder of the scripts and styles, which are used in the order of their names
FOLDER = "page_files"


def report(
    runs: Any, path: str | Path = "report.html", *, title: str | None = None, umap: bool = False
) -> Path:
    """Write the report of some runs to a file and return its path.

    ``runs`` are run folders, folders of them, Run objects, or a tidy table of scores. ``umap`` adds
    UMAP maps of vectors; it must be installed.
    """
    text = make_page(make_bundle(runs, title=title, umap=umap))
    write_atomic(Path(path), text)
    return Path(path)


def make_page(bundle: Mapping[str, Any], live: str | bool | None = False) -> str:
    """Return the page of a bundle; a live page polls its server, or the address ``live``."""
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
    folder = files("karat.report").joinpath(FOLDER)
    if not folder.is_dir():
        return []
    found = sorted((f for f in folder.iterdir() if f.name.endswith(ending)), key=lambda f: f.name)
    return [file.read_text(encoding="utf-8") for file in found]
