"""Reasons why a model cannot run a task.

Plans: jobs, declined tasks, and errors before anything runs.
"""

from __future__ import annotations

import dataclasses
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, Ridge

import karat
from karat.config.catalog import Catalog
from karat.core.dataset import Dataset
from karat.core.task import Task
from karat.errors import DefinitionError, KaratWarning, MissingExtra, Unavailable
from karat.execution.plan import PlannedTask, decline_reason, job_spec, make_plan, pick_tasks
from karat.ext.search.query_generators import partial_rows
from karat.models.adapters import adapt
from karat.models.model import Model
from karat.models.random_encoder import RandomEncoder
from karat.models.tables.one_hot_table import OneHotTable

TABLE = pd.DataFrame({"x": range(6), "z": list("abcabc"), "y": ["p", "q"] * 3})
CLASSES = Dataset.from_table(TABLE, "y", name="six")
NUMBERS = Dataset.from_table(TABLE.assign(y=np.arange(6) / 7), "y", name="six", kind="regression")
TEXTS = Dataset.from_columns(TABLE, ["z"], "y")
ENTITIES = Dataset.from_columns(TABLE, ["z"], "y", modality="entity")
PAIRS = Dataset.from_columns(TABLE.assign(w=list("bcabca")), ["z", "w"], "y")
BAGS = Dataset.from_columns(TABLE.assign(z=[{"a": 1, "b": 2}] * 6), ["z"], "y")
SEARCH = Dataset.from_columns(TABLE.assign(w=list("bcabca")), ["z"], "w", kind="items")
TASK = Task("t", CLASSES)
TWO_FOLDS = {"use": "kfold", "folds": 2}
ONEHOT, LOGISTIC, RIDGE = adapt(OneHotTable()), adapt(LogisticRegression()), adapt(Ridge())


def declines(model, data, blind=False, task=TASK):
    return decline_reason(model, PlannedTask(task, data, blind=blind))


def test_no_reason_if_the_model_can_run_the_task():
    constant = adapt(lambda items: np.ones((len(items), 1)))
    runs = [(ONEHOT, CLASSES), (LOGISTIC, CLASSES), (RIDGE, NUMBERS), (constant, SEARCH)]
    assert [declines(*pair) for pair in runs] == [""] * 4
    assert declines(ONEHOT, CLASSES, blind=True) == ""


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


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("no \udc80 today"), "its unavailable() raised ValueError: no"),
        (MissingExtra("skrub", "tables"), "skrub is not installed"),
    ],
)
def test_a_model_whose_unavailable_raises_is_declined(two_classes, line, tmp_path, error, reason):
    class Moody(BaseEstimator):
        def unavailable(self):
            raise error

        def fit(self, items, y=None):
            return self

        def transform(self, items):
            return items

    moody = adapt(Moody(), "moody")
    found = make_plan([moody, ONEHOT], [two_classes(), line()])
    assert [each.reason.startswith(reason) for each in found.declined] == [True, True]
    assert {model.name for model, _, _ in found.jobs} == {ONEHOT.name}
    first, _ = karat.evaluate([moody, ONEHOT], [two_classes()], output=tmp_path)
    assert first.results()["status"].tolist() == ["declined", "declined"]


def test_a_model_whose_declines_raises_is_declined():
    class Moody(Own):
        def declines(self, kind):
            raise ValueError(kind)

    expected = "its declines() raised ValueError: classification"
    assert declines(adapt(Moody()), CLASSES) == expected


def test_jobs_are_ordered_by_model_task_and_fold_or_by_fold_with_corruptions(two_classes, line):
    def ordered(**changes):
        tasks = [two_classes("b", **changes), line("a")]
        found = plan(tasks, [adapt(RandomEncoder(), "random"), PLAN_ONEHOT])
        assert found.declined == ()
        return [(model.name, planned.task.name, fold) for model, planned, fold in found.jobs]

    names = ("random", "onehot")
    assert ordered() == [(model, task, fold) for model in names for task in "ba" for fold in (0, 1)]
    # the models of a fold are consecutive
    assert ordered(corruptions={"noise_gaussian": [0.1]}) == [
        *((model, "a", fold) for model in names for fold in (0, 1)),
        *((model, "b", fold) for fold in (0, 1) for model in names),
    ]


def test_the_heads_of_a_fold_are_consecutive(two_classes, line):
    first = two_classes("b")
    tasks = [first, line("a"), dataclasses.replace(first, name="c")]
    found = plan(tasks, [adapt(RandomEncoder(), "random"), PLAN_ONEHOT])
    order = [(planned.task.name, fold) for _, planned, fold in found.jobs]
    assert order == 2 * [("b", 0), ("c", 0), ("b", 1), ("c", 1), ("a", 0), ("a", 1)]


def test_folds_can_be_chosen_or_limited(two_classes):
    task = two_classes(split={"use": "kfold", "folds": 5, "repeats": 2})
    assert plan([task]).tasks[0].folds == tuple(range(10))
    assert plan([task], only_folds=[3, 0, 3]).tasks[0].folds == (0, 3)
    assert plan([task], max_folds=2).tasks[0].folds == (0, 1)
    assert plan([task]).tasks[0].repeats == (0,) * 5 + (1,) * 5
    (message,) = mistakes([task], only_folds=[1, 10])
    assert "fold 10" in message and "0 to 9" in message


def test_a_number_of_folds_sets_the_split_everywhere(two_classes):
    task = two_classes(split={"use": "kfold", "repeats": 2})
    for found in (plan([task], folds=3), plan([dataclasses.replace(task, folds=3)])):
        assert found.tasks[0].folds == tuple(range(6))
        assert found.tasks[0].task.split["folds"] == 3
    written = plan([two_classes(split={"use": "kfold", "repeats": 2, "folds": 3})])
    assert written.tasks[0].asked == found.tasks[0].asked
    # it is not cut by a constraint; a number of the call replaces that of the task
    assert plan([dataclasses.replace(task, folds=3)], max_folds=2).tasks[0].folds == tuple(range(6))
    assert len(plan([dataclasses.replace(task, folds=3)], folds=4).tasks[0].folds) == 8
    assert plan([dataclasses.replace(task, max_folds=1)]).tasks[0].folds == (0,)


@pytest.mark.parametrize("split", ["holdout", "all", {"use": "fixed", "test": [0]}])
def test_a_number_of_folds_without_effect_is_a_mistake(two_classes, split):
    (message,) = mistakes([two_classes(split=split, folds=3)])
    assert "folds=3 has no effect" in message and "halves" in message
    (message,) = mistakes([two_classes(split=split)], folds=3)
    assert "folds=3 has no effect: halves has a split" in message
    with pytest.warns(KaratWarning, match="no effect on other:"):
        found = plan([two_classes(), two_classes("other", split=split)], folds=3)
    assert len(found.tasks[0].folds) == 3


def test_rows_are_limited_alike_for_tasks_on_one_dataset(two_classes):
    tasks = [two_classes("a"), two_classes("b", max_rows=8)]
    first, second = plan(tasks, max_rows=10).tasks
    assert (len(first.data), len(second.data)) == (10, 8)
    again = plan([two_classes("c")], max_rows=10).tasks[0]
    assert again.data.fingerprint == first.data.fingerprint
    other = plan([two_classes("c")], max_rows=10, seed=1).tasks[0]
    assert other.data.fingerprint != first.data.fingerprint


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
    assert planned.duplicate_rows == (0, len(planned.data))
    again, other = (plan([search(max_rows=40)], seed=seed).tasks[0].data for seed in (42, 1))
    assert again.fingerprint == planned.data.fingerprint != other.fingerprint


def test_default_metrics(two_classes, line):
    frame = pd.DataFrame({"a": list("abc"), "b": list("bca"), "c": list("cab"), "y": [1, 2, 3.5]})
    pairs = Dataset.from_columns(frame, ["a", "b"], "y", kind="regression")
    items = Dataset.from_columns(
        frame.assign(y=list("abc")), ["a", "b", "c"], "y", kind="items", modality="entity"
    )
    kmeans = {"use": "trained", "head": "kmeans"}
    ranks = ("map", "mrr@10", "ndcg@10", "recall@10")
    anything = adapt(lambda items: np.ones((len(items), 1)), "ones")
    for task, metrics in (
        (two_classes(metrics=[]), ("auc", "acc", "balacc", "logloss")),
        (two_classes(metrics=[], split="all", probe=kmeans), ("v_measure", "ari")),
        (two_classes(metrics=[], split="all", probe="same-class"), ranks),
        (line(metrics=[]), ("rmse", "mae", "r2")),
        (Task("s", pairs, probe="similarity", split="all"), ("spearman", "pearson")),
        (Task("q", items, probe="analogy", split="all"), ("hits@1", "hits@10", "mrr")),
        (search(metrics=[]), ranks),
        (search(metrics=[], ask="text-queries"), ranks),
    ):
        assert plan([task], [anything]).tasks[0].task.metrics[: len(metrics)] == metrics


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
    assert plan([task]).tasks[0].duplicate_rows == (20, 20)
    assert plan([task], max_folds=2).tasks[0].duplicate_rows == (8, 8)
    assert plan([two_classes()]).tasks[0].duplicate_rows == (0, 20)
    blind = Task("b", data, probe="same-class", split="all", metrics=["map"])
    assert plan([blind]).tasks[0].duplicate_rows == (0, 0)


@pytest.mark.parametrize("error", [Unavailable("you are offline"), MissingExtra("pyarrow", "x")])
def test_unavailable_data_decline_the_task(error, two_classes):
    def load():
        raise error

    lacking = Model("m", None, "encoder", takes=("text",), unavailable="torch is not installed")
    found = plan([Task("far", load), two_classes()], [PLAN_ONEHOT, lacking])
    reasons = [str(error), *["torch is not installed"] * 2]
    assert [(d.task, d.reason) for d in found.declined] == [
        *zip(("far", "far", "halves"), reasons, strict=True)
    ]
    assert len(found.jobs) == 2


def test_one_error_lists_the_mistakes_of_all_tasks(two_classes):
    def broken():
        raise ValueError("no such table")

    trained = {"use": "trained"}
    cases = [
        (two_classes("a", corruptions={"noise_gausian": [0.1]}), "noise_gausian", "noise_gaussian"),
        (two_classes("b", metrics=["acc", "acuracy"]), "acuracy"),
        (two_classes("c", probe=trained | {"head": "logistic-regresion"}), "logistic-regression"),
        (two_classes("d", probe={"use": "traned"}), "traned", "trained"),
        (two_classes("e", probe=trained | {"compose": "singel"}), "singel", "single"),
        (two_classes("f", probe=trained | {"hed": "logistic"}), "hed", "head"),
        (two_classes("g", split={"use": "kfold", "fold": 3}), "fold", "folds"),
        (two_classes("h", split="kfolds"), "kfolds", "kfold"),
        (two_classes("i", probe=trained | {"head": {"use": "logistic-regression", "c": 1}}), '"C"'),
        (two_classes("j", probe=trained | {"head": {"C": 1}}), "use"),
        (Task("k", broken), "ValueError: no such table"),
        (Task("l", lambda: 5), "int", "karat.Dataset"),
        (Task("m", "a-name"), "a-name"),
        (two_classes("halves", split={"use": "kfold", "folds": 30}), "30 folds"),
        (two_classes("z"), "duplicate"),
    ]
    found = mistakes([*(task for task, *_ in cases), two_classes("z")])
    for message, (task, *parts) in zip(found, cases, strict=True):
        assert all(part in message for part in (task.name, *parts)), message


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
        {"ask": {"use": "partial-rows", "queries": 11}},
        {"ask": {"use": "partial-rows", "queries": 10, "keep": 0.9}},
    ],
)
def test_another_definition_is_another_job(two_classes, changes):
    make = search if "ask" in changes else two_classes
    assert spec(make(**changes)) != spec(make()) == spec(make())


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
    ranking = two_classes("ranking", probe="same-class", split="all", metrics=["acc"])
    first, second = mistakes([two_classes("odd", metrics=["rmse"]), ranking])
    assert '"odd"' in first and "rmse" in first
    assert '"ranking"' in second and "acc" in second
    assert plan([two_classes(split="all", metrics=["v_measure"])]).jobs


def test_a_dataset_of_several_tasks_is_loaded_once(tmp_path):
    calls = []

    def data():
        calls.append("good")
        return CLASSES

    def lost():
        calls.append("lost")
        raise Unavailable("no file")

    tasks = [Task(name, data, split=TWO_FOLDS) for name in "abc"]
    tasks += [Task(name, lost) for name in "de"]
    plan = make_plan([ONEHOT], tasks)
    assert calls == ["good", "lost"]
    assert [each.task.name for each in plan.tasks if each.data is CLASSES] == ["a", "b", "c"]
    assert [(each.task, each.lacks) for each in plan.declined] == [("d", "data"), ("e", "data")]


def test_tasks_of_one_definition_share_its_dataset(tmp_path):
    TABLE.to_csv(tmp_path / "six.csv", index=False)
    (tmp_path / "my.yaml").write_text(
        "datasets:\n  six: {path: six.csv, target: y, kind: classification}\n"
        "tasks:\n  first: {extends: classification, dataset: six, split: {folds: 2}}\n"
        "  second: {extends: first}\n"
    )
    catalog = Catalog(tmp_path / "my.yaml")
    first, second = make_plan([ONEHOT], [catalog.task("first"), catalog.task("second")]).tasks
    assert first.data is second.data


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
