"""FrameworkManager on a small gold folder: GEval's files, with scores computed by hand."""

import hashlib
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import pearsonr, spearmanr

import karat
from karat import open_runs
from karat.errors import DataError, DefinitionError, KaratWarning
from karat.ext.compat.geval import FrameworkManager
from karat.ext.compat.geval import manager as command
from karat.ext.compat.geval.gold import Parameters

from .geval_gold import (
    GOLD_NAMES,
    RESULT_FILES,
    iri,
    read_compared,
    run_geval,
    vectors,
    write_gold,
    write_hdf5,
    write_text,
)

FREE = ["Clu", "DocSim", "EntRel", "SemAn"]  # tasks without a trained head


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """One run of everything, with two repeats instead of ten."""
    return run_geval(tmp_path_factory.mktemp("geval"), repeats=2, tasks="_all")


@pytest.fixture(scope="module")
def place(result):
    return result.parents[1]


def run(place, name="my vectors.txt", out="results", **given):
    given = {"gold_directory_path": place / "gold", "result_directory_path": place / out, **given}
    return FrameworkManager().evaluate(str(place / name), **given)


def read(folder, name):
    return pd.read_csv(folder / name, keep_default_na=False)


def test_all_runs_all_six_tasks(result):
    names = {path.name.removesuffix("_results.csv") for path in result.glob("*_results.csv")}
    assert names == RESULT_FILES
    assert re.fullmatch(r"result_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d", result.name)


def test_the_error_is_the_mean_over_ten_folds(result):
    (run,) = karat.open_runs(result / "karat")
    folds = [run.predictions("Regression Cities LR", fold) for fold in range(10)]
    keys = np.concatenate([fold.key for fold in folds])
    assert len(set(keys)) == len(keys)  # each entity is tested once
    errors = [np.sqrt(np.mean((fold.predictions - fold.target) ** 2)) for fold in folds]
    table = read(result, "regression_Cities_results.csv")
    first = table[table["model_name"] == "LR"]["root_mean_squared_error"].astype(float).iloc[0]
    assert first == pytest.approx(np.mean(errors))


def test_gold_standards_are_identified_by_their_hash(result, place):
    (run,) = karat.open_runs(result / "karat")
    facts = next(task for task in run.about["tasks"] if "KORE" in task["name"])
    content = (place / "gold" / "EntityRelatedness" / "KORE.txt").read_bytes()
    assert facts["about"]["sha256"] == hashlib.sha256(content).hexdigest()


def test_columns_are_as_documented(result):
    start = ["task_name", "gold_standard_file", "coverage"]
    model = [*start, "model_name", "model_configuration"]
    wanted = {
        "classification_Cities": [*model, "accuracy"],
        "regression_Cities": [*model, "root_mean_squared_error"],
        "clustering_teams_cluster": [
            *(*model, "num_clusters", "adjusted_rand_index", "adjusted_mutual_info_score"),
            *("homogeneity_score", "completeness_score", "v_measure_score"),
            *("normalized_mutual_info_score", "clustering_accuracy", "fowlkes_mallows_score"),
        ],
        "documentSimilarity_LP50": [
            *(*start, "conf", "pearson_score", "spearman_score", "harmonic_mean")
        ],
        "entityRelatedness_KORE": [
            *(*start, "entity_name", "kendalltau_correlation", "kendalltau_pvalue")
        ],
    }
    for name, columns in wanted.items():
        assert list(read(result, f"{name}_results.csv").columns) == columns, name
    analogies = read(result, "semanticAnalogies_results.csv")
    assert list(analogies.columns)[:7] == [
        *(*start, "top_k_value", "right_answers", "tot_answers", "accuracy")
    ]


def test_models_and_configurations_are_as_documented(result):
    table = read(result, "classification_Cities_results.csv")
    models = table.groupby(["model_name", "model_configuration"], sort=False).size()
    costs = [
        ("SVM", f"C={cost}") for cost in ("0.001", "0.01", "0.1", "1.0", "10.0", "100", "1000")
    ]
    repeated = [("NB", ""), ("KNN", "K=3"), ("EntropyTree", ""), *costs]
    nested = [("SVM", "C=nested"), ("NestedChoice", "NB,KNN,EntropyTree,SVM")]
    assert list(models.index) == [*repeated, *nested]
    assert models.tolist() == [2] * len(repeated) + [1, 1]
    assert set(read(result, "regression_Cities_results.csv")["model_name"]) == {
        *("LR", "KNN", "ModelTree", "NestedChoice")
    }
    # the classes lie four standard deviations apart
    assert table[table["model_name"] == "KNN"]["accuracy"].astype(float).min() > 0.9


def test_coverage_and_missing_entities(result):
    table = read(result, "classification_Cities_results.csv")
    assert table["coverage"].unique() == pytest.approx([41 / 42])
    text = (result / "classification_Cities_ignoredData.txt").read_text()
    assert text == iri("City_3") + "\n"
    lost = read(result, "entityRelatedness_KORE_ignoredData.csv")
    assert lost.to_numpy().tolist() == [
        [iri("Main_2"), ""],
        [iri("Rel_0_0"), iri("Main_0")],
    ]
    quads = read(result, "semanticAnalogies_currency_entities_ignoredData.csv")
    assert list(quads.columns) == ["entity_1", "entity_2", "entity_3", "entity_4"]
    assert len(quads) == 8  # City_3 is first in four and second in four
    # as in the file: two cities, then their two lands
    assert quads.iloc[0].tolist() == [iri(n) for n in ("City_0", "City_3", "Land_0", "Land_3")]


def test_repeats_left_out_by_a_constraint_do_not_remove_the_others(place):
    """``served`` keeps the first ten of the hundred folds: one repeat of each model."""
    folder = run(place, out="served", tasks="Class", constraint="served")
    table = read(folder, "classification_Cities_results.csv")
    assert len(table) == 12 and table["accuracy"].between(0, 1).all()
    assert table["model_name"].value_counts().to_dict() == {
        **{"NB": 1, "KNN": 1, "EntropyTree": 1, "NestedChoice": 1, "SVM": 8}
    }


def test_folds_without_a_vector_do_not_remove_their_repeat(tmp_path, monkeypatch):
    """Most cities have no vector, so that there is none in some of the folds."""
    monkeypatch.setattr("karat.ext.compat.geval.gold.REPEATS", 2)
    write_gold(tmp_path / "gold")
    write_text(tmp_path / "few.txt", vectors(tuple(f"City_{n}" for n in range(11, 40))))
    folder = run(tmp_path, "few.txt", tasks="Class")
    (own,) = open_runs(folder / "karat")
    assert "declined" in {r["status"] for r in own.records() if r["task"].endswith(" NB")}
    table = read(folder, "classification_Cities_results.csv")
    assert table["model_name"].value_counts()[["NB", "KNN"]].tolist() == [2, 2]


def test_each_missing_entity_is_its_own_cluster(result):
    table = read(result, "clustering_teams_cluster_results.csv").set_index("model_name")
    # City_3, Country_7 and Orphan are missing: 2 clusters and 3 singletons
    assert table.loc["KMeans", "num_clusters"] == 5
    assert table.loc["Ward hierarchical clustering", "num_clusters"] == 5
    assert float(table.loc["KMeans", "homogeneity_score"]) == 1.0
    # 11 cities and 7 countries are matched, 3 of 21 rows are not
    assert float(table.loc["KMeans", "clustering_accuracy"]) == pytest.approx(18 / 21)
    assert float(table.loc["KMeans", "adjusted_rand_index"]) < 1
    assert table["model_configuration"].to_dict() == {
        "DBSCAN": "metric=cosine",
        "KMeans": "metric=euclidean, n_clusters=2",
        "Agglomerative clustering": "metric=cosine, n_clusters=2",
        "Ward hierarchical clustering": "metric=euclidean, n_clusters=2",
    }


def test_relatedness_is_keyed_by_name(result):
    table = read(result, "entityRelatedness_KORE_results.csv").set_index("entity_name")
    assert list(table.index) == [iri("Main_0"), iri("Main_1")]  # Main_2 has no row
    assert float(table.loc[iri("Main_1"), "kendalltau_correlation"]) == pytest.approx(1.0)
    # the most related entity of Main_0 is missing and ranked last: 3 of 6 pairs are swapped
    assert float(table.loc[iri("Main_0"), "kendalltau_correlation"]) == pytest.approx(0.0)
    values = read_compared(result / "comparison_values.csv").set_index("metric")["score_value"]
    assert float(values["kendalltau_correlation"]) == pytest.approx(0.5)
    assert float(values["kendalltau_correlation_penalised"]) == pytest.approx(1 / 3)


def test_document_similarity_by_hand_and_correctly_labeled(result):
    unit = {k: v / np.linalg.norm(v) for k, v in vectors().items()}
    documents = [{"City_0": 1.0, "City_1": 0.5}, {"City_2": 0.9, "City_1": 0.3}]
    documents.append({"City_4": 1.0, "City_6": 0.1})

    def similarity(one, two, weighted):
        total = 0.0
        for left, right in ((one, two), (two, one)):
            for a, w in left.items():
                total += max(
                    float(unit[iri(a)] @ unit[iri(b)]) * (w * v if weighted else 1.0)
                    for b, v in right.items()
                )
        return total / (len(one) + len(two))

    gold_scores = [4.0, 2.5, 1.5]  # the pairs with document 4 are not covered
    table = read(result, "documentSimilarity_LP50_results.csv").set_index("conf")
    # of 8 annotations, only the one of City_3 has no vector
    assert table["coverage"].astype(float).tolist() == [7 / 8, 7 / 8]
    for conf, weighted in (("without_weights", False), ("with_weights", True)):
        pairs = ((0, 1), (0, 2), (1, 2))
        found = [similarity(documents[i], documents[j], weighted) for i, j in pairs]
        pearson = pearsonr(found, gold_scores).statistic
        assert float(table.loc[conf, "pearson_score"]) == pytest.approx(pearson, abs=1e-5)
        spearman = spearmanr(found, gold_scores).statistic
        assert float(table.loc[conf, "spearman_score"]) == pytest.approx(spearman)


def test_analogies_over_covered_and_over_all_questions(result):
    (row,) = read(result, "semanticAnalogies_results.csv").to_dict("records")
    assert row["top_k_value"] == 2
    assert (row["tot_answers"], row["all_questions"]) == (12, 20)
    assert row["accuracy"] == row["right_answers"] / 12
    assert row["accuracy_over_all"] == row["right_answers"] / 20
    # the whole file except a, b and c
    assert row["candidates"] == len(vectors()) - 3


def test_log(result):
    log = (result / "log.txt").read_text()
    assert "similarity_metric: cosine" in log and "vector_size: 6" in log
    assert len(re.findall(r"execution time: [0-9.]+ seconds", log)) == 6
    assert "Classification, AAUP: " in log  # the folder has no such file
    assert re.search(r"Cities: coverage 0\.9762 .*41.*42.*1 of 40", log)


@pytest.mark.parametrize("rows", [False, True], ids=["(d,)", "(1, d)"])
def test_hdf5_and_text_give_the_same_scores(place, result, rows):
    pytest.importorskip("h5py")
    name = f"vectors {rows}.h5"
    write_hdf5(place / name, vectors(), rows)
    found = run(place, name, vector_file_format="HDF5", vector_size=6, tasks=FREE, out="hdf5")
    for path in found.glob("*_results.csv"):
        ours, theirs = pd.read_csv(path), pd.read_csv(result / path.name)
        pd.testing.assert_frame_equal(ours, theirs, rtol=1e-5)
    names = {p.name for p in result.glob("*ignoredData*")}
    wanted = {n for n in names if not n.startswith(("classification", "regression"))}
    assert {p.name for p in found.glob("*ignoredData*")} == wanted


def test_scores_do_not_depend_on_other_tasks(place):
    one = run(place, tasks=["EntRel"], similarity_metric="euclidean", out="order")
    two = run(place, tasks=["DocSim", "EntRel"], similarity_metric="euclidean", out="order")
    name = "entityRelatedness_KORE_results.csv"
    assert (one / name).read_text() == (two / name).read_text()


def test_command(place, capsys):
    folders = {"gold_directory_path": place / "gold", "result_directory_path": place / "command"}
    asked = Parameters(
        str(place / "my vectors.txt"), tasks=["EntRel", "SemAn"], datasets=GOLD_NAMES, **folders
    )
    assert command.run_geval(asked) == 0
    out = capsys.readouterr().out
    assert "KORE" in out and "kendalltau_correlation" in out and "currency" in out

    def broken(a, b, c):
        raise ValueError("no")

    assert command.run_geval(replace(asked, analogy_function=broken)) == 1
    out = capsys.readouterr().out
    assert "KORE" in out and "failed" in out and "accuracy_over_all" not in out
    assert command.run_geval(replace(asked, tasks=["SemAn"], analogy_function=broken)) == 1


def test_a_missing_gold_standard_is_an_error_after_the_others(place, capsys):
    folders = {"gold_directory_path": place / "gold", "result_directory_path": place / "absent"}
    asked = Parameters(str(place / "my vectors.txt"), tasks=["SemAn"], **folders)
    assert command.run_geval(asked) == 2
    err = capsys.readouterr().err
    for name in ("capital_country_entities", "all_capital_country_entities", "city_state_entities"):
        assert f"SemanticAnalogies {name}" in err
    assert "currency_entities" not in err
    (folder,) = (place / "absent").glob("result_*")
    assert len(read(folder, "semanticAnalogies_results.csv")) == 1  # nothing is lost
    with pytest.warns(KaratWarning, match="city_state_entities"):
        run(place, tasks=["SemAn"], datasets=["currency_entities", "city_state_entities"])
    with pytest.raises(DefinitionError, match="KORE"):
        run(place, tasks=["SemAn"], datasets="KORE")


def test_comparison_files_are_separated_by_blanks(result):
    for name in ("comparison_values.csv", "comparison_ranking.csv"):
        text = (result / name).read_text()
        assert "," not in text.splitlines()[0]
    values = read_compared(result / "comparison_values.csv")
    names = values[["task_name", "model", "model_configuration"]].drop_duplicates()
    found = {tuple(row) for row in names.to_numpy().tolist()}
    # as in GEval, except for top_k
    assert ("Classification", "NB", "-") in found
    assert ("EntityRelatedness", "-", "-") in found
    assert ("DocumentSimilarity", "with_weights", "-") in found
    assert ("SemanticAnalogies", "-", "top_k=2") in found
    assert ("Clustering", "KMeans", "metric=euclidean, n_clusters=2") in found
    assert not values["model"].isna().any() and not values["model_configuration"].isna().any()


def test_a_file_of_ignored_data_when_nothing_is_missing(place):
    write_text(place / "whole.txt", vectors(lost=()))
    found = run(place, "whole.txt", tasks=FREE, out="whole", datasets=GOLD_NAMES)
    texts = {path.name: path.read_text() for path in found.glob("*ignoredData*")}
    assert texts == {
        "clustering_teams_cluster_ignoredData.txt": "",
        "documentSimilarity_LP50_ignoredData.txt": "",
        "entityRelatedness_KORE_ignoredData.csv": "entity,related_to\n",
        "semanticAnalogies_currency_entities_ignoredData.csv": (
            "entity_1,entity_2,entity_3,entity_4\n"
        ),
    }
    for path in found.glob("*_results.csv"):
        assert set(pd.read_csv(path)["coverage"]) == {1.0}, path.name


def test_coverage_counts_main_entities_and_annotations(result):
    # Main_2 of three main entities is missing; the missing Rel_0_0 does not count
    related = read(result, "entityRelatedness_KORE_results.csv")["coverage"]
    assert set(related.astype(float)) == {2 / 3}
    log = (result / "log.txt").read_text()
    assert "2 of 3 main entities" in log and "7 of 8 annotations" in log


def test_a_missing_entity_listed_twice_is_one_singleton(place, tmp_path):
    rows = [f"{iri(f'City_{i}')}\t0" for i in range(12)]
    rows += [f"{iri(f'Country_{i}')}\t1" for i in (*range(8), 7, 7)]  # City_3, Country_7 missing
    text = "\n".join(["DBpedia_URI\tcluster", *rows]) + "\n"
    (tmp_path / "Clustering").mkdir()
    (tmp_path / "Clustering" / "teams_cluster.tsv").write_text(text)
    asked = {"tasks": ["Clu"], "datasets": ["teams_cluster"], "gold_directory_path": tmp_path}
    found = run(place, out="twice", **asked)
    table = read(found, "clustering_teams_cluster_results.csv").set_index("model_name")
    assert table.loc["KMeans", "num_clusters"] == 4
    # 11 cities and 7 countries of 22 rows are in the matched clusters
    assert float(table.loc["KMeans", "clustering_accuracy"]) == pytest.approx(18 / 22)


def test_the_random_tail_of_the_document(place, tmp_path):
    """Ten missing best-related entities: tied at the end, or in a random order at the end."""
    names = ["Main", *(f"Rel_{i}" for i in range(20))]
    (tmp_path / "EntityRelatedness").mkdir()
    lines = [iri(names[0]), *(f"\t{iri(name)}" for name in names[1:])]
    (tmp_path / "EntityRelatedness" / "KORE.txt").write_text("\n".join(lines) + "\n")
    angles = {iri(name): 0.1 * i for i, name in enumerate(names) if i == 0 or i > 10}
    stock = {name: np.array([np.cos(a), np.sin(a)]) for name, a in angles.items()}
    write_text(place / "tail.txt", stock)
    asked = {"tasks": ["EntRel"], "gold_directory_path": tmp_path, "out": "tail"}
    taus = []
    for rule in ("tied", "random", "random"):
        found = run(place, "tail.txt", missing_related=rule, **asked)
        (row,) = read(found, "entityRelatedness_KORE_results.csv").to_dict("records")
        taus.append(float(row["kendalltau_correlation"]))
    # of 190 pairs, 45 are in order, 100 are not, and the 45 of two missing ones are tied
    assert taus[0] == pytest.approx((45 - 100) / np.sqrt(190 * 145))
    # or they are in any order
    assert taus[1] == taus[2]
    assert (45 - 100 - 45) / 190 <= taus[1] <= (45 - 100 + 45) / 190
    assert abs(taus[1] * 190 - round(taus[1] * 190)) < 1e-9  # no ties


def test_metrics_that_divide_by_the_variance(place):
    tasks = ["Clu", "DocSim", "EntRel"]
    found = run(place, tasks=tasks, similarity_metric="seuclidean", out="variance")
    names = {path.name.split("_")[0] for path in found.glob("*_results.csv")}
    assert names == {"clustering", "documentSimilarity", "entityRelatedness"}
    # 18 vectors of 6 dimensions have a covariance, the 5 of the documents have none
    found = run(place, tasks=tasks, similarity_metric="mahalanobis", out="variance")
    assert len(read(found, "clustering_teams_cluster_results.csv")) == 4
    assert not (found / "documentSimilarity_LP50_results.csv").exists()
    assert "5 vectors of 6 dimensions" in (found / "log.txt").read_text()


def test_haversine_needs_two_dimensions(place):
    with pytest.raises(DataError, match=r"haversine.*2 dimensions.*6"):
        run(place, tasks=["EntRel"], similarity_metric="haversine", out="globe")
    flat = {name: vector[:2] for name, vector in vectors().items()}
    write_text(place / "flat.txt", flat)
    found = run(place, "flat.txt", tasks=["EntRel"], similarity_metric="haversine", out="globe")
    taus = read(found, "entityRelatedness_KORE_results.csv")["kendalltau_correlation"]
    # Main is at (1, 0) and Rel_i at (cos 0.3i, sin 0.3i): the distance grows with i
    assert taus.astype(float).tolist() == pytest.approx([0.0, 1.0])


def test_parallel_gives_the_same_files(place, result):
    found = run(place, tasks=FREE, parallel=True, out="parallel")
    for path in found.glob("*_results.csv"):
        assert path.read_text() == (result / path.name).read_text()


def test_own_functions_for_analogies_and_relatedness(place):
    found = run(
        place, tasks=["SemAn"], analogy_function=lambda a, b, c: a, top_k=1, out="own"
    )  # the answer is never near a
    assert read(found, "semanticAnalogies_results.csv")["right_answers"].tolist() == [0]
    found = run(place, tasks=["EntRel"], similarity_metric=lambda a, b: -(a @ b), out="own")
    table = read(found, "entityRelatedness_KORE_results.csv").set_index("entity_name")
    assert float(table.loc[iri("Main_1"), "kendalltau_correlation"]) == pytest.approx(-1.0)


def test_top_k_above_the_number_of_entities(place):
    found = run(place, tasks=["SemAn"], top_k=10_000, out="k")
    assert read(found, "semanticAnalogies_results.csv")["accuracy"].tolist() == [1.0]


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"tasks": ["Classifikation"]}, 'Did you mean "Classification"'),
        ({"tasks": []}, "tasks"),
        ({"vector_file_format": "hdf"}, 'Did you mean "hdf5"'),
        ({"vector_size": 0}, "vector_size"),
        ({"top_k": "two"}, "top_k"),
        ({"parallel": "maybe"}, "parallel"),
        ({"similarity_metric": "__import__('os').system('true')"}, "__import__"),
        ({"protocol": "old"}, "corrected, legacy"),
        ({"compare_with": ["none such"]}, '"none such"'),
        ({"gold_directory_path": "nowhere"}, "nowhere"),
    ],
)
def test_mistakes_are_reported_before_anything_runs(place, given, match):
    with pytest.raises(DefinitionError, match=re.escape(match)):
        run(place, out="mistakes", **given)
    assert not (place / "mistakes").exists()


def test_wrong_vector_size_is_an_error(place):
    for size in (5, 7):
        with pytest.raises(DataError, match=f"{size}.*6"):
            run(place, vector_size=size, tasks=["EntRel"], out="size")


def test_vector_file_without_any_gold_entity(place):
    write_text(place / "other.txt", {"http://elsewhere.example/x": np.ones(6)})
    with pytest.raises(DataError, match="other.txt"):
        run(place, "other.txt", tasks=["EntRel"], out="other")


def test_gold_standard_too_small_for_ten_folds_is_skipped(place):
    few = {k: v for k, v in vectors().items() if "City" not in k or k[-2:] in ("_0", "_1", "_2")}
    write_text(place / "small.txt", few)
    found = run(place, "small.txt", tasks=["Class", "EntRel"], protocol="legacy", out="small")
    assert "10 folds" in (found / "log.txt").read_text()
    assert (found / "entityRelatedness_KORE_results.csv").is_file()


def test_missing_entities_of_a_gold_standard_without_any_vector_are_written(place):
    lost = [name for name in vectors() if "Main" in name or "Rel" in name]
    write_text(place / "some.txt", {k: v for k, v in vectors().items() if k not in lost})
    found = run(place, "some.txt", tasks=["EntRel", "Clu"], out="some")
    table = read(found, "entityRelatedness_KORE_ignoredData.csv")
    assert len(table) == 3 + 12 and not list(found.glob("*KORE_results.csv"))
    with pytest.raises(DataError, match="Missing entities: .*KORE_ignoredData.csv"):
        run(place, "some.txt", tasks=["EntRel"], out="none")
    (other,) = (place / "none").glob("*/entityRelatedness_KORE_ignoredData.csv")
    assert other.read_text() == (found / other.name).read_text()
