"""The commands karat run --shard, karat gather and karat slurm."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

FILE = "a,b,y\n" + "".join(f"{i},{i % 3},{'low' if i < 15 else 'high'}\n" for i in range(30))


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Make a table file in a folder of its own, which is the current one."""
    monkeypatch.chdir(tmp_path)
    Path("my table.csv").write_text(FILE)
    return ["my table.csv", "--target", "y", "-m", "onehot", "-m", "dummy"]


def scores(folder: str) -> dict[str, str]:
    found = Path(folder).glob("*/scores/scores.csv")
    return {path.parts[-3].partition(".")[0]: path.read_text() for path in found}


def test_gather_names_a_command_that_runs_what_is_missing(cli, table):
    assert cli("run", *table, "-w", 0, "-o", "one").code == 0
    out = "all results"
    done = cli("run", *table, "-w", 0, "-o", out, "--shard", "2/2")
    assert done.code == 0
    assert "karat gather 'all results'" in done.err
    found = cli("gather", out, "-o", "merged")
    assert found.code == 1
    assert "part 1 of 2: 5 of 5 jobs are missing" in found.out
    listed = json.loads(cli("gather", out, "-o", "merged", "--format", "json").out)
    assert listed["planned"] == 10
    assert len(listed["missing"]) == 5
    first, last = (each["command"] for each in listed["commands"])
    assert "--shard 1/2 --resume" in first
    # both commands run as printed: the part, or all that is missing here
    assert cli(*shlex.split(first)[1:]).code == 0
    found = cli("gather", out, "-o", "merged again")
    assert (found.code, found.out) == (0, "10 of 10 jobs, 0 of them failed, in merged again\n")
    assert cli(*shlex.split(last)[1:]).code == 0
    assert scores("merged") == scores("merged again") == scores("one")
    assert len(scores("one")) == 2


def test_a_part_without_jobs(cli, table):
    done = cli("run", *table, "-w", 0, "--shard", "64/64")
    assert done.code == 0
    assert "nothing to run" in done.err


def test_auto_reads_the_variables(cli, table, monkeypatch):
    monkeypatch.setenv("CI_NODE_INDEX", "2")
    monkeypatch.setenv("CI_NODE_TOTAL", "2")
    assert cli("run", *table, "-w", 0, "--shard", "auto").code == 0
    assert [path.name for path in Path("results").glob("shard*")] == ["shard-2-of-2"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--shard", "3/2"], "3/2"),
        (["--shard", "auto"], "SLURM_ARRAY_TASK_ID"),
        (["--shard", "1/2", "--claim", "c"], "--claim"),
    ],
)
def test_wrong_options(cli, table, words, named):
    done = cli("run", *table, "-w", 0, *words)
    assert done.code == 2
    assert named in done.err


def test_gather_of_other_folders(cli, table):
    done = cli("gather", ".", "-o", "out")
    assert done.code == 2
    assert "plan.json" in done.err


def test_gathered_runs_are_not_counted_as_shards(cli, table):
    for part in ("1/2", "2/2"):
        assert cli("run", *table, "-w", 0, "--shard", part).code == 0
    assert cli("gather", "results", "-o", "results/gathered").code == 0
    # once more, into the same folder
    done = cli("gather", "results", "-o", "results/gathered")
    assert (done.code, "more than once" in done.out) == (0, False)


@pytest.fixture
def job(cli, table):
    """Write the script of an array of two tasks."""
    words = ["--array", 2, "--time", "10:00", "--mem", "2G", "-o", "all results"]
    done = cli("slurm", *table, *words, "--sbatch=--partition=a b")
    assert done.code == 0
    assert "2 parts of 5 to 5 jobs" in done.err
    Path("job.sh").write_text(done.out)
    return done.out


def test_the_script_for_slurm_runs_its_part(job, cli, table):
    lines = [line for line in job.splitlines() if line.startswith("#SBATCH")]
    for wanted in ("array=1-2", "time=10:00", "mem=2G", "requeue", "partition=a b"):
        assert f"#SBATCH --{wanted}" in lines
    for task in ("1", "2"):
        environment = {**os.environ, "SLURM_ARRAY_TASK_ID": task}
        subprocess.run(["bash", "job.sh"], env=environment, check=True, capture_output=True)
    assert cli("gather", "all results", "-o", "merged").code == 0
    assert cli("run", *table, "-w", 0, "-o", "one").code == 0
    assert scores("merged") == scores("one")


def test_the_script_submits_the_array_and_a_job_that_gathers(job, tmp_path):
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "sbatch"
    fake.write_text('#!/bin/bash\nprintf "%s\\n" "$@" >> calls.txt; echo 77;\n')
    fake.chmod(0o755)
    environment = {**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}"}
    environment.pop("SLURM_ARRAY_TASK_ID", None)
    subprocess.run(["bash", "job.sh"], env=environment, check=True, capture_output=True)
    calls = Path("calls.txt").read_text().splitlines()
    assert calls[:2] == ["--parsable", "job.sh"]
    assert "--dependency=afterany:77" in calls
    assert shlex.split(calls[-1])[-4:] == ["gather", "all results", "-o", "all results/gathered"]


def test_a_script_needs_jobs_and_options_of_sbatch(cli, table):
    done = cli("slurm", *table, "--array", 2, "--sbatch", "partition")
    assert (done.code, "--sbatch" in done.err) == (2, True)
    assert cli("slurm", *table, "--array", 0).code == 2


@pytest.mark.parametrize("words", [("--time", "4h"), ("--time", "1:00\n"), ("--mem", "8 G")])
def test_a_setting_that_sbatch_would_refuse_is_refused(cli, table, words):
    done = cli("slurm", *table, "--array", 2, *words)
    assert (done.code, words[0] in done.err, done.out) == (2, True, "")


def test_the_templates_of_the_docs_set_what_auto_reads():
    page = Path(__file__).parents[3] / "docs" / "shards.md"
    texts = re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    kubernetes, github, skypilot = (YAML(typ="safe").load(text) for text in texts)
    (container,) = kubernetes["spec"]["template"]["spec"]["containers"]
    count = str(kubernetes["spec"]["completions"])
    assert container["env"] == [{"name": "KARAT_SHARD_COUNT", "value": count}]
    assert {"KARAT_SHARD_INDEX", "KARAT_SHARD_COUNT"} == set(github["jobs"]["shard"]["env"])
    assert all(f"KARAT_SHARD_{name}=" in skypilot["run"] for name in ("INDEX", "COUNT"))
