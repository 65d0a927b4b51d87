"""The legacy protocol: the numbers GEval itself published, from the same vectors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

import karat
from karat.core.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.execution.splits import split
from karat.ext.compat.geval import FrameworkManager
from karat.ext.compat.geval.gold import (
    GOLD_STANDARDS,
    TASKS,
    Coverage,
    Parameters,
    from_xml,
    gold_names,
    load_gold,
    task_names,
    trials,
)
from karat.models.vector_files import VectorFile

from ....skips import original_data, original_file
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


#: the accuracies that GEval recorded of the first three repeats, with scikit-learn before 0.22
RECORDED = {
    "NB": [0.777523353839143, 0.787400318979266, 0.779334700387332],
    "KNN K=3": [0.718591934381408, 0.740817953975849, 0.749020277967646],
    "SVM C=10.0": [0.765846434267487, 0.755889724310777, 0.764479380268854],
    "SVM C=1000": [0.770608339029392, 0.755673274094327, 0.769742538163591],
}


def test_recorded_rows_need_the_gamma_and_the_folds_of_their_time(encoder, tmp_path):
    (found,) = [g for g in GOLD_STANDARDS if (g.task, g.name) == ("Classification", "Cities")]
    with original_data():
        data = Coverage.of(found, load_gold(found, None), encoder).covered()
    apart = {}
    for gamma in ("auto", "scale"):
        asked = Parameters(encoder.path, protocol="legacy", svm_gamma=gamma).checked()
        made = {
            f"{t.trial.model} {t.trial.configuration}".strip(): t.task
            for t in trials(found, data, asked)
        }
        tasks = [made[name] for name in RECORDED]
        (run,) = karat.evaluate(
            {"rdf2vec": encoder},
            tasks,
            output=tmp_path,
            workers=0,
            only=karat.Only(folds=range(30)),
        )
        scores = run.scores().query("metric == 'acc'").groupby("task", sort=False)["value"]
        rows = np.array([values.to_numpy().reshape(3, 10).mean(axis=1) for _, values in scores])
        apart[gamma] = np.abs(rows - list(RECORDED.values())).max()
    assert apart["auto"] < 1e-9 < 0.02 < apart["scale"]


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


DOCUMENT = """<?xml version="1.0"?>
<parameters>
  <tasks><value>Classification</value><value>SemAn</value></tasks>
  <vector_size>200</vector_size>
  <vector_file_format>TXT</vector_file_format>
  <vector_filename>{file}</vector_filename>
  <top_k>3</top_k>
  <similarity_function>euclidean</similarity_function>
  <compare_with><value/></compare_with>
  <debugging_mode>False</debugging_mode>
  <parallel>false</parallel>
</parameters>
"""


@pytest.fixture
def write(tmp_path):
    def writes(text):
        path = tmp_path / "parameters.xml"
        path.write_text(text, encoding="utf-8")
        return path

    return writes


def test_documented_file(write, tmp_path):
    vectors = tmp_path / "v.txt"
    vectors.write_text("a 1\n")
    found = from_xml(write(DOCUMENT.format(file=vectors))).checked()
    assert found == Parameters(
        str(vectors),
        vector_size=200,
        tasks=["Classification", "SemanticAnalogies"],
        similarity_metric="euclidean",
        top_k=3,
        compare_with=["_all"],  # an empty value means the default
        datasets=["_all"],
    )


def test_the_parameters_of_a_file_are_indexed_by_tag(write):
    """GEval's example scripts read each value by the name of its element."""
    given = FrameworkManager().get_parameters_xmlFile(write(DOCUMENT.format(file="v.txt")))
    tags = ("vector_filename", "vector_file_format", "vector_size", "tasks", "similarity_function")
    tags += ("top_k", "parallel", "debugging_mode", "compare_with")
    values = ["v.txt", "TXT", 200, ["Classification", "SemAn"], "euclidean", 3, False, False]
    assert [given[tag] for tag in tags] == [*values, "_all"]
    assert given["vector_file"] == given.get("vectors_file") == "v.txt"
    assert "similarity_function" in given and "similarity" not in given
    assert Parameters(**given) == given  # evaluate(**given)
    with pytest.raises(KeyError):
        given["similarity"]


def test_gold_standards_by_name_in_any_case():
    assert gold_names("datasets", "kore, CITIES") == ["Cities", "KORE"]
    assert gold_names("datasets", ["LP50", "_all"]) == ["_all"]
    for wrong in ("Citys", []):
        with pytest.raises(DefinitionError):
            gold_names("datasets", wrong)


@pytest.mark.parametrize("tag", ["vector_size", "top_k", "parallel", "debugging_mode"])
def test_a_value_of_another_type(write, tag):
    text = f"<parameters><vector_file>v.txt</vector_file><{tag}>maybe</{tag}></parameters>"
    with pytest.raises(DefinitionError, match=tag):
        from_xml(write(text))


def test_both_spellings_of_a_tag(write):
    inside = "<vector_file>v.txt</vector_file><similarity_metric>l1</similarity_metric>"
    text = f"<parameters>{inside}</parameters>"
    assert from_xml(write(text)) == Parameters("v.txt", similarity_metric="l1")
    assert FrameworkManager().get_parameters_xmlFile(write(text)).vector_filename == "v.txt"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("<parameters><vector_filename>v</vector_filename>", "XML"),
        ("<params/>", "<params>"),
        ("<parameters/>", "<vector_filename>"),
        ("<parameters><vector_fil>v</vector_fil></parameters>", 'Did you mean "vector_file"'),
        ("<parameters><top_k>1</top_k><top_k>2</top_k></parameters>", "<top_k>"),
        ("<parameters><a><b><c/></b></a></parameters>", "<a>"),
        ('<!DOCTYPE parameters [<!ENTITY x "y">]><parameters>&x;</parameters>', "DOCTYPE"),
        (
            '<!DOCTYPE p [<!ENTITY f SYSTEM "file:///etc/hostname">]><parameters>&f;</parameters>',
            "DOCTYPE",
        ),
    ],
)
def test_invalid_files(write, text, match):
    with pytest.raises((DataError, DefinitionError), match=match):
        from_xml(write(text))


def test_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"none\.xml"):
        from_xml(tmp_path / "none.xml")


def test_task_names_long_short_and_in_any_case():
    for long, short in TASKS.items():
        assert task_names("tasks", [short]) == task_names("tasks", long.lower()) == [long]
    assert task_names("tasks", "_all") == list(TASKS)
    assert task_names("tasks", ["SemAn", "Class"]) == ["Classification", "SemanticAnalogies"]


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(DefinitionError) as caught:
        Parameters("no such file", top_k=-1, tasks="Klass", parallel="perhaps").checked()  # type: ignore[arg-type]
    assert len(caught.value.messages) == 4


@pytest.mark.parametrize("encoding", ["klingon", "utf-32", "shift_jis", "hex"])
def test_unsupported_encodings_of_xml(write, encoding):
    text = "<parameters><vector_filename>v.txt</vector_filename></parameters>"
    with pytest.raises(DataError):
        from_xml(write(f'<?xml version="1.0" encoding="{encoding}"?>{text}'))
