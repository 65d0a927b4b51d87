"""Reasons why a model cannot run a task.

Plans: jobs, declined tasks, and errors before anything runs.
"""

from __future__ import annotations

import dataclasses
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import karat
from karat.core.dataset import Dataset
from karat.core.task import Task
from karat.data.query_generators import partial_rows
from karat.errors import DefinitionError, MissingExtra, Unavailable
from karat.execution.plan import PlannedTask, decline_reason, job_spec, make_plan, pick_tasks
from karat.models.adapters import adapt
from karat.models.model import Model
from karat.models.tabular_encoders import OneHotTable, RandomEncoder

TABLE = pd.DataFrame({"x": range(6), "z": list("abcabc"), "y": ["p", "q"] * 3})
CLASSES = Dataset.from_table(TABLE, "y", name="six")
NUMBERS = Dataset.from_table(TABLE.assign(y=np.arange(6) / 7), "y", name="six", kind="regression")
TEXTS = Dataset.from_columns(TABLE, ["z"], "y")
ENTITIES = Dataset.from_columns(TABLE, ["z"], "y", modality="entity")
PAIRS = Dataset.from_columns(TABLE.assign(w=list("bcabca")), ["z", "w"], "y")
BAGS = Dataset.from_columns(TABLE.assign(z=[{"a": 1, "b": 2}] * 6), ["z"], "y")
SEARCH = Dataset.from_columns(TABLE.assign(w=list("bcabca")), ["z"], "w", kind="items")
TASK = Task("t", CLASSES)
ONEHOT, LOGISTIC, RIDGE = adapt(OneHotTable()), adapt(LogisticRegression()), adapt(Ridge())


def declines(model, data, blind=False, task=TASK):
    return decline_reason(model, PlannedTask(task, data, blind=blind))


def test_no_reason_if_the_model_can_run_the_task():
    constant = adapt(lambda items: np.ones((len(items), 1)))
    runs = [(ONEHOT, CLASSES), (LOGISTIC, CLASSES), (RIDGE, NUMBERS), (constant, SEARCH)]
    assert [declines(*pair) for pair in runs] == [""] * 4
    assert declines(ONEHOT, CLASSES, blind=True) == ""


def test_a_missing_library_is_the_first_reason():
    lacking = Model("m", None, "encoder", takes=("text",), unavailable="torch is not installed")
    assert declines(lacking, CLASSES) == "torch is not installed"


@pytest.mark.parametrize(
    "takes, data, reason",
    [
        (("table",), TEXTS, "tables, not texts"),
        (("table",), ENTITIES, "tables, not entities"),
        (("text", "entity"), CLASSES, "texts and entities, not tables"),
        (("text", "entity"), ENTITIES, ""),
        (None, TEXTS, ""),
    ],
)
def test_an_encoder_declines_other_modalities(takes, data, reason):
    found = declines(Model("m", None, "encoder", takes=takes), data)
    assert found.endswith(reason) and bool(found) == bool(reason)


@pytest.mark.parametrize("probe", ["nearest", "same-class", "duplicates", "similarity", "analogy"])
def test_a_predictor_declines_probes_of_vectors(probe):
    assert probe in declines(LOGISTIC, CLASSES, task=Task("t", CLASSES, probe=probe))


@pytest.mark.parametrize(
    "model, data, blind, reason",
    [
        (LOGISTIC, SEARCH, False, "vectors"),
        (LOGISTIC, CLASSES, True, "targets"),
        (LOGISTIC, PAIRS, False, "one item"),
        (LOGISTIC, BAGS, False, "one item"),
        (LOGISTIC, NUMBERS, False, "classifier"),
        (RIDGE, CLASSES, False, "regressor"),
    ],
)
def test_a_predictor_declines_what_it_cannot_answer(model, data, blind, reason):
    assert reason in declines(model, data, blind)


class Own:
    """A predictor that is not a scikit-learn estimator."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


class Choosy(Own):
    def declines(self, kind):
        return f"no {kind}"


def test_a_predictor_may_define_what_it_declines():
    assert declines(adapt(Own()), CLASSES) == ""
    assert declines(adapt(Choosy()), CLASSES) == "no classification"
    assert declines(adapt(Choosy()), NUMBERS) == "no regression"
    assert "one item" in declines(adapt(Choosy()), PAIRS)


PLAN_ONEHOT = adapt(OneHotTable(), "onehot")


def plan(tasks, models=(PLAN_ONEHOT,), **how):
    return make_plan(list(models), tasks, **how)


def mistakes(*arguments, **how):
    with pytest.raises(DefinitionError) as caught:
        plan(*arguments, **how)
    return list(caught.value.messages)


def declined_reasons(model, task):
    return [d.reason for d in plan([task], [model]).declined]


def test_jobs_are_ordered_by_model_task_and_fold(two_classes, line):
    random = adapt(RandomEncoder(), "random")
    found = plan([two_classes("b"), line("a")], [random, PLAN_ONEHOT])
    assert [(m.name, p.task.name, fold) for m, p, fold in found.jobs] == [
        (model, task, fold) for model in ("random", "onehot") for task in "ba" for fold in (0, 1)
    ]
    assert found.declined == ()


def test_with_corruptions_the_models_of_a_fold_are_consecutive(two_classes, line):
    random = adapt(RandomEncoder(), "random")
    seen = two_classes("b", corruptions={"noise_gaussian": [0.1]})
    found = plan([seen, line("a")], [random, PLAN_ONEHOT])
    assert [(m.name, p.task.name, fold) for m, p, fold in found.jobs] == [
        *((model, "a", fold) for model in ("random", "onehot") for fold in (0, 1)),
        *((model, "b", fold) for fold in (0, 1) for model in ("random", "onehot")),
    ]


def test_folds_can_be_chosen_or_limited(two_classes):
    task = two_classes(split={"use": "kfold", "folds": 5, "repeats": 2})
    assert plan([task]).tasks[0].folds == tuple(range(10))
    assert plan([task], folds=[3, 0, 3]).tasks[0].folds == (0, 3)
    assert plan([task], max_folds=2).tasks[0].folds == (0, 1)
    assert plan([task]).tasks[0].repeats == (0,) * 5 + (1,) * 5
    (message,) = mistakes([task], folds=[1, 10])
    assert "fold 10" in message and "0 to 9" in message


def test_rows_are_limited_alike_for_tasks_on_one_dataset(two_classes):
    tasks = [two_classes("a"), two_classes("b", max_rows=8)]
    first, second = plan(tasks, max_rows=10).tasks
    assert (len(first.data), len(second.data)) == (10, 8)
    again = plan([two_classes("c")], max_rows=10).tasks[0]
    assert again.data.fingerprint == first.data.fingerprint
    other = plan([two_classes("c")], max_rows=10, seed=1).tasks[0]
    assert other.data.fingerprint != first.data.fingerprint


@pytest.mark.parametrize(
    "changes, metrics",
    [
        ({}, ("auc", "acc", "balacc", "logloss")),
        ({"split": "all", "probe": {"use": "trained", "head": "kmeans"}}, ("v_measure", "ari")),
    ],
)
def test_default_metrics(two_classes, changes, metrics):
    found = plan([two_classes(metrics=[], **changes)]).tasks[0].task.metrics
    assert found[: len(metrics)] == metrics


def test_default_metrics_of_numbers_scores_and_items(line):
    assert plan([line(metrics=[])]).tasks[0].task.metrics == ("rmse", "mae", "r2")
    frame = pd.DataFrame({"a": list("abc"), "b": list("bca"), "c": list("cab"), "y": [1, 2, 3.5]})
    pairs = Dataset.from_columns(frame, ["a", "b"], "y", kind="regression")
    similar = plan([Task("s", pairs, probe="similarity", split="all")]).tasks[0].task
    assert similar.metrics == ("spearman", "pearson")
    items = Dataset.from_columns(
        frame.assign(y=list("abc")), ["a", "b", "c"], "y", kind="items", modality="entity"
    )
    asked = plan([Task("q", items, probe="analogy", split="all")]).tasks[0].task
    assert asked.metrics == ("hits@1", "hits@10", "mrr")


def search(name="search", **changes):
    """Make a task whose questions are made of the rows of a table."""
    table = pd.DataFrame({"n": np.arange(60.0), "w": [f"w{i % 20}" for i in range(60)]})
    data = Dataset.from_table(table.assign(y=table["n"] / 7), "y", name="sixty", kind="regression")
    given = {
        "ask": {"use": "partial-rows", "queries": 10},
        "probe": {"use": "nearest", "queries": "apart"},
        "metrics": ["map"],
        **changes,
    }
    return Task(name, data, **given)


def test_generated_queries_replace_the_questions():
    planned = plan([search(max_rows=40)]).tasks[0]
    assert planned.data.name == "sixty partial-rows" and planned.data.kind == "items"
    assert len(planned.data.items) == 50  # forty rows, ten queries
    assert len(set(planned.data.group)) == 10 and len(planned.folds) == 5
    assert planned.twins == (0, len(planned.data))
    again, other = (plan([search(max_rows=40)], seed=seed).tasks[0].data for seed in (42, 1))
    assert again.fingerprint == planned.data.fingerprint != other.fingerprint


@pytest.mark.parametrize("changes", [{}, {"ask": "text-queries"}])
def test_default_metrics_of_rankings(two_classes, changes):
    metrics = ("map", "mrr@10", "ndcg@10", "recall@10")
    text = adapt(lambda texts: np.ones((len(texts), 1)), "ones")
    assert plan([search(metrics=[], **changes)], [text]).tasks[0].task.metrics == metrics
    ranking = two_classes(metrics=[], probe="same-class", split="all")
    assert plan([ranking]).tasks[0].task.metrics == metrics


@pytest.mark.parametrize(
    "how, word",
    [
        ("partial-row", '"partial-rows"'),
        ({"use": "partial-rows", "kep": 1}, '"kep"'),
        ({"use": "partial-rows", "keep": 2}, "keep"),
        ({"use": "text-queries", "conditions": ["numerical"]}, "numerical"),
    ],
)
def test_a_wrong_query_generator_is_an_error_with_the_task(how, word):
    (message,) = mistakes([search(ask=how)])
    assert '"search"' in message and word in message


def test_rows_without_possible_queries_are_an_error(words):
    (message,) = mistakes([words(ask="partial-rows")])
    assert '"words"' in message and "partial-rows" in message
    (message,) = mistakes([search(ask={"use": "text-queries", "conditions": "mixed"}, max_rows=1)])
    assert "sixty" in message and "mixed" in message


@pytest.mark.parametrize("probe", ["same-class", "duplicates"])
def test_a_probe_without_one_answer_per_question_cannot_penalize(two_classes, probe):
    given = {"probe": probe, "split": "all", "metrics": ["pr_auc" if probe[0] == "d" else "map"]}
    assert plan([two_classes(**given)]).jobs
    (message,) = mistakes([two_classes(**given, missing="penalize")])
    assert '"halves"' in message and probe in message


def test_duplicates_are_counted_in_the_folds_that_run(two_classes):
    table = pd.DataFrame({"x": [0, 1] * 10, "y": ["p", "q"] * 10})
    data = Dataset.from_table(table, "y", name="two")
    task = Task("t", data, split={"use": "kfold", "folds": 5}, metrics=["acc"])
    assert plan([task]).tasks[0].twins == (20, 20)
    assert plan([task], max_folds=2).tasks[0].twins == (8, 8)
    assert plan([two_classes()]).tasks[0].twins == (0, 20)
    blind = Task("b", data, probe="same-class", split="all", metrics=["map"])
    assert plan([blind]).tasks[0].twins == (0, 0)


def test_metrics_of_labels_do_not_fit_rankings(two_classes):
    (message,) = mistakes([two_classes(probe="same-class", split="all", metrics=["acc"])])
    assert '"halves"' in message and "acc" in message


def test_models_decline_tasks_they_cannot_run(two_classes, line, words):
    ridge, logistic = adapt(Ridge()), adapt(LogisticRegression())
    blind = two_classes(split="all", probe={"use": "trained", "head": "kmeans"})
    pairs = [(PLAN_ONEHOT, words()), (ridge, two_classes()), (logistic, line()), (logistic, blind)]
    assert [len(declined_reasons(*pair)) for pair in pairs] == [1] * 4
    assert declined_reasons(logistic, two_classes()) == declined_reasons(ridge, line()) == []
    missing = Model("m", None, "encoder", unavailable="torch is not installed")
    assert declined_reasons(missing, two_classes()) == ["torch is not installed"]


@pytest.mark.parametrize("error", [Unavailable("you are offline"), MissingExtra("pyarrow", "x")])
def test_unavailable_data_decline_the_task(error, two_classes):
    def load():
        raise error

    found = plan([Task("far", load), two_classes()])
    assert [(d.task, d.reason) for d in found.declined] == [("far", str(error))]
    assert len(found.jobs) == 2


def test_one_error_lists_the_mistakes_of_all_tasks(two_classes):
    def broken():
        raise ValueError("no such table")

    tasks = [
        two_classes("a", metrics=["acc", "acuracy"], corruptions={"noise_gausian": [0.1]}),
        two_classes("b", probe={"use": "trained", "head": "logistic-regresion"}),
        two_classes("c", probe={"use": "traned"}),
        two_classes("d", probe={"use": "trained", "compose": "singel"}),
        two_classes("e", probe={"use": "trained", "hed": "logistic"}),
        two_classes("f", split={"use": "kfold", "fold": 3}),
        two_classes("g", split="kfolds"),
        two_classes("h", probe={"use": "trained", "head": {"use": "logistic-regression", "c": 1}}),
        two_classes("i", probe={"use": "trained", "head": {"C": 1}}),
        Task("j", broken),
        Task("k", lambda: 5),
        Task("l", "a-name"),
        two_classes("m", split={"use": "kfold", "folds": 30}),
        two_classes("z"),
        two_classes("z"),
    ]
    found = mistakes(tasks)
    for message, (task, *parts) in zip(
        found,
        [
            ("a", "noise_gausian", "noise_gaussian"),
            ("a", "acuracy"),
            ("b", "logistic-regresion", "logistic-regression"),
            ("c", "traned", "trained"),
            ("d", "singel", "single"),
            ("e", "hed", "head"),
            ("f", "fold", "folds"),
            ("g", "kfolds", "kfold"),
            ("h", '"c"', '"C"'),
            ("i", "use"),
            ("j", "ValueError: no such table"),
            ("k", "int", "karat.Dataset"),
            ("l", "a-name"),
        ],
        strict=False,
    ):
        assert f'"{task}"' in message
        assert all(part in message for part in parts), message
    assert "30 folds" in found[13]
    assert '"z"' in found[-1]


def test_a_missing_vector_file_is_an_error(two_classes, tmp_path):
    (message,) = mistakes([two_classes()], [adapt(tmp_path / "nowhere.txt")])
    assert "nowhere.txt" in message


def test_tasks_are_picked_by_name_or_pattern(two_classes):
    tasks = [two_classes(name) for name in ("adult", "adult-clean", "wine[1]")]
    names = lambda *wanted: [t.name for t in pick_tasks(tasks, wanted)]  # noqa: E731
    assert names("adult*") == ["adult", "adult-clean"]
    assert names("wine[1]", "adult") == ["adult", "wine[1]"]
    with pytest.raises(DefinitionError) as caught:
        names("adlt", "zzz")
    first, second = caught.value.messages
    assert '"adlt"' in first and '"adult"' in first and '"zzz"' in second


def spec(task, model=PLAN_ONEHOT, fold=0, seed=42):
    found = plan([task], [model], seed=seed)
    return job_spec(found, model, found.tasks[0], fold)


def test_the_same_job_has_the_same_spec(two_classes):
    assert spec(two_classes()) == spec(two_classes())
    assert spec(two_classes("other name")) == spec(two_classes())


@pytest.mark.parametrize(
    "changes",
    [
        {"metrics": ["auc", "acc"]},
        {"split": {"use": "kfold", "folds": 3}},
        {"probe": {"use": "trained", "scale": "plain"}},
        {"corruptions": {"noise_gaussian": [0.5]}},
        {"missing": "penalize"},
        {"data": "another name, other folds"},
    ],
)
def test_another_definition_is_another_job(two_classes, changes):
    assert spec(two_classes(**changes)) != spec(two_classes())


def test_another_model_fold_seed_or_data_is_another_job(two_classes):
    first = spec(two_classes())
    assert spec(two_classes(), adapt(OneHotTable(0.5), "onehot")) != first
    assert spec(two_classes(), fold=1) != first
    assert spec(two_classes(), seed=1) != first
    table = pd.DataFrame({"x": [*range(19), 99], "y": ["low"] * 10 + ["high"] * 10})
    changed = dataclasses.replace(
        two_classes(), dataset=Dataset.from_table(table, "y", name="halves")
    )
    assert spec(changed) != first


def test_other_questions_are_another_job():
    first = spec(search())
    assert spec(search()) == first
    assert spec(search(ask={"use": "partial-rows", "queries": 11})) != first
    assert spec(search(ask={"use": "partial-rows", "queries": 10, "keep": 0.9})) != first


def test_the_code_of_a_query_generator_is_part_of_the_spec(clean_registry):
    def register(count):
        def mine(data, rng):
            return partial_rows(data, rng, queries=count)

        karat.query_generator("mine-alone")(mine)
        return plan([search(ask="mine-alone")]).tasks[0].code

    one, two = register(10), register(11)
    assert one != two and register(10) == one


def test_another_metric_of_the_same_name_is_another_job(two_classes, clean_registry):
    def register(value):
        def mine(predictions):
            return value

        karat.metric("mine-alone")(mine)
        return spec(two_classes(metrics=["mine-alone"]))

    one, two = register(0.1), register(0.2)
    assert one != two
    assert register(0.1) == one


def test_a_model_without_identity_has_a_new_spec_each_time(two_classes):
    class Locked:
        def __init__(self):
            self.lock = threading.Lock()

        def transform(self, items):
            return np.zeros((len(items), 1))

    model = adapt(Locked())
    assert spec(two_classes(), model) != spec(two_classes(), model)


def test_a_metric_that_does_not_fit_the_task_is_an_error(two_classes):
    task = dataclasses.replace(two_classes(), name="odd", metrics=("rmse",))
    with pytest.raises(DefinitionError, match="rmse"):
        make_plan([adapt(OneHotTable(), "onehot")], [task])
    blind = dataclasses.replace(two_classes(), name="blind", split="all", metrics=("v_measure",))
    assert make_plan([adapt(OneHotTable(), "onehot")], [blind]).jobs


def test_the_train_and_test_parts_of_the_data_are_the_default_split():
    table = TABLE.assign(side=["train"] * 4 + ["test"] * 2)
    data = Dataset.from_table(table, "y", name="six", part="side")
    (planned,) = make_plan([ONEHOT], [Task("t", data)]).tasks
    assert planned.folds == (0,) and planned.task.split == {"use": "fixed"}
    assert "given" in planned.cut
    pooled = make_plan([ONEHOT], [Task("t", data, split={"use": "kfold", "folds": 2})]).tasks[0]
    assert pooled.folds == (0, 1) and "not used" in pooled.cut


def test_the_positive_class_of_a_task_is_a_fact_of_it():
    (planned,) = make_plan([ONEHOT], [Task("t", CLASSES, split={"use": "kfold", "folds": 2})]).tasks
    assert planned.facts["positive"] == "q"
    other = Task("t", CLASSES, split={"use": "kfold", "folds": 2}, positive="p")
    (planned,) = make_plan([ONEHOT], [other]).tasks
    assert planned.facts["positive"] == "p" and planned.data.classes == ("q", "p")
    with pytest.raises(DefinitionError):
        make_plan([ONEHOT], [dataclasses.replace(other, positive="r")])


def test_weights_need_a_probe_and_a_first_metric_that_take_them():
    data = Dataset.from_table(TABLE, "y", name="six", weight="x")
    how = {"use": "kfold", "folds": 2}
    make_plan([ONEHOT], [Task("t", data, split=how, metrics=["f1", "acc"])])
    for given in ({"metrics": ["clustering_accuracy"]}, {"probe": "same-class"}):
        with pytest.raises(DefinitionError, match="weights"):
            make_plan([ONEHOT], [Task("t", data, split="all", **given)])


def test_weights_follow_the_rows_of_a_corrupted_fold(tmp_path):
    rows = np.arange(60)
    table = pd.DataFrame({"x": rows * 1.0, "z": rows % 7, "y": rows % 2, "w": 1.0 + rows})
    data = Dataset.from_table(table, "y", name="many", kind="classification", weight="w")
    task = Task("t", data, split="holdout", metrics=["acc"], corruptions={"duplicate_rows": [0.5]})
    (run,) = karat.evaluate("onehot", task, output=tmp_path)
    assert all(view["status"] == "ok" for record in run.records() for view in record["views"])
