"""Files written by the GEval interface can be imported; exporting its run gives the same files.

Export in GEval's files and import of them: columns, counts, ranks, equal scores.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

import karat
from karat.config.catalog import Catalog
from karat.errors import DataError, DefinitionError
from karat.ext.compat.convert import export_results
from karat.ext.compat.geval import FrameworkManager
from karat.ext.compat.geval.gold import COMPARED, ranking, trial_of
from karat.ext.compat.geval.result_files import Store, compared, next_number

from .geval_gold import RESULT_FILES, read_compared, run_geval, vectors, write_gold, write_text


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    tasks = ["Class", "Clu", "DocSim", "EntRel", "SemAn"]
    return run_geval(tmp_path_factory.mktemp("geval"), tasks=tasks)


def as_compared(path) -> pd.DataFrame:
    keys = ["task_name", "gold_standard_file", "model", "model_configuration", "metric"]
    table = read_compared(path)
    table = table.fillna({name: "" for name in keys})
    return table.set_index(keys)["score_value"].dropna().sort_index()


def test_result_files_and_comparison_give_the_same_scores(result, tmp_path):
    done = karat.import_results(result.parent / "comparison.csv", tmp_path / "a")
    (by_id,) = done.runs
    assert by_id.model.endswith("vectors_6_cosine_2_1") and not done.problems
    done = karat.import_results(list(result.glob("*_results.csv")), tmp_path / "b", model="own")
    (by_file,) = done.runs
    one, other = (
        run.scores().groupby(["task", "metric"])["value"].mean() for run in (by_id, by_file)
    )
    both = one.index.intersection(other.index)
    # penalized relatedness is only in the comparison
    assert {metric for _, metric in one.index.difference(both)} == {"kendall"}
    assert not len(other.index.difference(both))
    assert one[both].to_dict() == pytest.approx(other[both].to_dict(), rel=1e-12)
    assert {"cities-nb", "teams-kmeans", "kore", "lp50"} <= set(one.index.get_level_values("task"))


def test_import_of_the_whole_folder_skips_its_run_folder(result, tmp_path):
    done = karat.import_results(result.parent, tmp_path / "out")
    assert not done.problems and len(done.runs) == 2  # its files, and its id in both comparisons
    assert any("run folders" in note for note in done.notes)
    assert any(note.startswith("comparison_ranking.csv") for note in done.notes)


def test_export_gives_the_same_scores(result, tmp_path):
    export_results(result / "karat", "geval", tmp_path)
    ours, theirs = (as_compared(folder / "comparison_values.csv") for folder in (tmp_path, result))
    both = ours.index.intersection(theirs.index)
    assert set(theirs.index) == set(both)
    assert ours[both].to_dict() == pytest.approx(theirs[both].to_dict(), rel=1e-12)
    for name in ("classification_Cities", "entityRelatedness_KORE", "semanticAnalogies"):
        exported, written = (
            pd.read_csv(folder / f"{name}_results.csv", keep_default_na=False)
            for folder in (tmp_path, result)
        )
        shared = [
            column for column in written.columns if column in exported and column != "coverage"
        ]
        pd.testing.assert_frame_equal(
            exported[shared], written[shared], check_dtype=False, rtol=1e-12
        )


IDS = [f"http://x/{i}" for i in range(24)]


def tasks() -> list[karat.Task]:
    """Small datasets under the task names of the suite ``geval``."""
    make = karat.Dataset.from_columns
    entity = {"modality": "entity"}
    towns = pd.DataFrame({"e": IDS, "y": ["high", "low"] * 12, "n": np.arange(24.0)})
    pairs = pd.DataFrame({"a": np.repeat(IDS[:3], 7), "b": (IDS[3:10] * 3)})
    pairs["order"] = np.tile(np.arange(7.0)[::-1], 3)
    quads = pd.DataFrame({f: np.roll(IDS, i) for i, f in enumerate("abcd")})
    cities = make(towns, ["e"], "y", name="cities", **entity)
    rating = make(towns, ["e"], "n", name="cities_rating", kind="regression", **entity)
    teams = make(towns, ["e"], "y", name="teams", **entity)
    more = {"kind": "regression", **entity}
    kore = make(pairs, ["a", "b"], "order", name="kore", group="a", **more)
    lp50 = make(pairs, ["a", "b"], "order", name="lp50", **more)
    capital = make(quads, ["a", "b", "c"], "d", name="capital_country", kind="items", **entity)
    split = {"use": "kfold", "folds": 3, "repeats": 2}
    nb = {"use": "trained", "head": "naive-bayes"}
    all_of_it = {"use": "all", "repeats": 2}
    metrics = ["v_measure", "ari", "ami", "nmi", "homogeneity", "completeness"]
    metrics += ["clustering_accuracy", "fowlkes_mallows"]
    related = {"split": "all", "missing": "penalize", "probe": "similarity"}
    ranked = ["hits@1", "hits@2", "mrr", "hits@2_covered", "mrr_covered"]
    found = {"split": "all", "missing": "penalize", "probe": "analogy"}
    kinds = ("classification", "regression", "clustering")
    return [
        karat.Task("cities-nb", cities, probe=nb, split=split, metrics=["acc"], kind=kinds[0]),
        karat.Task("cities-rating-linear", rating, split=split, metrics=["rmse"], kind=kinds[1]),
        karat.Task("teams-kmeans", teams, split=all_of_it, metrics=metrics, kind=kinds[2]),
        karat.Task("lp50", lp50, metrics=["harmonic", "pearson", "spearman"], **related),
        karat.Task("kore", kore, metrics=["kendall", "kendall_covered"], **related),
        karat.Task("capital-country", capital, metrics=ranked, **found),
        karat.Task("own", cities, probe=nb, split=split, metrics=["acc"], kind=kinds[0]),
    ]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[karat.Run]:
    output = tmp_path_factory.mktemp("geval")
    models = {}
    for seed, name in enumerate(("first", "second")):
        rng = np.random.default_rng(seed)
        models[name] = {each: rng.normal(size=5) for each in IDS[: 24 - 2 * seed]}
    found = [
        r for name in models for r in karat.evaluate({name: models[name]}, tasks(), output=output)
    ]
    assert {r["status"] for run in found for r in run.records()} == {"ok"}
    return found


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


@pytest.fixture(scope="module")
def exported(runs, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    export_results(runs, "geval", folder)
    return folder


def test_files_and_columns(exported):
    written = {path.relative_to(exported).as_posix() for path in exported.rglob("*.csv")}
    names = {f"{name}_results.csv" for name in RESULT_FILES} | {"comparison_ranking.csv"}
    both = {f"{model}/{name}" for model in ("first", "second") for name in names}
    assert written == both | {"comparison_values.csv", "comparison.csv"}
    start = ["task_name", "gold_standard_file", "coverage"]
    table = read(exported / "first" / "classification_Cities_results.csv")
    assert list(table.columns) == [*start, "model_name", "model_configuration", "accuracy"]
    assert len(table) == 2  # one row per repeat
    clusters = read(exported / "second" / "clustering_teams_cluster_results.csv")
    assert list(clusters.columns)[3:6] == ["model_name", "model_configuration", "num_clusters"]
    assert clusters.shape[1] == 6 + 8
    header = (exported / "comparison.csv").read_text().splitlines()[0]
    assert header == " ".join(COMPARED)


def test_means_of_each_repeat(runs, exported):
    scores = runs[0].scores()
    part = scores[scores["task"] == "cities-nb"].groupby("repeat")["value"].mean()
    table = read(exported / "first" / "classification_Cities_results.csv")
    assert table["accuracy"].tolist() == part.tolist()
    errors = read_compared(exported / "comparison_values.csv").query("task_name == 'Regression'")
    assert errors["score_value"].iloc[0] == pytest.approx(
        scores[scores["task"] == "cities-rating-linear"]["value"].mean(), rel=1e-12
    )


def test_one_row_per_main_entity(runs, exported):
    table = read(exported / "first" / "entityRelatedness_KORE_results.csv")
    answers = runs[0].predictions("kore")
    assert table["entity_name"].tolist() == IDS[:3]
    part = np.asarray(answers.group) == IDS[1]
    by_hand = kendalltau(answers.predictions[part], answers.target[part]).statistic
    assert table["kendalltau_correlation"][1] == pytest.approx(by_hand, rel=1e-12)
    final = runs[0].scores().query("task == 'kore' and metric == 'kendall_covered'")["value"]
    assert table["kendalltau_correlation"].mean() == pytest.approx(final.iloc[0], rel=1e-12)


def test_counts_of_right_answers(runs, exported):
    (row,) = read(exported / "second" / "semanticAnalogies_results.csv").to_dict("records")
    answers = runs[1].predictions("capital-country")
    # two of 24 entities are missing; they occur in five quadruples
    assert row["tot_answers"] == 24 - 5 and row["coverage"] == pytest.approx(19 / 24)
    assert row["right_answers"] == int((answers.rank <= 2).sum())
    assert row["accuracy"] == pytest.approx(row["right_answers"] / 19)
    assert row["accuracy_over_all"] == pytest.approx(row["right_answers"] / 24)


def clean(run: karat.Run) -> dict[tuple[str, str], float]:
    table = run.scores()
    means = table.groupby(["task", "repeat", "metric"])["value"].mean()
    means = means.groupby(["task", "metric"]).mean().dropna()
    return {key: value for key, value in means.items() if key[0] != "own"}


def test_round_trip_of_the_comparison(runs, exported, tmp_path):
    back = karat.import_results(exported / "comparison.csv", tmp_path / "out").runs
    assert [run.model for run in back] == ["first", "second"]
    for one, other in zip(runs, back, strict=True):
        found, before = clean(other), clean(one)
        assert set(before) - set(found) == {("capital-country", "hits@1")}
        assert found == {key: pytest.approx(before[key], rel=1e-12) for key in found}
        shares = [
            {r["views"][0]["coverage"] for r in run.records() if r["task"] == "capital-country"}
            for run in (one, other)
        ]
        assert shares[0] == shares[1] and len(shares[0]) == 1
    export_results(back, "geval", tmp_path / "again")
    folders = (exported, tmp_path / "again")
    one, other = (read_compared(folder / "comparison_values.csv") for folder in folders)
    pd.testing.assert_frame_equal(one, other, check_exact=False, rtol=1e-12)


def test_round_trip_of_the_result_files(runs, exported, tmp_path):
    files = sorted((exported / "second").glob("*_results.csv"))
    done = karat.import_results(files, tmp_path / "out", system="geval")
    (by_file,) = done.runs
    assert set(by_file.about["imported"]["files"]) == {path.name for path in files}
    assert by_file.model == "second" and not done.problems
    found, before = clean(by_file), clean(runs[1])
    # GEval's relatedness file has covered main entities only
    lost = {("capital-country", "hits@1"), ("kore", "kendall")}
    assert set(before) - set(found) == lost
    assert found == {key: pytest.approx(before[key], rel=1e-12) for key in found}
    assert any("with_weights" in note for note in done.notes)
    board = karat.leaderboard([runs[0], by_file])
    assert board.loc["second", "cities-nb"] == pytest.approx(before["cities-nb", "acc"])


def test_runs_without_a_geval_task(tmp_path):
    (run,) = karat.evaluate("dummy", ["diabetes"], only=karat.Only(folds=[0]), output=tmp_path)
    with pytest.raises(DataError, match="geval and nodes"):
        export_results(run, "geval", tmp_path / "out")


def test_import_of_original_geval_files(tmp_path):
    text = "task_name,gold_standard_file,coverage,model_name,model_configuration,accuracy\n"
    text += "Classification,Cities,0.98,C45,,0.5\nClassification,Cities,0.98,C45,,0.75\n"
    folder = tmp_path / "result_2020-01-01_10-00-00"
    folder.mkdir()
    (folder / "classification_Cities_results.csv").write_text(text)
    (run,) = karat.import_results(folder, tmp_path / "out").runs
    assert run.model == "result_2020-01-01_10-00-00"
    assert run.scores()["value"].tolist() == [0.5, 0.75]
    # Karat has no such tree, so the task keeps GEval's names
    assert run.about["tasks"][0]["name"] == "Classification Cities C45"
    assert run.about["tasks"][0]["dataset"] == "cities"


def test_every_task_of_the_suite_has_a_geval_name():
    catalog = Catalog()
    listed = [catalog.task(t) if isinstance(t, str) else t for t in catalog.suite("geval").tasks]
    for task in listed:
        data = task.dataset if isinstance(task.dataset, str) else task.dataset.name
        trial = trial_of(task.name, data, str(task.kind))
        assert trial is not None and trial.name == task.name, task.name
        theirs = set(trial.metrics) & set(task.metrics)
        assert theirs, task.name


def test_import_of_original_comparison(tmp_path):
    """GEval writes "-" for nothing, has a spelling mistake, and names Ward's metric wrongly."""
    start = "v_200_cosine_2_1 Clustering teams_cluster 1.0"
    lines = [
        " ".join(COMPARED),
        f'{start} KMeans "metric=enclidean, n_clusters=2" v_measure_score 0.5',
        f'{start} "Ward hierarchical clustering" "metric=cosine, n_clusters=2" v_measure_score 0.6',
        "v_200_cosine_2_1 EntityRelatedness KORE 1.0 - - kendalltau_correlation 0.7",
        "v_200_cosine_2_1 DocumentSimilarity LP50 1.0 with_weights - harmonic_mean 0.8",
        "v_200_cosine_2_1 SemanticAnalogies currency_entities 1.0 - - accuracy 0.9",
    ]
    (tmp_path / "comparison.csv").write_text("\n".join(lines) + "\n")
    (run,) = karat.import_results(tmp_path / "comparison.csv", tmp_path / "out").runs
    found = run.scores().set_index("task")["value"].to_dict()
    assert found == {
        "teams-kmeans": 0.5,
        "teams-ward": 0.6,
        "kore": 0.7,
        "lp50-weighted": 0.8,
        "currency": 0.9,
    }


# -- Comparison with earlier runs: ids, metric directions, ties and selected runs -----------------


def row(value, task="Classification", metric="accuracy", coverage=1.0, model="NB"):
    return {
        "task_name": task,
        "gold_standard_file": "Cities",
        "coverage": coverage,
        "model": model,
        "model_configuration": "",
        "metric": metric,
        "score_value": value,
    }


def ranks(values, own, **given):
    rows = [{"test_name": str(i), **row(value, **given)} for i, value in enumerate(values)]
    return ranking(pd.DataFrame(rows, columns=list(COMPARED)), str(own)).iloc[0]


@pytest.mark.parametrize(
    ("values", "own", "rank", "total", "distinct"),
    [
        ([0.7, 0.9, 0.8], 0, 3, 3, 3),
        ([0.7, 0.9, 0.8], 1, 1, 3, 3),
        ([0.8, 0.9, 0.8], 0, 2, 3, 2),  # ties share the better rank
        ([0.8, 0.9, 0.9, 0.8], 3, 3, 4, 2),
        ([math.nan, 0.9], 0, -1, 1, 1),
        ([0.7, math.nan], 0, 1, 1, 1),
        ([0.7], 0, 1, 1, 1),
    ],
)
def test_ranks_start_at_one_and_ties_share(values, own, rank, total, distinct):
    found = ranks(values, own)
    assert found["ranking"] == rank
    assert (found["absolute_total"], found["relative_total"]) == (total, distinct)


def test_lower_error_ranks_first():
    found = ranks([10.0, 12.0], 0, task="Regression", metric="root_mean_squared_error")
    assert found["ranking"] == 1


def test_run_numbers_are_compared_as_numbers():
    names = [f"cities_200_cosine_2_{i}" for i in range(1, 12)]
    assert next_number("cities_200_cosine_2", names) == 12
    assert next_number("cities_200_cosine_20", names) == 1  # a prefix is not the same file
    assert next_number("cities_200", [*names, "cities_200_x"]) == 1


def test_store_with_blanks_and_quotes_in_names(tmp_path):
    store = Store(tmp_path)
    name = store.add('my "best" vectors/v 1', [row(0.5), row(math.nan, model="")])
    assert name.endswith("v 1_1")
    assert store.add('my "best" vectors/v 1', [row(0.6)]).endswith("v 1_2")
    table = store.read()
    assert list(table.columns) == list(COMPARED)
    assert table["score_value"].tolist()[::2] == [0.5, 0.6]
    assert math.isnan(table["score_value"][1])
    assert set(table["test_name"]) == {'my "best" vectors/v 1_1', 'my "best" vectors/v 1_2'}


def test_concurrent_writers(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda i: Store(tmp_path).add("v", [row(i / 10)]), range(10)))
    assert sorted(names) == sorted(f"v_{i}" for i in range(1, 11))
    assert len(Store(tmp_path).read()) == 10
    assert not (tmp_path / "comparison.lock").exists()


def test_compare_with_selected_runs(tmp_path):
    store = Store(tmp_path)
    first, second, own = (store.add("v", [row(value)]) for value in (0.9, 0.8, 0.7))
    table = store.read()
    assert compared(table, own, ["_all"])["test_name"].tolist() == [first, second, own]
    assert compared(table, own, [second])["test_name"].tolist() == [second, own]
    assert compared(table, own, [])["test_name"].tolist() == [own]
    with pytest.raises(DefinitionError, match=r'"v_4".*Did you mean'):
        store.check(["v_4"])


def test_damaged_store(tmp_path):
    (tmp_path / "comparison.csv").write_text("test_name task_name\nx\n")
    with pytest.raises(DataError, match="damaged"):
        Store(tmp_path).read()


def test_second_run_is_compared_with_the_first(tmp_path):
    write_gold(tmp_path / "gold")
    asked = {
        "tasks": ["EntRel", "SemAn"],
        "gold_directory_path": tmp_path / "gold",
        "result_directory_path": tmp_path / "out",
    }
    path = write_text(tmp_path / "v.txt", vectors())
    FrameworkManager().evaluate(str(path), **asked)
    write_text(path, vectors(lost=()))  # now every entity has a vector
    second = FrameworkManager().evaluate(str(path), **asked)
    values = read_compared(second / "comparison_values.csv")
    assert values["test_name"].nunique() == 2
    tau = values[values["metric"] == "kendalltau_correlation"]
    assert tau["score_value"].tolist() == pytest.approx([0.5, 1.0])
    assert tau["coverage"].tolist() == pytest.approx([2 / 3, 1.0])
    ranked = read_compared(second / "comparison_ranking.csv").set_index("metric")
    assert ranked.loc["kendalltau_correlation", "ranking"] == 1
    assert ranked.loc["kendalltau_correlation", "lowest_coverage"] == pytest.approx(2 / 3)
    chosen = FrameworkManager().evaluate(
        str(path), **asked, compare_with=[values["test_name"].iloc[0]]
    )
    assert read_compared(chosen / "comparison_values.csv")["test_name"].nunique() == 2
