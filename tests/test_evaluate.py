"""The one verb: what it takes, what it refuses, what it returns."""

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import karat
from karat.catalogue import Catalogue
from karat.errors import DefinitionError
from karat.evaluate import find_both, find_suite, make_options, plan_suite
from karat.models.base import StatelessEncoder
from karat.models.tables import OneHotTable
from karat.session import Options


class Letters(StatelessEncoder):
    def transform(self, items):
        return np.array([[str(t).count("a"), str(t).count("b")] for t in items], dtype=float)


def lengths(items):
    return [[len(str(item)), str(item).count("a")] for item in items]


def test_everything_people_have_is_a_model(words, tmp_path):
    models = {
        "name": "tfidf",
        "class": Letters,
        "instance": Letters(),
        "function": lengths,
        "pipeline": make_pipeline(TfidfVectorizer(analyzer="char")),
        "predictor": make_pipeline(TfidfVectorizer(analyzer="char"), LogisticRegression()),
    }
    runs = karat.evaluate(models, words(), output=tmp_path)
    assert [run.model for run in runs] == list(models)
    board = karat.leaderboard(runs)
    assert board["failed"].sum() == 0
    assert board["words"].notna().all()
    assert board.loc["class", "words"] == board.loc["instance", "words"]
    assert board.loc["predictor", "words"] == 1.0
    # words seen only once tell nothing, letters tell nearly all
    assert board.loc["name", "words"] <= 0.5
    assert board["words"].drop("name").min() >= 0.9


def test_a_vector_file_and_vectors_in_memory_are_models(tmp_path):
    entities = list("abcdefgh")
    file = tmp_path / "known.txt"
    file.write_text("".join(f"{e} {i // 4} {i}\n" for i, e in enumerate(entities)))
    frame = pd.DataFrame({"e": entities, "y": ["x"] * 4 + ["z"] * 4})
    data = karat.Dataset.from_columns(frame, ["e"], "y", modality="entity", name="eight")
    task = karat.Task("eight", data, split={"use": "kfold", "folds": 2}, metrics=["acc"])
    vectors = {e: [i // 4, i] for i, e in enumerate(entities)}
    models = {"file": file, "text": str(file), "dict": vectors, "frame": pd.DataFrame(vectors).T}
    runs = karat.evaluate(models, task, output=tmp_path / "out")
    assert len({tuple(run.scores()["value"]) for run in runs}) == 1
    assert runs[0].scores()["value"].tolist() == [1.0, 1.0]


def test_ten_lines(two_classes, line, tmp_path):
    runs = karat.evaluate(["onehot", "dummy"], [two_classes(), line(), "diabetes"], output=tmp_path)
    board = karat.leaderboard(runs)
    assert board.index.tolist() == ["onehot", "dummy"]
    assert board.attrs["metrics"] == {"halves": "acc", "line": "rmse", "diabetes": "rmse"}


def test_a_suite_by_name_brings_its_models(tmp_path):
    suite = karat.suite("quickstart")
    found, chosen = find_both(Catalogue(), None, "quickstart")
    assert [m.name for m in found] == list(suite.models)
    assert [t.name for t in chosen] == [t.name for t in suite]


def test_mistakes_in_models_and_suite_are_told_together():
    with pytest.raises(DefinitionError) as caught:
        karat.evaluate(["onehott", "skrb"], "quikstart")
    assert [m.split(".")[0] for m in caught.value.messages] == [
        'there is no suite "quikstart"',
        'there is no model "onehott"',
        'there is no model "skrb"',
    ]


def test_no_models_or_tasks_are_told(two_classes):
    with pytest.raises(DefinitionError, match='suite "custom" has no models of its own'):
        karat.evaluate([], two_classes())
    with pytest.raises(DefinitionError, match="no task was given"):
        karat.evaluate("onehot", [])


@pytest.mark.parametrize(
    "tasks, said",
    [
        (5, "a task is a karat.Task or a name, not int"),
        ([None], "not NoneType"),
        (["diabetis"], 'there is no task "diabetis". Did you mean "diabetes"'),
    ],
)
def test_what_is_no_task_is_told(tasks, said):
    with pytest.raises(DefinitionError, match=said):
        find_suite(Catalogue(), tasks)


def test_a_data_set_is_not_yet_a_task(two_classes):
    with pytest.raises(DefinitionError, match="not Dataset"):
        find_suite(Catalogue(), two_classes().dataset)


# -- options --------------------------------------------------------------------------------


def test_options_have_defaults_and_short_forms(tmp_path):
    assert make_options({}) == Options()
    assert make_options({"output": str(tmp_path)}).output == tmp_path
    assert make_options({"only": "penguins"}).only == ["penguins"]
    assert make_options({"folds": 3}).folds == [3]


@pytest.mark.parametrize(
    "given, said",
    [
        ({"workers": 0}, "workers must be a whole number from 1"),
        ({"workers": "2"}, "workers must be a whole number from 1 to 2147483647, not '2'"),
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"seed": 1.5}, "not 1.5"),
        ({"seed": 2**31}, "to 2147483647, not 2147483648"),
        ({"seed": True}, "not True"),
        ({"max_rows": 1}, "max_rows must be a whole number from 2"),
        ({"folds": [0, "1"]}, "folds must be"),
        ({"sed": 1}, 'evaluate has no parameter "sed". Did you mean "seed"'),
    ],
)
def test_wrong_options_are_told(given, said):
    with pytest.raises(DefinitionError, match=said):
        make_options(given)


def test_the_documented_options_are_those_there_are():
    text = inspect.getdoc(karat.evaluate)
    for name in Options.__dataclass_fields__:
        assert f"``{name}``" in text


# -- planning -------------------------------------------------------------------------------


def planned(tasks, **options):
    suite = karat.Suite("s", tuple(tasks))
    models = Catalogue().models(OneHotTable())
    return plan_suite(models, suite, Catalogue(), make_options(options))


def test_a_constraint_limits_folds_and_rows(two_classes):
    task = two_classes(split={"use": "kfold", "folds": 5})
    assert len(planned([task]).jobs) == 5
    assert len(planned([task], constraint="test").jobs) == 2
    assert len(planned([task], constraint="tiny", max_rows=10).tasks[0].data) == 10
    with pytest.raises(DefinitionError, match='no constraint "tny". Did you mean "tiny"'):
        planned([task], constraint="tny")


def test_some_tasks_can_be_chosen(two_classes, line):
    assert [p.task.name for p in planned([two_classes(), line()], only=["l*"]).tasks] == ["line"]


def test_a_data_set_can_be_named(tmp_path):
    task = karat.Task("mine", "diabetes", metrics=["rmse"])
    assert len(planned([task]).tasks[0].data) == 442
    with pytest.raises(DefinitionError, match='no dataset "diabetis". Did you mean "diabetes"'):
        planned([karat.Task("mine", "diabetis")])


@pytest.mark.parametrize("name", ["task", "fold", "result", "info", "status", "coverage", "notes"])
def test_a_metric_called_like_a_column_is_refused(two_classes, clean_registry, name, tmp_path):
    karat.metric(name)(lambda predictions: 0.0)
    with pytest.raises(DefinitionError, match=f'a metric cannot be called "{name}"'):
        karat.evaluate(OneHotTable(), two_classes(metrics=[name, "acc"]), output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_metric_of_ones_own_is_scored(two_classes, clean_registry, tmp_path):
    @karat.metric("errors", higher_is_better=False, range=(0, 100))
    def errors(predictions):
        return float((predictions.predictions != predictions.truth).sum())

    runs = karat.evaluate(["onehot", "dummy"], two_classes(metrics=["errors"]), output=tmp_path)
    board = karat.leaderboard(runs)
    assert board.index.tolist() == ["onehot", "dummy"]
    assert board.loc["dummy", "halves"] == 5.0
    assert board.attrs["higher_is_better"] == {"halves": False}
