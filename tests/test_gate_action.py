"""The GitHub Action of the gate: its script steps run, and the workflow of the docs uses it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from .score_data import write_run

ROOT = Path(__file__).parent.parent
ACTION = ROOT / ".github" / "actions" / "gate" / "action.yml"
#: replaces GitHub's program: prints the ids of comments, and records its arguments
GH = """#!/usr/bin/env bash
echo "$@" >> calls.txt
case "$*" in *--jq*) cat comments.txt ;; esac
"""

pytestmark = pytest.mark.skipif(
    shutil.which("bash") is None or not ACTION.is_file(), reason="needs bash and the repository"
)


@pytest.fixture
def step(tmp_path):
    """Run a script step of the action in a folder with two runs; return code and outputs."""
    return make_step(tmp_path, ACTION)


def make_step(tmp_path, action):
    """Return a function that runs a script step of an action in a folder."""
    actions = YAML(typ="safe").load(action.read_text())["runs"]["steps"]
    scripts = {each["name"]: each["run"] for each in actions if "run" in each}
    programs = {"gh": GH, "karat": f'#!/usr/bin/env bash\nexec {sys.executable} -m karat "$@"\n'}
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    files = {"GITHUB_OUTPUT": "outputs.txt", "GITHUB_STEP_SUMMARY": "summary.txt"}

    def run(name, **inputs):
        env = {**os.environ, "PATH": path, **files, **inputs}
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", scripts[name]]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        outputs = tmp_path / "outputs.txt"
        lines = outputs.read_text().splitlines() if outputs.exists() else []
        return done, dict(line.split("=", 1) for line in lines)

    return run


def inputs(new, **more):
    empty = {"TASKS": "", "SUITE": "", "DEFINE": "", "CANNOT_TELL": "fail"}
    return {"NEW": new, "BASELINE": "base", "MARGIN": "0.01", **empty, **more}


def test_the_steps(step, tmp_path):
    sizes = {"questions": 2000, "train_questions": 8000}
    for folder, change in {"base": 0.0, "worse": -0.1}.items():
        scores = [0.80 + change, 0.82 + 1.1 * change, 0.81 + change]
        write_run(tmp_path / folder, "m", {"t": scores, "u": [0.5, 0.6]}, record=sizes)
    done, found = step("Gate", **inputs("worse", TASKS="t u"))
    assert done.returncode == 0, done.stderr
    assert found == {"outcome": "failed", "code": "1"}
    comment = (tmp_path / "karat-gate" / "comment.md").read_text()
    assert comment.startswith("<!-- karat gate -->\n### Gate: failed")
    assert re.search(r"\| t +\| acc +\| +0\.810 \| 0\.707 \|", comment)
    assert (tmp_path / "summary.txt").read_text() == comment
    done, _ = step("Report", NEW="worse", BASELINE="base")
    assert done.returncode == 0 and (tmp_path / "karat-gate" / "report.html").is_file()
    assert step("Result", CODE=found["code"])[0].returncode == 1


def test_an_error_becomes_the_comment(step, tmp_path):
    write_run(tmp_path / "base", "m", {"t": [0.5, 0.6]})
    done, found = step("Gate", **inputs("no-such-model; exit 0", SUITE="quickstart"))
    assert done.returncode == 0 and found == {"outcome": "error", "code": "2"}
    assert "no-such-model" in (tmp_path / "karat-gate" / "comment.md").read_text()


@pytest.mark.parametrize("ids, method", [("", "POST"), ("17\n21\n", "PATCH")])
def test_one_comment_is_made_and_updated(step, tmp_path, ids, method):
    (tmp_path / "comments.txt").write_text(ids)
    done, _ = step("Comment", GH_TOKEN="x", REPOSITORY="a/b", NUMBER="3")
    assert done.returncode == 0, done.stderr
    _, call = (tmp_path / "calls.txt").read_text().splitlines()
    place = "repos/a/b/issues/comments/17" if ids else "repos/a/b/issues/3/comments"
    assert f"--method {method} {place} -F body=@karat-gate/comment.md" in call


def test_the_workflow_of_the_docs_uses_the_action():
    page = (ROOT / "docs" / "gate.md").read_text()
    text = re.search(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[1]
    assert len(text.splitlines()) <= 10
    steps = YAML(typ="safe").load(text)["jobs"]["gate"]["steps"]
    (used,) = [each for each in steps if "gate" in each["uses"]]
    assert (ROOT / used["uses"].split("@")[0].removeprefix("karat-bench/karat/")) == ACTION.parent
    known = YAML(typ="safe").load(ACTION.read_text())["inputs"]
    assert set(used["with"]) <= set(known)
    assert {name for name, each in known.items() if each.get("required")} <= set(used["with"])
