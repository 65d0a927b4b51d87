"""The AutoML Benchmark's command: one job, ten jobs, and jobs of a framework with an environment.

The AutoML Benchmark is not on PyPI. ``--source amlb=FOLDER`` is a checkout of its repository, the
folder that contains ``runbenchmark.py``; what it installs there is not counted.
Both sides get the same user folder, with a table in files for training and testing per fold.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from recipe import Case, Recipe

#: rows of each file, and folds of the larger task
ROWS, FOLDS = 300, 10
#: the benchmarks of one task, and how many jobs they are
BENCHMARKS = {"one": 1, "ten": FOLDS}

#: its configuration: where the data and the definitions are
CONFIG = """\
input_dir: '{user}'
frameworks: {definition_file: ['{root}/resources/frameworks.yaml', '{user}/frameworks.yaml']}
benchmarks:
  definition_dir: ['{user}/benchmarks', '{root}/resources/benchmarks']
  constraints_file: ['{root}/resources/constraints.yaml', '{user}/constraints.yaml']
"""

#: ten trees of a framework that the original installs into an environment of its own;
#: at this commit it stops with a TypeError at an entry with ``extends``
FRAMEWORKS = """\
forest:
  module: frameworks.RandomForest
  params: {n_estimators: 10}
"""

CONSTRAINTS = "1h1c: {folds: 10, max_runtime_seconds: 3600, cores: 1}\n"

#: starts the original; a process of a framework that has closed its output may still be ending, and
#: the original would count it as stopped on a busy machine
ORIGINAL = """
import runpy

from amlb.utils import process as processes

read_output = processes.live_output_unix


def read_to_the_end(process, **options):
    output = read_output(process, **options)
    process.wait(60)
    return output


processes.live_output_unix = read_to_the_end
runpy.run_path("runbenchmark.py", run_name="__main__")
"""

#: runs commands and prints the CPU seconds of the last, less those of the one before, without those
#: of the installation, and the log loss of the first: an explicit seed is the same for all folds
#: there, and grows with the fold here
MEASURED = """
import csv, json, os, resource, subprocess, sys

os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
install, folder = {install}, {folder!r}


def seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(arguments, jobs):
    output = os.path.join(os.getcwd(), f"output{{jobs}}")
    options = ["-u", {user!r}, "-o", output, "-Xseed=7"]
    command = [sys.executable, "-W", "ignore", *{program}, *arguments, *options]
    setup = [*command, "-s", "only", "-Xsetup.live_output=False"]
    if install and (arguments, jobs) == {runs}[0]:
        subprocess.run(setup, check=True, cwd=folder)
    before = seconds()
    subprocess.run(command, check=True, cwd=folder)
    used = seconds() - before
    with open(os.path.join(output, "results.csv")) as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == jobs and all(row["result"] for row in rows), rows
    return used, [float(row["logloss"]) for row in rows]


results = [measured(*run) for run in {runs}]
cpu = results[-1][0] - sum(used for used, _ in results[:-1])
losses = results[0][1]
print(f"cpu_seconds={{cpu:.3f}}")
print("scores=" + json.dumps(dict(logloss=sum(losses) / len(losses))))
"""


def write_inputs(user: Path) -> None:
    """Write the user folder of both sides."""
    rng = np.random.default_rng(0)
    (user / "benchmarks").mkdir(parents=True, exist_ok=True)
    names = {part: [f"{part}_{fold}.csv" for fold in range(FOLDS)] for part in ("train", "test")}
    for name in (*names["train"], *names["test"]):
        X = rng.normal(size=(ROWS, 5))
        y = np.where(X[:, 0] + rng.normal(size=ROWS) > 0, "yes", "no")
        pd.DataFrame(X, columns=list("abcde")).assign(y=y).to_csv(user / name, index=False)
    for benchmark, folds in BENCHMARKS.items():
        files = {
            part: "[" + ", ".join(f"'{{user}}/{name}'" for name in names[part][:folds]) + "]"
            for part in names
        }
        text = f"{{train: {files['train']}, test: {files['test']}, target: y}}"
        path = user / "benchmarks" / f"{benchmark}.yaml"
        path.write_text(f"- {{name: table, folds: {folds}, dataset: {text}}}\n")
    (user / "config.yaml").write_text(CONFIG)
    (user / "frameworks.yaml").write_text(FRAMEWORKS)
    (user / "constraints.yaml").write_text(CONSTRAINTS)


def prepare(folder: Path) -> list[Case]:
    """Write the user folder, and return the cases."""
    user = (folder / "user").resolve()
    write_inputs(user)
    constant = [(["constantpredictor", name, "1h4c"], jobs) for name, jobs in BENCHMARKS.items()]
    forest = [(["forest", name, "1h1c"], jobs) for name, jobs in BENCHMARKS.items()]
    cases = [
        ("one constant job", constant[:1], 1.2),
        ("ten constant jobs", constant[1:], 1.5),
        ("nine more jobs of a framework with an environment", forest, 10.0),
    ]
    return [
        Case(
            name,
            *(["{python}", "-c", _program(runs, user, original)] for original in (True, False)),
            goal,
            tolerance=1e-5,
        )
        for name, runs, goal in cases
    ]


def _program(runs: list[tuple[list[str], int]], user: Path, original: bool) -> str:
    return MEASURED.format(
        runs=runs,
        user=str(user),
        install=original,
        folder="{source}" if original else str(user),
        program=["-c", ORIGINAL] if original else ["-m", "karat.compat.amlb"],
    )


RECIPE = Recipe(
    title="AutoML Benchmark",
    requirements=(
        "boto3==1.26.98",
        "filelock==3.12.0",
        "fsspec==2023.6.0",
        "liac-arff==2.5.0",
        "numpy==1.24.2",
        "openml==0.13.1",
        "pandas==1.5.3",
        "psutil==5.9.4",
        "pyarrow==11.0.0",
        "ruamel.yaml==0.17.21",
        "s3fs==0.4.2",
        "scikit-learn==1.2.2",
        "scipy==1.10.1",
        "setuptools<70",
        "typing-extensions==4.12.2",
    ),
    prepare=prepare,
    source="github.com/openml/automlbenchmark at commit dfe8d21",
)
