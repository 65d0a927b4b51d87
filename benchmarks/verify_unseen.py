"""Forged and honest runs of other kinds than those of verify.py, through `karat verify`.

python benchmarks/verify_unseen.py HONEST [FOLDER]

HONEST is the folder of benchmarks/verify.py with its honest runs. The honest runs of other kinds
are kept in FOLDER, and used again. All were verified once before any rule was changed for them.
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
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, GradientBoostingClassifier
from sklearn.linear_model import Lasso, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from verify import (
    CLASSES,
    TASKS,
    Cheater,
    Forge,
    edit_json,
    edit_predictions,
    edit_records,
    penguins,
    rename,
    score_again,
    with_tasks,
)

import karat
from karat.config.catalog import Catalog
from karat.ext.publish.verification import _Reference
from karat.results.run import Run

SUITE = "quickstart"
Change = Callable[[list[str], list[list[str]]], None]
OTHER_FOREST = """
models:
  my-forest:
    extends: random-forest
    params: {classifier_options: {n_estimators: 200, min_samples_leaf: 12, max_features: 3}}
"""


def suite_of(*names: str, **changes: Any) -> karat.Suite:
    """Return some tasks of the suite, changed."""
    found = [task for task in karat.suite(SUITE) if task.name in names]
    return karat.Suite(SUITE, tuple(dataclasses.replace(task, **changes) for task in found))


# -- changes of predictions -------------------------------------------------------------------


def closer(header: list[str], rows: list[list[str]]) -> None:
    """Move numbers 15 % of the way to the target."""
    at = header.index("predictions")
    for row in rows:
        value, target = float(row[at]), float(row[at + 1])
        row[at] = repr(value + 0.15 * (target - value))


def perfect(header: list[str], rows: list[list[str]]) -> None:
    at = header.index("predictions")
    for row in rows:
        row[at] = row[at + 1]
        row[:at] = ["1.0" if name == row[at] else "0.0" for name in header[:at]]


def power(exponent: float) -> Change:
    """Raise probabilities to a power, and multiply numbers."""

    def change(header: list[str], rows: list[list[str]]) -> None:
        at = header.index("predictions")
        for row in rows:
            if at:
                values = np.clip(np.array(row[:at], float), 1e-9, 1) ** exponent
                row[:at] = [repr(float(value)) for value in values / values.sum()]
            else:
                row[at] = repr(1.02 * float(row[at]) + 1.5)

    return change


def noise(size: float) -> Change:
    """Add noise to probabilities, and 80 times of it to numbers."""

    def change(header: list[str], rows: list[list[str]]) -> None:
        rng = np.random.default_rng(1)
        at = header.index("predictions")
        for row in rows:
            if at:
                values = np.array(row[:at], float) + rng.normal(0, size, at)
                values = np.clip(values, 1e-6, 1) / np.clip(values, 1e-6, 1).sum()
                row[:at] = [repr(float(value)) for value in values]
                row[at] = header[int(values.argmax())]
            else:
                row[at] = repr(float(row[at]) + 80 * rng.normal(0, size))

    return change


def swap_probabilities(header: list[str], rows: list[list[str]]) -> None:
    """Swap the probabilities of the predicted and of the right class in 4 % of the rows."""
    at = header.index("predictions")
    wrong = [row for row in rows if row[at] != row[at + 1]]
    for row in wrong[: max(1, round(0.04 * len(rows)))]:
        one, other = header.index(row[at]), header.index(row[at + 1])
        row[one], row[other], row[at] = row[other], row[one], row[at + 1]


def half_of_clusters(header: list[str], rows: list[list[str]]) -> None:
    at = header.index("predictions")
    codes = {k: str(float(i)) for i, k in enumerate(sorted({row[at + 1] for row in rows}))}
    for row in rows[::2]:
        row[at] = codes[row[at + 1]]


def half_of_ranks(header: list[str], rows: list[list[str]]) -> None:
    at, rank = header.index("predictions"), header.index("rank")
    for row in rows[1::2]:
        row[at], row[rank] = row[at + 1], "1"


def edit_one(path: Path, change: Change) -> None:
    header, *rows = csv.reader(io.StringIO(path.read_text()))
    change(header, rows)
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


# -- changes of records -----------------------------------------------------------------------


def shorter(record: Any) -> Any:
    times = [k for k, v in record.items() if k.endswith("seconds") and isinstance(v, float)]
    return {**record, **{name: record[name] / 200 for name in times}}


def fast_fit(record: Any) -> Any:
    if record["fold"] is None:
        return record
    cut = record["fit_seconds"] * 0.98
    less = {name: record[name] - cut for name in ("fit_seconds", "seconds")}
    return {**record, **less}


def better_and_not_stored(record: Any) -> Any:
    first = record["metric"]
    for view in record["views"]:
        value = view["scores"][first]
        view["scores"][first] = value * 0.9 if first == "rmse" else min(1.0, value + 0.05)
        view["stored"] = False
    return record


class Neighbors(Cheater):
    """Neighbors among all rows of penguins, also those of the test fold."""

    def fit(self, X: pd.DataFrame, y: Any) -> Neighbors:  # noqa: N803
        data = penguins()
        rows, target = self._numbers(data.frame()), np.asarray(data.target)
        self.model_ = KNeighborsClassifier(3).fit(rows, target)
        self.classes_ = self.model_.classes_
        return self


class Unseen(Forge):
    """Makes forged runs of other kinds."""

    def fresh(self, model: Any, tasks: Any = SUITE, **options: Any) -> Run:
        where = self.output / f"{len(self.made):02d}"
        (run,) = karat.evaluate(model, tasks, seed=1, output=where, **options)
        return Run(run.folder)

    def edited(self, name: str, model: str, change: Change, tasks: list[str]) -> None:
        run = self.copy(model)
        edit_predictions(run, change, tasks)
        score_again(run)
        self.add(name, run)

    def predictions(self) -> None:
        self.edited("numbers moved toward the target", "onehot", closer, ["diabetes"])
        what = "probabilities of wrong rows swapped in one task"
        self.edited(what, "svm", swap_probabilities, ["breast-cancer"])
        run = self.copy("logistic-regression")
        edit_one(run.folder / "predictions/penguins/3/predictions.csv", perfect)
        score_again(run)
        self.add("labels of one of 20 jobs corrected", run)
        self.edited("probabilities smoothed", "onehot-pca", power(0.7), CLASSES)
        what = "half of the clusters replaced by the classes"
        self.edited(what, "leaves", half_of_clusters, ["wine-clusters"])
        run = self.fresh("random", only="capital-country")
        edit_predictions(run, half_of_ranks, ["capital-country"])
        score_again(run)
        self.add("half of the ranks of analogies improved", run)

    def seeds(self) -> None:
        run = self.copy("random-forest")
        reference = _Reference(run, None, None, Catalog(()))
        for fold in range(5):
            tries = [reference.run_again("penguins", fold, 500 + 100 * i + fold) for i in range(6)]
            best = max((each.clean for each in tries), key=log_likelihood)
            path = run.folder / f"predictions/penguins/{fold}/predictions.csv"
            edit_one(path, partial(replace_all, best))
        score_again(run)
        self.add("best of 6 seeds of the model in each fold", run)
        tried = [
            karat.evaluate(
                "random-forest", SUITE, only="penguins", seed=n, output=self.output / f"seed-{n}"
            )[0]
            for n in range(30, 38)
        ]
        best_run = max(tried, key=lambda r: r.scores().query("metric == 'acc'")["value"].mean())
        self.add("best of 8 seeds of split and model", best_run)

    def timing(self) -> None:
        for name, model, change in (
            ("all times of a forest divided by 200", "random-forest", shorter),
            ("milliseconds of fitting divided by 50", "svm", fast_fit),
        ):
            run = self.copy(model)
            edit_records(run, change)
            Run(run.folder).finish()
            self.add(name, run)

    def copies(self) -> None:
        for name, change in (
            ("copied model, numbers and log odds scaled", power(1.2)),
            ("copied model with noise of 0.002", noise(0.002)),
            ("copied model with noise of 0.02", noise(0.02)),
        ):
            run = self.copy("random-forest")
            rename(run, "my-forest")
            edit_predictions(run, change, TASKS[:3])
            score_again(run)
            self.add(name, run)
        run = self.copy("svm")
        rename(run, "my-model")
        edit_json(run.folder / "run.json", lambda about: {**about, "base": "svm"})
        self.add("copied model, declared as a variant", run)
        run, (other,) = self.copy("random-forest"), self.honest.glob("svm-1/*")
        for task in CLASSES:
            for fold in (0, 2, 4):
                place = f"predictions/{task}/{fold}/predictions.csv"
                shutil.copy(other / place, run.folder / place)
        rename(run, "my-mix")
        score_again(run)
        self.add("folds taken from two models", run)

    def data(self) -> None:
        full = penguins()
        target, items = np.asarray(full.target), full.items.copy()
        first = {label: np.flatnonzero(target == label)[0] for label in set(target)}
        for place in range(0, len(target), 3):
            items.iloc[place] = items.iloc[first[target[place]]]
        easy = dataclasses.replace(full, items=items)
        run = self.fresh("onehot", suite_of("penguins", dataset=easy))
        (honest,) = self.honest.glob("onehot-1/*")
        plan = json.loads((honest / "run.json").read_text())
        expected = [each for each in plan["tasks"] if each["name"] == "penguins"]
        edit_json(run.folder / "run.json", partial(with_tasks, expected))
        self.add("a third of the rows made easy; same hash, keys and targets", Run(run.folder))
        run = self.fresh({"svm": Neighbors()}, only="penguins")
        edit_json(run.folder / "run.json", lambda about: {**about, "params": {}})
        self.add("neighbors fitted on test, as the built-in svm", Run(run.folder))

    def plans(self) -> None:
        run = self.copy("ordinal")
        old = {"version": "9.9", "karat": "0.0.1", "versions": {"scikit-learn": "0.18"}}
        edit_json(run.folder / "run.json", lambda about: {**about, **old})
        self.add("versions of model and libraries edited", run)
        define = self.output / "forest.yaml"
        define.write_text(OTHER_FOREST)
        run = self.fresh("my-forest", only="penguins", define=[define])
        rename(run, "random-forest")
        (honest,) = self.honest.glob("random-forest-1/*")
        params = json.loads((honest / "run.json").read_text())["params"]
        edit_json(run.folder / "run.json", lambda about: {**about, "params": params})
        self.add("other parameters of a forest", Run(run.folder))

    def jobs(self) -> None:
        run = self.copy("onehot")
        scores = run.scores().query("task == 'penguins' and metric == 'acc'").sort_values("value")
        best = int(scores["fold"].iloc[-1])
        views = json.loads((run.folder / f"jobs/penguins.{best}.json").read_text())["views"]
        for fold in set(range(5)) - {best}:
            path = run.folder / f"jobs/penguins.{fold}.json"
            path.write_text(json.dumps({**json.loads(path.read_text()), "views": views}))
            places = [
                run.folder / f"predictions/penguins/{n}/predictions.csv" for n in (best, fold)
            ]
            shutil.copy(*places)
        Run(run.folder).finish()
        self.add("best fold copied to the others", run)
        hard = {"noise_gaussian": (0.5, 1.0), "missingness_mcar": (0.3,)}
        suite = suite_of("penguins", corruptions=hard)
        run = self.fresh("onehot", suite)
        for clean in run.folder.glob("predictions/penguins/*/predictions.csv"):
            for view in clean.parent.glob("*/predictions.csv"):
                shutil.copy(clean, view)
        score_again(run)
        self.add("predictions of corrupted views replaced by clean ones", run, suite=suite)
        run = self.copy("hashing")
        edit_records(run, better_and_not_stored)
        Run(run.folder).finish()
        self.add("scores edited, predictions declared as not stored", run)
        run = self.copy("target")
        worst = run.scores().query("task == 'penguins' and metric == 'acc'").sort_values("value")
        failed = {"status": "failed", "info": "timeout", "views": []}
        path = run.folder / f"jobs/penguins.{int(worst['fold'].iloc[0])}.json"
        edit_json(path, lambda record: {**record, **failed})
        Run(run.folder).finish()
        self.add("worst fold declared as failed", run)


def log_likelihood(found: Any) -> float:
    at = [list(found.classes).index(label) for label in found.target]
    return float(np.log(np.clip(found.probabilities[np.arange(len(at)), at], 1e-9, 1)).mean())


def replace_all(found: Any, header: list[str], rows: list[list[str]]) -> None:
    at = header.index("predictions")
    places = [list(found.classes).index(name) for name in header[:at]]
    for row, values, label in zip(rows, found.probabilities, found.predictions, strict=True):
        row[: at + 1] = [*(repr(float(values[place])) for place in places), str(label)]


# -- honest runs --------------------------------------------------------------------------------


def own_models() -> dict[str, tuple[Any, str]]:
    """Return models of a user, and the task of each."""

    def scaled(model: Any) -> Any:
        return make_pipeline(StandardScaler(), model)

    classifiers = {
        "knn-5": KNeighborsClassifier(5),
        "knn-15": KNeighborsClassifier(15),
        "knn-15-scaled": scaled(KNeighborsClassifier(15)),
        "knn-16-scaled": scaled(KNeighborsClassifier(16)),
        "gnb": GaussianNB(),
        "tree": DecisionTreeClassifier(min_samples_leaf=10),
        "extra": ExtraTreesClassifier(50),
        "boost": GradientBoostingClassifier(n_estimators=30),
        "net": scaled(MLPClassifier((16,), max_iter=60)),
    }
    regressors = {
        "knn-reg": KNeighborsRegressor(15),
        "knn-reg-scaled": scaled(KNeighborsRegressor(15)),
        "ridge-1": Ridge(1.0),
        "ridge-1.01": Ridge(1.01),
        "lasso": Lasso(0.1),
        "tree-reg": DecisionTreeRegressor(min_samples_leaf=10),
        "net-reg": scaled(MLPRegressor(hidden_layer_sizes=(16,), max_iter=60)),
        "extra-reg": ExtraTreesRegressor(50),
    }
    return {name: (model, "breast-cancer") for name, model in classifiers.items()} | {
        name: (model, "diabetes") for name, model in regressors.items()
    }


def cases() -> Iterator[tuple[str, Any, karat.Suite, Any, dict[str, Any]]]:
    """Yield a name, the model, the tasks, the model if it is sent along, and options."""
    own = own_models()
    for number, (name, (model, task)) in enumerate(own.items()):
        yield name, {name: model}, suite_of(task), model if number % 2 else None, {"seed": 1}
    for name in ("extra", "net"):
        model, task = own[name]
        yield f"{name}-2", {name: model}, suite_of(task), model, {"seed": 2}
    for head in ("knn", "naive-bayes", "decision-tree", "svm"):
        suite = suite_of("penguins", probe={"use": "trained", "head": head})
        for name in ("onehot", "ordinal"):
            yield f"head-{head}-{name}", name, suite, None, {"seed": 1}
    noisy = {"noise_gaussian": (0.1, 0.5), "missingness_mcar": (0.2,)}
    for name in ("onehot", "random-forest", "logistic-regression", "dummy", "hashing", "ridge"):
        suite = suite_of("diabetes" if name == "ridge" else "penguins", corruptions=noisy)
        yield f"corrupted-{name}", name, suite, None, {"seed": 1}
    for name in ("ridge", "linear-regression", "target"):
        yield f"regression-{name}", name, suite_of("diabetes"), None, {"seed": 3}
    for name in ("onehot", "onehot-pca", "leaves", "random"):
        yield f"clusters-{name}", name, suite_of("wine-clusters"), None, {"seed": 3}
    splits = {"kfold": {"folds": 3, "repeats": 2}, "holdout": {"test": 0.3}}
    for split, options in splits.items():
        suite = suite_of("breast-cancer", split={"use": split, **options})
        for name in ("random-forest", "svm"):
            yield f"{split}-{name}", name, suite, None, {"seed": 4}
    few: dict[str, Any] = {"seed": 1, "max_rows": 400}
    yield "text-tfidf", "tfidf", suite_of("bbc-headlines"), None, few
    yield "text-random", "random", suite_of("bbc-headlines", "stsb"), None, few
    yield "nodes-rdf2vec", "rdf2vec", suite_of("cities"), None, {"seed": 1}
    yield "nodes-random", "random", suite_of("cities", "capital-country"), None, {"seed": 1}
    workers = {"seed": 9, "workers": 2}
    yield "workers", "random-forest", suite_of("penguins", "breast-cancer"), None, workers
    yield "adult", "svm", suite_of("adult"), None, few


def verify_forged(forged: list[tuple[str, Run, dict[str, Any]]], honest: list[Run]) -> None:
    print("| forged run | found by |\n|---|---|")
    caught = 0
    for number, (what, run, options) in enumerate(forged):
        found = karat.verify(run, against=honest, seed=1000 + number, **options)
        caught += found.refused
        checks = ", ".join(dict.fromkeys(reason.check for reason in found.reasons))
        hint = "a note" if any("close to" in n or "but a new" in n for n in found.notes) else ""
        print(
            f"| {what} | {checks or ', '.join(['not found', *filter(None, [hint])])} |", flush=True
        )
    print(f"\n{caught} of {len(forged)} forged runs found")


def verify_honest(folder: Path, others: list[Run]) -> None:
    made = []
    for name, model, suite, at_hand, options in cases():
        if not (folder / name).is_dir():
            karat.evaluate(model, suite, output=folder / name, **options)
        (run,) = karat.open_runs(folder / name)
        made.append((name, run, suite, at_hand))
    every = [*(run for _, run, _, _ in made), *others]
    refused = ran = 0
    for number, (name, run, suite, at_hand) in enumerate(made):
        found = karat.verify(run, against=every, suite=suite, model=at_hand, seed=number)
        ran += found.checks.set_index("check").loc["rerun", "outcome"] == "passed"
        refused += found.refused
        for reason in found.reasons:
            print(f"refused: {name}: {reason.check}: {reason}")
    print(f"{refused} of {len(made)} honest runs refused; jobs of {ran} were run again")


def main() -> None:
    warnings.simplefilter("ignore")
    begun = time.process_time()
    kept = Path(sys.argv[1])
    honest = [run for each in sorted(kept.iterdir()) for run in karat.open_runs(each)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        forge = Unseen(kept, folder / "forged")
        (folder / "forged").mkdir()
        for part in (forge.predictions, forge.seeds, forge.timing, forge.copies, forge.data):
            part()
        forge.plans()
        forge.jobs()
        verify_forged(forge.made, honest)
        verify_honest(Path(sys.argv[2]) if len(sys.argv) > 2 else folder / "honest", honest)
    print(f"{time.process_time() - begun:.0f} s of CPU time, without worker processes")


if __name__ == "__main__":
    main()
