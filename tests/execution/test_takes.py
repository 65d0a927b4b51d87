"""Models that do not tell what they take are asked only what they can take."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import karat
from karat.core.dataset import Dataset
from karat.core.task import Task
from karat.errors import KaratWarning
from karat.execution import takes
from karat.execution.plan import make_plan
from karat.execution.resources import Limits
from karat.execution.takes import decline_untaken
from karat.execution.workers import WorkerDied
from karat.models.adapters import adapt
from karat.models.tables.one_hot_table import OneHotTable

CALLS: list[str] = []
ROWS = 60
TABLE = Dataset.from_table(
    pd.DataFrame({"x": range(ROWS), "c": ["u", "v", "w"] * 20, "y": ["p", "q"] * 30}),
    "y",
    name="rows",
)
TEXTS = Dataset.from_columns(
    pd.DataFrame({"text": [f"a{i} b" for i in range(ROWS)], "y": ["p", "q"] * 30}),
    ["text"],
    "y",
    name="sentences",
)
SPLIT = {"use": "kfold", "folds": 2}
TASKS = [Task(data.name, data, metrics=["acc"], split=SPLIT) for data in (TABLE, TEXTS)]


class ForTables:
    def fit(self, items, y=None):
        CALLS.append("fit")
        self.encoder_ = OneHotEncoder(handle_unknown="ignore").fit(items)
        return self

    def transform(self, items):
        return self.encoder_.transform(items).toarray()


def lengths(texts):
    CALLS.append("function")
    return [[len(text), text.count("a")] for text in texts]


class Fussy:
    """Needs many rows of a table, as principal components do."""

    def fit(self, items, y=None):
        if hasattr(items, "columns") and len(items) < 40:
            raise ValueError("too few rows")
        return self

    def transform(self, items):
        return np.ones((len(items), 1))


class Broken:
    def transform(self, items):
        raise ValueError("it is broken")


class Leaves:
    def transform(self, items):
        raise SystemExit("it leaves")


def declined(thing, tasks=TASKS, workers=0):
    plan = decline_untaken(make_plan([adapt(thing, "mine")], tasks), workers)
    planned = {task.task.name for _, task, _ in plan.jobs}
    return planned, {each.task: each.reason for each in plan.declined}


@pytest.mark.parametrize(
    ("thing", "taken"),
    [
        (ForTables(), "rows"),
        (lengths, "sentences"),
        (TfidfVectorizer(), "sentences"),
        (make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()), "rows"),
        (make_pipeline(TfidfVectorizer(), LogisticRegression()), "sentences"),
    ],
    ids=["class", "function", "vectorizer", "pipeline of tables", "pipeline of texts"],
)
def test_a_model_is_asked_only_what_it_takes(thing, taken):
    planned, reasons = declined(thing)
    assert planned == {taken}
    (reason,) = reasons.values()
    own = {"rows": "table", "sentences": "text"}[taken]
    assert "takes" in reason and (f'"{own}"' in reason or f"takes {own}s" in reason)


def test_the_reason_has_the_error_and_what_to_declare():
    _, reasons = declined(ForTables())
    assert reasons["sentences"].startswith("it takes tables, not texts (on 60 items of sentences, ")
    assert "ValueError" in reasons["sentences"] and 'takes = ("table",)' in reasons["sentences"]


def test_reasons_do_not_depend_on_which_trial_ends_first(monkeypatch):
    in_order, execute = declined(Broken())[1], takes.execute
    monkeypatch.setattr(takes, "execute", lambda *given: reversed(list(execute(*given))))
    assert declined(Broken())[1] == in_order
    assert "it takes no tables or texts" in in_order["rows"]


def test_a_model_that_needs_more_rows_gets_more():
    planned, reasons = declined(Fussy())
    assert planned == {"rows", "sentences"} and not reasons


@pytest.mark.parametrize("thing", [Broken(), Leaves()])
def test_a_model_that_takes_nothing_is_declined_with_a_clear_error(thing, tmp_path):
    planned, reasons = declined(thing)
    assert not planned and "takes no tables or texts" in reasons["rows"]
    assert str(type(thing).__name__).lower()[:4] in reasons["rows"]
    with pytest.warns(KaratWarning, match="mine ran on no task: it takes no tables or texts"):
        karat.evaluate({"mine": thing}, TASKS, output=tmp_path)


def test_the_exit_code_is_that_of_a_run_without_jobs(tmp_path, monkeypatch, cli, clean_registry):
    (tmp_path / "my.yaml").write_text(
        "datasets:\n  rows: {path: rows.csv, target: y}\n"
        "  sentences: {path: texts.csv, target: y, fields: [text], reader: columns}\n"
        "tasks:\n  rows: {dataset: rows, metrics: [acc]}\n"
        "  sentences: {dataset: sentences, metrics: [acc]}\n"
        "suites: {mixed: {tasks: [rows, sentences]}}\n"
    )
    rows = TABLE.items.assign(y=TABLE.target)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    texts = pd.DataFrame({"text": TEXTS.items.to_numpy(), "y": TEXTS.target})
    texts.to_csv(tmp_path / "texts.csv", index=False)
    (tmp_path / "mine_broken.py").write_text(
        "class Broken:\n    def transform(self, items):\n        raise ValueError('it is broken')\n"
    )
    monkeypatch.chdir(tmp_path)
    done = cli("run", "mixed", "--define", "my.yaml", "-m", "mine_broken:Broken", "-w", "0")
    assert done.code == 1 and "Broken ran on no task: it takes no" in done.err


@pytest.mark.parametrize(
    ("thing", "tasks"),
    [
        (ForTables(), TASKS[:1]),
        (type("Declared", (ForTables,), {"takes": ("table",)})(), TASKS),
        (OneHotTable(), TASKS),
    ],
    ids=["one modality", "declared", "of Karat"],
)
def test_no_trial_where_nothing_is_to_be_found_out(thing, tasks, monkeypatch):
    monkeypatch.setattr(takes, "execute", None)
    CALLS.clear()
    declined(thing, tasks)
    assert not CALLS


def test_a_trial_is_cheap_and_the_same_each_time():
    CALLS.clear()
    first = declined(ForTables())
    count = len(CALLS)
    assert count <= 1 + len(takes.ROWS)
    assert declined(ForTables()) == first and len(CALLS) == 2 * count


def test_variants_are_tried_once():
    CALLS.clear()
    model = adapt(lengths, "mine")
    variant = dataclasses.replace(model, name="mine@1d", base="mine")
    plan = decline_untaken(make_plan([model, variant], TASKS))
    assert {each.model for each in plan.declined} == {"mine", "mine@1d"}
    assert CALLS.count("function") <= 2 * 2 * len(takes.ROWS)


MODULE = """
import os

class Ends:
    def transform(self, items):
        if hasattr(items, "columns"):
            os._exit(3)
        return [[len(text)] for text in items]
"""


def test_a_model_that_ends_its_process_is_declined_in_a_worker(tmp_path, monkeypatch):
    (tmp_path / "ending.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    import ending

    planned, reasons = declined(ending.Ends(), workers=1)
    assert planned == {"sentences"} and "exit code 3" in reasons["rows"]


def test_trials_have_the_limits_of_the_jobs(monkeypatch):
    seen = []

    def execute(trials, name, store, workers):
        seen.extend(trials)
        for trial in trials:
            yield (
                trial,
                WorkerDied("exceeded 7 s", "", "timeout") if trial.modality == "table" else "",
            )

    monkeypatch.setattr(takes, "execute", execute)
    limits = Limits(7)
    plan = make_plan([adapt(lengths, "mine")], TASKS)
    plan = decline_untaken(dataclasses.replace(plan, limits=limits))
    assert {trial.limits for trial in seen} == {limits}
    (each,) = plan.declined
    assert "timeout: exceeded 7 s" in each.reason
