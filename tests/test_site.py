"""The documentation site builds without warnings and loads nothing from other hosts."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("zensical", reason='the site needs pip install "karat[docs]"')

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Build the site as ``make docs`` does; a broken link is an error."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs")
    pages = runpy.run_path(str(ROOT / "scripts" / "check_pages.py"))
    pages["write_pages"](folder / "docs" / "checks")
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copy(ROOT / "zensical.toml", folder)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def listed(nav) -> list[str]:
    """Return the pages of a navigation in order."""
    values = [value for entry in nav for value in entry.values()]
    return [p for v in values for p in ([v] if isinstance(v, str) else listed(v))]


def test_every_page_is_built_and_has_its_place_in_the_navigation(site):
    project = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    pages = listed(project["nav"])
    assert len(pages) == len(set(pages))
    assert set(pages) == {path.name for path in (ROOT / "docs").glob("*.md")}
    for page in pages:
        assert (site / page).with_suffix(".html").is_file(), page


def test_pages_load_nothing_from_other_hosts(site):
    loaded = r"<(?:script|img|iframe)[^>]+src=\"(https?:[^\"]+)|<link[^>]+href=\"(https?:[^\"]+)"
    for page in site.rglob("*.html"):
        assert re.findall(loaded, page.read_text(encoding="utf-8")) == [], page.name


def test_links_within_the_site_and_to_its_headings_lead_somewhere(site):
    ids = {}
    for page in site.rglob("*.html"):
        ids[page] = set(re.findall(r"\bid=\"?([^\s\">]+)", page.read_text(encoding="utf-8")))
    broken = []
    for page in ids:
        for target in re.findall(r"<a[^>]+href=\"([^\"]+)\"", page.read_text(encoding="utf-8")):
            if "://" in target or target.startswith(("mailto:", "/", ".", "data:")):
                continue
            file, _, anchor = target.partition("#")
            other = (page.parent / file).resolve() if file else page
            if other.suffix == ".html" and other not in ids:
                broken.append(f"{page.name}: {target}")
            elif anchor and other in ids and anchor not in ids[other]:
                broken.append(f"{page.name}: {target}")
    assert broken == []
