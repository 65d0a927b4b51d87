"""The AutoML Benchmark's command: one job, and ten jobs.

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

#: its configuration: where the data and the definitions are
CONFIG = """\
input_dir: '{user}'
frameworks: {definition_file: ['{root}/resources/frameworks.yaml', '{user}/frameworks.yaml']}
benchmarks:
  definition_dir: ['{user}/benchmarks', '{root}/resources/benchmarks']
  constraints_file: ['{root}/resources/constraints.yaml']
"""

#: runs a command and prints its CPU seconds, without those of the installation
MEASURED = """
import csv, json, os, resource, subprocess, sys

os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
output = os.path.join(os.getcwd(), "output")
arguments = {arguments} + ["-u", {user!r}, "-o", output]
install, folder = {install}, {folder!r}


def seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


command = [sys.executable, "-W", "ignore", *{program}, *arguments]
if install:
    subprocess.run([*command, "-s", "only", "-Xsetup.live_output=False"], check=True, cwd=folder)
before = seconds()
subprocess.run(command, check=True, cwd=folder)
used = seconds() - before
with open(os.path.join(output, "results.csv")) as file:
    rows = list(csv.DictReader(file))
assert len(rows) == {jobs} and all(row["result"] for row in rows), rows
print(f"cpu_seconds={{used:.3f}}")
if {comparable}:
    losses = [float(row["logloss"]) for row in rows]
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
    for benchmark, folds in (("one", 1), ("ten", FOLDS)):
        files = {
            part: "[" + ", ".join(f"'{{user}}/{name}'" for name in names[part][:folds]) + "]"
            for part in names
        }
        text = f"{{train: {files['train']}, test: {files['test']}, target: y}}"
        path = user / "benchmarks" / f"{benchmark}.yaml"
        path.write_text(f"- {{name: table, folds: {folds}, dataset: {text}}}\n")
    (user / "config.yaml").write_text(CONFIG)
    # a file without entries is none for the original
    (user / "frameworks.yaml").write_text("mine: {module: frameworks.constantpredictor}\n")


def prepare(folder: Path) -> list[Case]:
    """Write the user folder, and return the cases."""
    user = (folder / "user").resolve()
    write_inputs(user)
    cases = [
        ("one constant job", ["constantpredictor", "one", "1h4c"], 1, 1.2),
        ("ten constant jobs", ["constantpredictor", "ten", "1h4c"], FOLDS, 1.5),
    ]
    return [
        Case(
            name,
            *(
                ["{python}", "-c", _program(arguments, user, jobs, original)]
                for original in (True, False)
            ),
            goal,
            tolerance=1e-5,
        )
        for name, arguments, jobs, goal in cases
    ]


def _program(arguments: list[str], user: Path, jobs: int, original: bool) -> str:
    return MEASURED.format(
        arguments=arguments,
        user=str(user),
        jobs=jobs,
        install=original,
        folder="{source}" if original else str(user),
        program=["runbenchmark.py"] if original else ["-m", "karat.compat.amlb"],
        comparable="constantpredictor" in arguments,
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
