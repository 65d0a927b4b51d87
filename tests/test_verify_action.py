"""The GitHub Action of ``karat verify``: its script steps run, and the docs use it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import karat

from .test_gate_action import ROOT, make_step

ACTION = ROOT / ".github" / "actions" / "verify" / "action.yml"
INPUTS = {"RUNS": "results", "BASE": "HEAD^1", "JOBS": "1", "DEFINE": ""}

pytestmark = pytest.mark.skipif(
    not shutil.which("bash") or not shutil.which("git") or not ACTION.is_file(),
    reason="needs bash, git and the repository",
)


def commit(folder):
    user = ("-c", "user.name=a", "-c", "user.email=a@b")
    for command in (["init", "-q"], ["add", "results"], [*user, "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=folder, check=True)


def test_added_and_changed_runs_are_verified(tmp_path):
    results, step = tmp_path / "results", make_step(tmp_path, ACTION)
    options = {
        "only": karat.Only("diabetes", folds=[0, 1]),
        "output": karat.Output(results, items=False),
    }
    (first,) = karat.evaluate("dummy", "quickstart", **options)
    commit(tmp_path)
    (second,) = karat.evaluate("onehot", "quickstart", **options)
    second.folder.rename(results / "a b;c")
    commit(tmp_path)
    done, found = step("Verify", **INPUTS)
    assert done.returncode == 0, done.stderr
    assert found == {"outcome": "passed", "code": "0"}
    comment = (tmp_path / "karat-verify" / "comment.md").read_text()
    assert comment.startswith("<!-- karat verify -->\n### a b;c: verified")
    assert "dummy" not in comment  # not of this pull request
    path = first.folder / "jobs" / "diabetes.0.json"
    record = json.loads(path.read_text())
    record["views"][0]["scores"]["rmse"] = 1.0
    path.write_text(json.dumps(record))
    commit(tmp_path)
    done, found = step("Verify", **INPUTS)
    assert found == {"outcome": "refused", "code": "1"}
    assert "rmse is 1 in the record" in (tmp_path / "karat-verify" / "comment.md").read_text()
    assert step("Result", CODE=found["code"])[0].returncode == 1
    (tmp_path / "results" / "README.md").write_text("x")
    commit(tmp_path)
    done, found = step("Verify", **INPUTS)
    assert found == {"outcome": "nothing", "code": "0"}


def test_the_workflows_of_the_docs_use_the_action():
    for name in ("verify", "site"):
        page = Path(ROOT / "docs" / f"{name}.md").read_text()
        text = re.search(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[1]
        jobs = YAML(typ="safe").load(text)["jobs"]
        steps = [step for job in jobs.values() for step in job["steps"]]
        used = [each for each in steps if "actions/verify" in each.get("uses", "")]
        assert bool(used) == (name == "verify")
        for each in used:
            assert (
                ROOT / each["uses"].split("@")[0].removeprefix("karat-bench/karat/")
                == ACTION.parent
            )
            assert set(each.get("with", {})) <= set(
                YAML(typ="safe").load(ACTION.read_text())["inputs"]
            )
