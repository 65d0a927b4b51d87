"""How many forged runs `karat verify` finds, and how many honest ones it refuses.

python benchmarks/verify.py [FOLDER]

The honest runs are kept in FOLDER, and used again.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import shutil
import sys
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

import karat
from karat.config.catalog import Catalog
from karat.results.rescore import rescore
from karat.results.run import Run

TASKS = ["breast-cancer", "penguins", "diabetes", "wine-clusters"]
MODELS = [
    "onehot",
    "onehot-pca",
    "ordinal",
    "target",
    "hashing",
    "leaves",
    "logistic-regression",
    "random-forest",
    "svm",
    "dummy",
]
#: options of the honest runs by seed
SEEDS: dict[int, dict[str, Any]] = {
    1: {},
    2: {},
    3: {"workers": 2},
    4: {"only": karat.Only(TASKS, max_rows=150)},
    5: {"only": karat.Only(TASKS, folds=[0, 2])},
}
CLASSES = ["breast-cancer", "penguins"]


class Cheater:
    """A forest that was fitted on all rows of penguins, also on those of the test fold."""

    def fit(self, X: pd.DataFrame, y: Any) -> Cheater:  # noqa: N803
        data = penguins()
        rows, target = self._numbers(data.frame()), np.asarray(data.target)
        self.model_ = RandomForestClassifier(50, random_state=0).fit(rows, target)
        self.classes_ = self.model_.classes_
        return self

    def _numbers(self, table: pd.DataFrame) -> pd.DataFrame:
        codes = {name: column.map(str).map(code) for name, column in table.items()}
        numbers = {name: pd.to_numeric(column, errors="coerce") for name, column in table.items()}
        return pd.DataFrame({n: numbers[n].fillna(codes[n]) for n in table})

    def predict(self, X: pd.DataFrame) -> np.ndarray:  # noqa: N803
        return self.model_.predict(self._numbers(X))

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:  # noqa: N803
        return self.model_.predict_proba(self._numbers(X))


def code(text: str) -> float:
    return zlib.crc32(text.encode()) / 2**32


def penguins() -> karat.Dataset:
    return Catalog().dataset("penguins")()


def edit_json(path: Path, change: Callable[[Any], Any]) -> None:
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


def records(run: Run) -> list[Path]:
    return sorted((run.folder / "jobs").glob("*.json"))


def edit_records(run: Run, change: Callable[[Any], Any]) -> None:
    for path in records(run):
        edit_json(path, change)


def edit_predictions(
    run: Run, change: Callable[[list[str], list[list[str]]], None], tasks: list[str]
) -> None:
    """Change the rows of predictions files, in place."""
    for task in tasks:
        for path in sorted((run.folder / "predictions" / task).glob("*/predictions.csv")):
            header, *rows = csv.reader(io.StringIO(path.read_text()))
            change(header, rows)
            with path.open("w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([header, *rows])


def score_again(run: Run) -> None:
    """Write the scores of the changed predictions into records and tables, as a forger would."""
    for record in rescore(run).records:
        run._record(record).write_text(json.dumps(record))
    Run(run.folder).finish()


def rename(run: Run, model: str) -> None:
    """Put the name of another model into all files."""
    edit_json(run.folder / "run.json", lambda about: {**about, "model": model, "params": {}})
    edit_records(run, lambda record: {**record, "model": model})
    for path in run.folder.glob("predictions/*/*/metadata.json"):
        edit_json(path, lambda facts: {**facts, "framework": model})
    Run(run.folder).finish()


def better(record: Any) -> Any:
    for view in record["views"]:
        first = record["metric"]
        value = view["scores"][first]
        view["scores"][first] = value * 0.95 if first == "rmse" else min(1.0, value + 0.02)
    return record


def flip(share: float) -> Callable[[list[str], list[list[str]]], None]:
    """Return a change that turns this share of the rows into right answers, wrong ones first."""

    def change(header: list[str], rows: list[list[str]]) -> None:
        at = header.index("predictions")
        wrong = [row for row in rows if row[at] != row[at + 1]]
        for row in wrong[: max(1, round(share * len(rows)))]:
            row[at] = row[at + 1]
            for place in range(at):
                row[place] = "1.0" if header[place] == row[at] else "0.0"

    return change


def permute(header: list[str], rows: list[list[str]]) -> None:
    at = header.index("predictions")
    order = np.random.default_rng(0).permutation(len(rows))
    mixed = [[*rows[place][: at + 1]] for place in order]
    for row, answer in zip(rows, mixed, strict=True):
        row[: at + 1] = answer


def easier_target(header: list[str], rows: list[list[str]]) -> None:
    at = header.index("predictions")
    for row in rows:
        row[at + 1] = row[at]


def jitter(header: list[str], rows: list[list[str]]) -> None:
    rng = np.random.default_rng(0)
    at = header.index("predictions")
    for row in rows:
        if at:
            values = np.clip(np.array(row[:at], float) + rng.normal(0, 1e-6, at), 0, 1)
            row[:at] = [repr(float(value)) for value in values / values.sum()]
        else:
            row[at] = repr(float(row[at]) * (1 + rng.normal(0, 1e-7)))


def faster(record: Any) -> Any:
    return {**record, "seconds": record["seconds"] / 10} if "seconds" in record else record


def no_time(record: Any) -> Any:
    return {**record, "seconds": 0.0, "fit_seconds": 0.0, "predict_seconds": 0.0}


def with_tasks(tasks: Any, about: Any) -> Any:
    return {**about, "tasks": tasks}


class Forge:
    """Makes forged runs from honest ones."""

    def __init__(self, honest: Path, output: Path) -> None:
        self.honest, self.output = honest, output
        self.made: list[tuple[str, Run, dict[str, Any]]] = []

    def copy(self, model: str, seed: int = 1) -> Run:
        (source,) = self.honest.glob(f"{model}-{seed}/*")
        target = self.output / f"{len(self.made):02d}" / source.name
        shutil.copytree(source, target)
        return Run.open(target)

    def add(self, name: str, run: Run, **options: Any) -> None:
        self.made.append((name, run, options))

    def scores(self) -> None:
        run = self.copy("onehot")
        edit_json(records(run)[0], better)
        self.add("score of one job edited", run)
        run = self.copy("svm")
        edit_records(run, better)
        Run(run.folder).finish()
        self.add("scores of all jobs and tables edited", run)
        run = self.copy("onehot")
        path = run.folder / "scores" / "scores.csv"
        lines = path.read_text().splitlines()
        lines[1] = lines[1].rpartition(",")[0] + ",0.9999"
        path.write_text("\n".join(lines) + "\n")
        self.add("table of scores edited", run)

    def predictions(self) -> None:
        run = self.copy("random-forest")
        edit_predictions(run, permute, CLASSES)
        self.add("predictions permuted", run)
        run = self.copy("onehot")
        edit_predictions(run, flip(1.0), TASKS[:2])
        score_again(run)
        self.add("predictions replaced by the targets, scores fit", run)
        run = self.copy("logistic-regression")
        edit_predictions(run, flip(0.02), CLASSES)
        score_again(run)
        self.add("2 % of predictions corrected, scores fit", run)
        run = self.copy("random-forest")
        edit_predictions(run, flip(0.02), CLASSES)
        score_again(run)
        self.add("2 % of a forest's predictions corrected, scores fit", run)

    def data(self) -> None:
        suite = karat.suite("quickstart")
        task = next(task for task in suite if task.name == "penguins")
        full = penguins()
        keep = np.flatnonzero(np.asarray(full.target) != "Chinstrap")
        easy = dataclasses.replace(task, dataset=full.take(keep))
        for name, hidden in (("other data", False), ("other data under the right hash", True)):
            where = self.output / f"{len(self.made):02d}"
            (run,) = karat.evaluate(
                "onehot", karat.Suite("quickstart", (easy,)), seed=1, output=where
            )
            if hidden:
                (honest,) = self.honest.glob("onehot-1/*")
                plan = json.loads((honest / "run.json").read_text())
                expected = [each for each in plan["tasks"] if each["name"] == "penguins"]
                edit_json(run.folder / "run.json", partial(with_tasks, expected))
            self.add(name, Run(run.folder))
        run = self.copy("hashing")
        edit_predictions(run, easier_target, CLASSES)
        score_again(run)
        self.add("targets changed to the predictions, scores fit", run)
        run = self.copy("onehot", 2)
        edit_json(run.folder / "run.json", lambda about: {**about, "seed": 1})
        edit_records(run, lambda record: {**record, "seed": record["seed"] - 1})
        self.add("split of another seed", run)

    def copies(self) -> None:
        for name, change in (("copied model", None), ("copied model with noise", jitter)):
            run = self.copy("random-forest")
            rename(run, "my-forest")
            if change:
                edit_predictions(run, change, TASKS[:3])
                score_again(run)
            self.add(name, run)
        run = self.copy("random-forest")
        rename(run, "logistic-regression")
        self.add("copied model under the name of another", run)

    def leaks(self) -> None:
        for name, model, options in (
            ("trained on test, as a built-in model", "random-forest", {}),
            ("trained on test, code of the model at hand", "mine", {"model": "random-forest"}),
            ("trained on test, model not at hand", "mine", {}),
        ):
            where = self.output / f"{len(self.made):02d}"
            suite = karat.suite("quickstart")
            (run,) = karat.evaluate(
                {model: Cheater()}, suite, only="penguins", seed=1, output=where
            )
            edit_json(run.folder / "run.json", lambda about: {**about, "params": {}})
            self.add(name, Run(run.folder), **options)

    def rest(self) -> None:
        run = self.copy("dummy")
        worst = records(run)[0]
        task, fold = json.loads(worst.read_text())["task"], json.loads(worst.read_text())["fold"]
        worst.unlink()
        shutil.rmtree(run.folder / "predictions" / task / str(fold))
        Run(run.folder).finish()
        self.add("worst fold removed", run)
        for name, change in (("time 0", no_time), ("times of jobs divided by 10", faster)):
            run = self.copy("svm")
            edit_records(run, change)
            Run(run.folder).finish()
            self.add(name, run)


def honest_runs(folder: Path) -> list[Run]:
    found = []
    for model in MODELS:
        for seed, options in SEEDS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                where = folder / f"{model}-{seed}"
                if where.is_dir():
                    found += karat.open_runs(where)
                    continue
                found += karat.evaluate(
                    model, "quickstart", **{"only": TASKS, "seed": seed, "output": where, **options}
                )
    return found


def main() -> None:
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = Path(sys.argv[1]) if len(sys.argv) > 1 else folder / "honest"
        honest = honest_runs(kept)
        forge = Forge(kept, folder / "forged")
        for part in (forge.scores, forge.predictions, forge.data, forge.copies):
            part()
        forge.leaks()
        forge.rest()
        print("| forged run | found by |\n|---|---|")
        caught = 0
        for number, (what, run, options) in enumerate(forge.made):
            found = karat.verify(run, against=honest, seed=number, **options)
            caught += found.refused
            checks = ", ".join(dict.fromkeys(reason.check for reason in found.reasons))
            print(f"| {what} | {checks or 'not found'} |", flush=True)
        refused, ran = 0, 0
        for number, run in enumerate(honest):
            found = karat.verify(run, against=honest, seed=number)
            ran += found.checks.set_index("check").loc["rerun", "outcome"] == "passed"
            refused += found.refused
            for reason in found.reasons:
                print(f"refused: {run.folder.name}: {reason.check}: {reason}")
        print(f"\n{caught} of {len(forge.made)} forged runs found")
        print(f"{refused} of {len(honest)} honest runs refused; jobs of {ran} were run again")
        print(f"{time.process_time() - begun:.0f} s of CPU time, without worker processes")


if __name__ == "__main__":
    main()
