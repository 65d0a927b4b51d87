"""The legacy protocol: the numbers GEval itself published, from the same vectors."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

import karat
from karat.compat.geval.gold import GOLD_STANDARDS, Coverage, load_gold, trials
from karat.compat.geval.parameters import Parameters
from karat.core.dataset import Dataset
from karat.execution.splits import split
from karat.models.vector_files import VectorFile

from ...skips import original_data, original_file
from .geval_gold import read_compared, run_geval, vectors

PUBLISHED = {
    ("Regression", "MetacriticAlbums"): {"LR": 11.611, "KNN": 12.092},
    ("Regression", "MetacriticMovies"): {"LR": 16.699, "KNN": 18.744},
    ("Classification", "MetacriticAlbums"): {"NB": 0.7273, "KNN": 0.7382},
    ("Classification", "MetacriticMovies"): {"NB": 0.7571, "KNN": 0.7715},
}
COVERAGE = {"Cities": 0.9811, "MetacriticMovies": 0.9815, "MetacriticAlbums": 0.9656} | {
    "AAUP": 0.9563,
    "Forbes": 0.8763,
}


@pytest.fixture(scope="module")
def encoder():
    encoder = VectorFile(str(original_file("rdf2vec_uniform")))
    encoder.vocabulary()
    return encoder


@pytest.mark.parametrize("name", COVERAGE)
def test_published_coverage(encoder, name):
    (found,) = [g for g in GOLD_STANDARDS if g.name == name and g.task == "Classification"]
    with original_data():
        coverage = Coverage.of(found, load_gold(found, None), encoder)
    assert round(coverage.share, 4) == pytest.approx(COVERAGE[name], abs=1e-4)


@pytest.mark.parametrize("key", PUBLISHED, ids=" ".join)
def test_published_scores_to_the_third_digit(encoder, key, tmp_path):
    wanted = PUBLISHED[key]
    (found,) = [g for g in GOLD_STANDARDS if (g.task, g.name) == key]
    with original_data():
        data = Coverage.of(found, load_gold(found, None), encoder).covered()
    asked = Parameters(encoder.path, protocol="legacy").checked()
    chosen = {t.task.name: t for t in trials(found, data, asked) if t.trial.model in wanted}
    (run,) = karat.evaluate(
        {"rdf2vec": encoder}, [t.task for t in chosen.values()], output=tmp_path, workers=1
    )
    scores = run.scores()
    assert len(scores) == 200  # ten repeats of ten folds, twice
    for name, trial in chosen.items():
        published = wanted[trial.trial.model]
        ours = scores[scores["task"] == name]["value"].mean()
        half = 0.0005 if published < 1 else 0.0006
        assert ours == pytest.approx(published, abs=half), (name, ours)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    tasks = ["Classification", "Regression", "SemanticAnalogies", "Clustering"]
    return run_geval(tmp_path_factory.mktemp("legacy"), tasks=tasks, protocol="legacy")


def test_original_model_names(result):
    table = pd.read_csv(result / "classification_Cities_results.csv")
    assert list(table["model_name"].unique()) == ["NB", "KNN", "C45", "SVM"]
    assert len(table) == 10
    table = pd.read_csv(result / "regression_Cities_results.csv")
    assert list(table["model_name"]) == ["LR", "KNN", "M5"]


def test_original_columns(result):
    clusters = pd.read_csv(result / "clustering_teams_cluster_results.csv")
    assert clusters.columns[-1] == "clustering_accuracy"
    assert pd.read_csv(result / "semanticAnalogies_results.csv").columns[-1] == "accuracy"
    ranks = read_compared(result / "comparison_ranking.csv")
    assert list(ranks.columns)[-3:] == ["ranking", "absolute_total", "relative_total"]
    assert set(ranks["ranking"]) == {0}  # GEval counts from 0
    assert "swapped" in (result / "log.txt").read_text()
    values = read_compared(result / "comparison_values.csv")
    assert not {*values["metric"]} & {"fowlkes_mallows_score", "accuracy_over_all"}
    analogies = values[values["task_name"] == "SemanticAnalogies"]
    columns = ["model", "model_configuration", "metric"]
    assert analogies[columns].to_numpy().tolist() == [["-", "-", "accuracy"]]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_legacy_scores_are_those_of_scikit_learn(result, task):
    """GEval shuffles the joined rows with the seed 0, then calls ``cross_val_score``."""
    gold = pd.read_csv(result.parents[1] / "gold" / "Classification" / "Cities.tsv", sep="\t")
    stock = vectors()
    gold = gold[gold["DBpedia_URI15"].isin(list(stock))]
    first = gold["DBpedia_URI15"].map({n: i for i, n in enumerate(gold["DBpedia_URI15"].unique())})
    # rows of one entity are next to each other before the shuffle
    joined = gold.iloc[np.argsort(first, kind="stable")].sample(frac=1, random_state=0)
    X = np.array([stock[name] for name in joined["DBpedia_URI15"]])
    table = pd.read_csv(result / f"{task}_Cities_results.csv").set_index("model_name")
    if task == "classification":
        models = {"NB": GaussianNB(), "KNN": KNeighborsClassifier(3)}
        wanted = {n: cross_val_score(m, X, joined["label"], cv=10) for n, m in models.items()}
        found = table["accuracy"]
    else:
        models = {"LR": LinearRegression(), "KNN": KNeighborsRegressor(3)}
        how = {"cv": 10, "scoring": "neg_mean_squared_error"}
        y = joined["rating"]
        wanted = {n: np.sqrt(-cross_val_score(m, X, y, **how)) for n, m in models.items()}
        found = table["root_mean_squared_error"]
    for name, folds in wanted.items():
        assert found[name] == pytest.approx(folds.mean(), abs=1e-6), name


def test_folds_ignore_the_seed_and_separate_rows_of_one_entity():
    """Known flaws of GEval's folds, reproduced in the legacy protocol only."""
    names = pd.Series([f"e{i % 20}" for i in range(40)])  # two rows per entity
    items = pd.Series(names.unique(), index=names.unique())
    truth = np.array(["a", "b"] * 20, dtype=object)
    data = Dataset("twice", items, pd.DataFrame({"row": names}), truth, "classification", "entity")
    old = split(data, {"use": "geval", "folds": 10, "repeats": 2}, seed=1)
    assert [f.test.tolist() for f in old] == [
        f.test.tolist() for f in split(data, {"use": "geval", "folds": 10, "repeats": 2}, seed=9)
    ]
    for repeat in (0, 1):
        tested = np.concatenate([f.test for f in old if f.repeat == repeat])
        assert sorted(tested.tolist()) == list(range(40))

    def both_sides(folds):
        return sum(bool(set(names[f.train]) & set(names[f.test])) for f in folds)

    assert both_sides(old) > 0
    assert both_sides(split(data, {"use": "kfold", "folds": 10, "repeats": 2}, seed=1)) == 0
