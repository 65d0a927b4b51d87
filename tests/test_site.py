"""The documentation site builds without warnings and loads nothing from other hosts."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from karat.reporting.page import page_files

from .skips import original_data, original_file

pytest.importorskip("zensical", reason='the site needs pip install "karat[docs]"')

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.slow
#: files that the commands of the landing page need
DATASETS = ("adult", "penguins", "taco_adult", "arxiv_abstracts", "bitext_german", "vader_tweets")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Build the site as ``make docs`` does; a broken link is an error."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("reports"))
    (folder / "docs" / "reports").mkdir()
    for name in shown_reports():  # the test of the reports makes real ones
        (folder / "docs" / "reports" / name).write_text("<!doctype html><title>Report</title>")
    pages = runpy.run_path(str(ROOT / "scripts" / "check_pages.py"))
    pages["write_pages"](folder / "docs" / "checks")
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copy(ROOT / "zensical.toml", folder)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def shown_reports() -> list[str]:
    """Return the names of the reports that the landing page shows, in their order."""
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    return re.findall(r'<iframe src="reports/([\w.]+)"', text)


def listed(nav) -> list[str]:
    """Return the pages of a navigation in order."""
    values = [value for entry in nav for value in entry.values()]
    return [p for v in values for p in ([v] if isinstance(v, str) else listed(v))]


def test_every_page_is_built_and_has_its_place_in_the_navigation(site):
    project = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    pages = listed(project["nav"])
    assert len(pages) == len(set(pages))
    docs = ROOT / "docs"
    written = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    assert set(pages) == {page for page in written if not page.startswith("checks/")}
    for page in pages:
        assert (site / page).with_suffix(".html").is_file(), page


def test_the_landing_page_is_in_the_look_of_the_reports(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    assert re.search(r'<link[^>]+href="\./stylesheets/karat\.css"', text)
    style = (site / "stylesheets" / "karat.css").read_text()
    report = "".join(page_files(".css"))
    colors = {each.lower() for each in re.findall(r"#[0-9a-fA-F]{6}\b", style)}
    assert len(colors) > 15
    # one is a darker gold, for buttons under the pointer
    assert len(colors - set(re.findall(r"#[0-9a-f]{6}\b", report))) <= 1
    assert re.findall(r'<iframe src="reports/([\w.]+)"', text) == shown_reports()


def make_reports(script, folder: Path) -> dict[str, dict[str, Any]]:
    """Run the commands of the landing page with few rows; return the data of the reports."""
    for dataset in DATASETS:
        original_file(dataset)

    def run(*arguments: str, cwd: Path) -> None:
        done = script(*arguments, cwd=cwd)
        assert done.returncode == 0, (arguments, done.stderr)

    landing = runpy.run_path(str(ROOT / "scripts" / "landing.py"))
    with original_data():
        made = landing["build"](folder, ["--max-rows", "200"], run)
    pattern = r'<script type="application/json" id="bundle">(.*?)</script>'
    texts = {path.name: path.read_text(encoding="utf-8") for path in made}
    return {name: json.loads(re.search(pattern, text, re.S)[1]) for name, text in texts.items()}


def test_the_commands_of_the_landing_page_make_its_reports(script, tmp_path):
    reports = make_reports(script, tmp_path / "reports")
    assert sorted(reports) == sorted(shown_reports())
    assert len(reports) == 3
    models = {name: {m["model"] for m in data["models"]} for name, data in reports.items()}
    assert models["tables.html"] == {"random-forest", "svm", "DecisionTree", "onehot", "dummy"}
    assert len(reports["tables.html"]["tasks"]) == 4
    assert models["sentences.html"] == {"use-multilingual", "tfidf", "random"}
    assert len(reports["sentences.html"]["tasks"]) == 6
    assert models["taco.html"] == {"logistic-regression", "random-forest", "dummy"}
    assert reports["taco.html"]["curves"]


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
