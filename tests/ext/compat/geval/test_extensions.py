"""GEval's extension points: classes written for its abstract classes, and names of other packages.

The package ``plants`` has a vector file format, a task with its model and gold standard, a
similarity measure and a dataset, and offers all of them as entry points.
"""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core import registry
from karat.errors import DataError, DefinitionError
from karat.ext.compat.geval import FrameworkManager
from karat.ext.compat.geval.extensions import (
    AbstractDataManager,
    AbstractEvaluationManager,
    AbstractModel,
    AbstractTaskManager,
    ClusteringDataManager,
    DataManager,
    Extensions,
    RegressionDataManager,
    vector_table,
)
from karat.ext.compat.geval.gold import Parameters, lower_is_better

from .geval_gold import iri, vectors, write_gold, write_text

PARTS = """
import csv
import json
import os

import numpy as np
import pandas as pd

from karat.ext.compat.geval.extensions import AbstractDataManager
from karat.ext.compat.geval.extensions import AbstractModel
from karat.ext.compat.geval.extensions import AbstractTaskManager

task_name = "NearestNeighbor"


class JsonDataManager(AbstractDataManager):
    def __init__(self, debugging_mode):
        self.debugging_mode = debugging_mode

    def inizialize_vectors(self, vector_filename, vector_size):
        return self.read_vector_file(vector_filename, vector_size)

    def read_vector_file(self, vector_filename, vector_size):
        with open(vector_filename) as f:
            data = json.load(f)
        rows = [[name] + values[:vector_size] for name, values in data.items()]
        return pd.DataFrame(rows, columns=["name"] + list(range(vector_size)))


class NearestModel(AbstractModel):
    def __init__(self, task_name, debugging_mode):
        self.task_name = task_name

    def train(self, data):
        X = data.iloc[:, 2:].to_numpy(dtype=float)
        distances = np.linalg.norm(X[:, None] - X[None], axis=2)
        np.fill_diagonal(distances, np.inf)
        labels = data["label"].to_numpy()
        right = labels[distances.argmin(axis=1)] == labels
        return {"task_name": self.task_name, "model_name": "1-NN", "accuracy": right.mean()}


class NearestManager(AbstractTaskManager):
    def __init__(self, data_manager, debugging_mode):
        self.data_manager = data_manager
        self.debugging_mode = debugging_mode

    @staticmethod
    def get_task_name():
        return task_name

    def evaluate(self, vectors, vector_file, vector_size, results_folder, log_dictionary,
                 scores_dictionary):
        log, rows = "", []
        for gold in self.get_gold_standard_file():
            path = os.path.join(os.path.dirname(__file__), "data", gold + ".tsv")
            data, ignored = self.data_manager.intersect_vectors_goldStandard(
                vectors, vector_file, vector_size, path)
            with open(results_folder + "/nearest_" + gold + "_ignoredData.txt", "w") as f:
                for each in ignored.itertuples():
                    f.write(getattr(each, "name") + "\\n")
            log += "size " + str(vector_size) + "\\n"
            result = NearestModel(task_name, self.debugging_mode).train(data)
            result["gold_standard_file"] = gold
            with open(results_folder + "/nearest_" + gold + "_results.csv", "w") as f:
                writer = csv.DictWriter(f, fieldnames=list(result))
                writer.writeheader()
                writer.writerow(result)
            rows.append([task_name, gold, "1-NN", None, "accuracy", result["accuracy"]])
        log_dictionary[task_name] = log
        scores_dictionary[task_name] = pd.DataFrame(rows, columns=[
            "task_name", "gold_standard_file", "model", "model_configuration", "metric",
            "score_value"])

    @staticmethod
    def get_gold_standard_file():
        return ["Plants"]

    @staticmethod
    def get_metric_list():
        return ["accuracy"]


def taxi(a, b):
    return -float(np.abs(a - b).sum())
"""
GOLD = {"a": "tree", "b": "tree", "c": "herb", "d": "herb", "e": "herb", "lost": "herb"}
#: on a line: the nearest neighbor of e, b, is of another class
PLACES = {"a": 0.0, "b": 1.0, "c": 10.0, "d": 11.0, "e": 3.0}
POINTS = """
[karat.vector_formats]
plant-json = plants.parts:JsonDataManager
[karat.geval_tasks]
NearestNeighbor = plants.parts:NearestManager
[karat.measures]
taxi = plants.parts:taxi
[karat.definitions]
plants = plants:plants.yaml
"""
DEFINED = """
datasets:
  plant_kinds: {reader: entities, options: {key: DBpedia_URI15}, path: data/Plants.tsv,
                target: label, kind: classification, modality: entity}
tasks:
  plant-tree: {dataset: plant_kinds, kind: classification, metrics: [acc, brier],
               probe: {use: trained, head: decision-tree},
               split: {use: kfold, folds: 2, repeats: 3}}
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A folder with the installed package and its entry points."""
    folder = tmp_path_factory.mktemp("site")
    inside = folder / "plants"
    (inside / "data").mkdir(parents=True)
    (inside / "__init__.py").write_text("")
    (inside / "parts.py").write_text(PARTS)
    (inside / "plants.yaml").write_text(DEFINED)
    rows = [f"{iri(name)}\t{label}" for name, label in GOLD.items()]
    (inside / "data" / "Plants.tsv").write_text("\n".join(["DBpedia_URI15\tlabel", *rows]) + "\n")
    about = folder / "plants-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plants\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    return folder


@pytest.fixture
def parts(package, monkeypatch, clean_registry):
    """The module of the package, imported as a user's script does."""
    monkeypatch.syspath_prepend(str(package))
    sys.modules.pop("plants.parts", None)
    return importlib.import_module("plants.parts")


@pytest.fixture
def json_file(tmp_path):
    path = tmp_path / "plants.json"
    path.write_text(json.dumps({iri(name): [x, 0.5] for name, x in PLACES.items()}))
    return path


def read(folder, name):
    return pd.read_csv(folder / name, sep=None, engine="python", keep_default_na=False)


def compared(folder):
    """The comparison of a results folder, by task, gold standard and metric."""
    table = pd.read_csv(folder / "comparison.csv", sep=" ")
    return table.set_index(["task_name", "gold_standard_file", "metric"])


def karat_geval(package, place, *arguments):
    environment = {**os.environ, "KARAT_OFFLINE": "1"}
    source = str(Path(karat.__file__).parents[1])
    environment["PYTHONPATH"] = os.pathsep.join([source, str(package)])
    command = [sys.executable, "-m", "karat", "geval", *arguments]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)


# -- classes written for the original -------------------------------------------------------


def test_a_task_and_a_format_of_the_original_run_with_changed_imports(parts, json_file, tmp_path):
    folder = FrameworkManager().evaluate(
        str(json_file),
        vector_file_format=parts.JsonDataManager,
        vector_size=2,
        tasks=[parts.NearestManager],
        result_directory_path=tmp_path / "results",
    )
    # the nearest neighbors of a, b, c and d are of their class, that of e is not
    assert read(folder, "nearest_Plants_results.csv")["accuracy"].tolist() == [0.8]
    assert (folder / "nearest_Plants_ignoredData.txt").read_text() == iri("lost") + "\n"
    row = compared(tmp_path / "results").loc[("NearestNeighbor", "Plants", "accuracy")]
    assert row["score_value"] == 0.8 and row["model"] == "1-NN"
    assert row["model_configuration"] == "-"
    log = (folder / "log.txt").read_text()
    assert "size 2" in log and "NearestNeighbor execution time: " in log
    ranks = read(folder, "comparison_ranking.csv")
    assert ranks["ranking"].tolist() == [1] and ranks["absolute_total"].tolist() == [1]


def test_own_formats_give_the_same_scores_as_text(parts, tmp_path):
    write_gold(tmp_path / "gold")
    stock = vectors()
    write_text(tmp_path / "v.txt", stock)
    (tmp_path / "v.json").write_text(json.dumps({n: v.tolist() for n, v in stock.items()}))
    given = {"gold_directory_path": tmp_path / "gold", "tasks": "EntRel,SemAn"}
    found = {}
    for name, form in (("v.txt", "txt"), ("v.json", "plants.parts:JsonDataManager")):
        place = tmp_path / name[2:]
        FrameworkManager().evaluate(
            str(tmp_path / name), form, 6, result_directory_path=place, **given
        )
        found[form] = compared(place)["score_value"]
    text, own = found.values()
    assert len(text) == 6
    pd.testing.assert_series_equal(text, own)


def test_a_wrong_size_names_the_parameter(parts, json_file):
    with pytest.raises(DataError) as caught:
        FrameworkManager().evaluate(
            str(json_file), parts.JsonDataManager, 3, tasks=[parts.NearestManager]
        )
    assert "3" in str(caught.value)


def test_the_misspelled_method_and_the_correct_one_are_the_same():
    class Wrong(AbstractDataManager):
        def inizialize_vectors(self, vector_filename, vector_size):
            return vector_table(["a"], np.array([[1.0, 2.0]]))

    class Right(AbstractDataManager):
        def initialize_vectors(self, vector_filename, vector_size):
            return vector_table(["a"], np.array([[1.0, 2.0]]))

    for manager in (Wrong, Right):
        made = manager()
        for read_it in (made.initialize_vectors, made.inizialize_vectors):
            assert read_it("file", 2).to_numpy().tolist() == [["a", 1.0, 2.0]]
        names, matrix = manager.read_vectors(Path("file"), 2)
        assert names == ["a"] and matrix.tolist() == [[1.0, 2.0]]


def test_a_format_without_a_reader_is_refused():
    class Empty(AbstractDataManager):
        pass

    with pytest.raises(DefinitionError, match="read_vector_file"):
        Empty.read_vectors(Path("file"))


def test_a_data_manager_joins_gold_standards_by_name(tmp_path):
    table = vector_table(["x", "y", "z"], np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0]]))
    manager = DataManager()
    assert manager.create_header(2) == ["name", 0, 1]
    vocabulary = manager.create_vocab(table, "", 2)
    assert vocabulary == {"x": 0, "y": 1, "z": 2}
    unit = manager.normalize_vectors(table, "", 2, vocabulary)
    assert unit.tolist() == [[0.6, 0.8], [1.0, 0.0], [0.0, 0.0]]
    for sign, suffix in (("\t", "tsv"), (",", "csv"), (" ", "txt")):
        gold = tmp_path / f"gold.{suffix}"
        lines = (("DBpedia_URI15", "rating"), ("x", "5"), ("NA", "7"), ("y", "6"))
        gold.write_text("\n".join(sign.join(line) for line in lines) + "\n")
        joined, ignored = RegressionDataManager().intersect_vectors_goldStandard(
            table, "", 2, str(gold)
        )
        assert joined.to_numpy().tolist() == [["x", 5, 3.0, 4.0], ["y", 6, 1.0, 0.0]]
        assert joined.columns.tolist() == ["name", "label", 0, 1]
        assert ignored["name"].tolist() == ["NA"]


def test_task_data_managers_are_added_and_found():
    manager = DataManager()
    assert manager.get_data_manager("clustering") is ClusteringDataManager
    assert manager.get_data_manager("links") is manager
    manager.add_task_dataManager("links", RegressionDataManager)
    assert manager.get_data_manager("links") is RegressionDataManager
    manager.add_task_data_manager("links", ClusteringDataManager)
    assert manager.get_data_manager("links") is ClusteringDataManager


def test_a_task_gets_the_data_manager_and_its_arguments(tmp_path, clean_registry):
    seen = {}

    class LinkDataManager(DataManager):
        pass

    class Format(DataManager):
        def __init__(self, debugging_mode):
            super().__init__(debugging_mode)
            self.add_task_dataManager("link_prediction", LinkDataManager)

    class LinkPrediction(AbstractTaskManager):
        def __init__(self, data_manager, distance_metric, top_k, debugging_mode, analogy_function):
            seen.update(
                manager=type(data_manager), metric=distance_metric, top_k=top_k, fn=analogy_function
            )

        def evaluate(self, vectors, file, size, folder, log, scores):
            seen.update(columns=vectors.columns.tolist(), size=size)
            columns = ["gold_standard_file", "model", "model_configuration", "metric"]
            row = dict.fromkeys(columns, "x") | {"score_value": 1, "coverage": 0.5}
            scores["LinkPrediction"] = pd.DataFrame([row])

    path = write_text(tmp_path / "v.txt", {"a": np.ones(3), "b": np.zeros(3)})
    FrameworkManager().evaluate(
        str(path),
        Format,
        3,
        tasks=LinkPrediction,
        similarity_metric="euclidean",
        top_k=4,
        analogy_function="default",
        result_directory_path=tmp_path / "out",
    )
    assert seen["manager"] is LinkDataManager and seen["metric"] == "euclidean"
    assert seen["top_k"] == 4 and seen["columns"] == ["name", 0, 1, 2] and seen["size"] == 3
    assert seen["fn"](np.array(1.0), np.array(5.0), np.array(2.0)) == 6.0
    row = compared(tmp_path / "out").loc[("LinkPrediction", "x", "x")]
    assert row["coverage"] == 0.5 and row["score_value"] == 1.0


def test_a_failing_task_is_a_problem_and_the_others_are_evaluated(tmp_path):
    class Broken(AbstractTaskManager):
        def evaluate(self, *given):
            raise ZeroDivisionError("odd")

    class Silent(AbstractTaskManager):
        def evaluate(self, *given):
            pass

    write_gold(tmp_path / "gold")
    path = write_text(tmp_path / "v.txt", vectors())
    folder = FrameworkManager().evaluate(
        str(path),
        tasks=["EntRel", Broken, Silent],
        gold_directory_path=tmp_path / "gold",
        result_directory_path=tmp_path / "out",
        debugging_mode=True,
    )
    assert (folder / "entityRelatedness_KORE_results.csv").is_file()
    log = (folder / "log.txt").read_text()
    assert "Broken: failed: ZeroDivisionError: odd" in log and "Silent: " in log
    assert "Traceback" in log
    assert set(compared(tmp_path / "out").index.get_level_values(0)) == {"EntityRelatedness"}


def test_abstract_classes_need_their_methods():
    for base in (AbstractTaskManager, AbstractModel, AbstractEvaluationManager):
        with pytest.raises(TypeError):
            type("Empty", (base,), {})()


def test_an_own_evaluation_manager_supervises_the_evaluation(tmp_path):
    called = []

    class Mine(AbstractEvaluationManager):
        def create_result_directory(self):
            called.append("directory")
            self.result_directory = str(tmp_path)

        def initialize_vectors(self, vector_file, vec_size):
            called.append((Path(vector_file).name, vec_size))

        def run_tests_in_sequential(self, tasks, similarity_metric, top_k, analogy_function=None):
            called.append((tasks, similarity_metric, top_k, analogy_function))
            return {"scores": 1}

        def run_tests_in_parallel(self, *given):
            raise AssertionError

        def compare_with(self, compare_with, scores_dictionary):
            called.append((compare_with, scores_dictionary))

    path = write_text(tmp_path / "v.txt", {"a": np.ones(3)})
    manager = FrameworkManager(evaluation_manager=Mine)
    assert manager.evaluate(str(path), vector_size=3, tasks="Class") == tmp_path
    assert called == [
        "directory",
        ("v.txt", 3),
        (["Classification"], "cosine", 2, None),
        (["_all"], {"scores": 1}),
    ]


# -- names ----------------------------------------------------------------------------------


def test_an_installed_package_is_found_by_entry_points(package, json_file, tmp_path):
    tasks = "NearestNeighbor,plant-tree,Clu:plant_kinds"
    ran = karat_geval(
        package,
        tmp_path,
        *("--vector_file", str(json_file), "--vector_file_format", "plant-json"),
        *("--vector_size", "2", "--tasks", tasks, "--similarity_metric", "taxi"),
    )
    assert ran.returncode == 0, ran.stderr
    table = compared(tmp_path / "results")
    nearest = table.loc[[("NearestNeighbor", "Plants", "accuracy")], "score_value"]
    assert nearest.tolist() == [0.8]
    own = table.loc["plant-tree"]
    assert own["model"].unique().tolist() == ["decision-tree"]
    assert set(own.index.get_level_values("metric")) == {"acc", "brier"}
    assert own["coverage"].unique() == pytest.approx([5 / 6])
    clusters = table.sort_index().loc[("Clustering", "plant_kinds")]
    assert clusters["model_configuration"].str.contains("taxi").any()
    assert table["test_name"].unique().tolist()[0].endswith("_2_taxi_2_1")
    (folder,) = (tmp_path / "results").glob("result_*")
    repeats = read(folder, "plant-tree_plant_kinds_results.csv")
    assert len(repeats) == 3 and {"acc", "brier"} <= set(repeats.columns)


def test_unknown_names_give_close_matches_and_exit_code_2(package, json_file, tmp_path):
    given = ("--vector_file", str(json_file), "--vector_size", "2")
    ran = karat_geval(
        package,
        tmp_path,
        *(*given, "--tasks", "NearestNeigbor,Clus:plant_kinds,Clu:plant_kind"),
        *("--vector_file_format", "plant-jso", "--similarity_metric", "tax"),
    )
    assert ran.returncode == 2 and "Traceback" not in ran.stderr
    for name in ("NearestNeighbor", "plant-json", "taxi", "Clustering:plant_kinds"):
        assert f'Did you mean "{name}"?' in " ".join(ran.stderr.split()), name
    assert not (tmp_path / "results").exists()


def test_files_given_by_define_provide_tasks_formats_and_measures(tmp_path, clean_registry):
    (tmp_path / "mine.py").write_text(
        dedent(
            """
            import karat

            @karat.measure("reversed")
            def reversed_distance(a, b):
                return float(((a - b) ** 2).sum() ** 0.5)

            @karat.vector_format("lines-of-numbers")
            def lines(path):
                rows = [line.split(";") for line in open(path)]
                return [row[0] for row in rows], [[float(x) for x in row[1:]] for row in rows]
            """
        )
    )
    write_gold(tmp_path / "gold")
    lines = [";".join([name, *map(repr, map(float, row))]) for name, row in vectors(()).items()]
    (tmp_path / "v.lines").write_text("\n".join(lines) + "\n")
    write_text(tmp_path / "v.txt", vectors(()))
    given = {"gold_directory_path": tmp_path / "gold", "tasks": ["EntRel"]}
    FrameworkManager().evaluate(
        *(str(tmp_path / "v.lines"), "lines-of-numbers"),
        similarity_metric="reversed",
        define=[tmp_path / "mine.py"],
        result_directory_path=tmp_path / "own",
        **given,
    )
    FrameworkManager().evaluate(
        str(tmp_path / "v.txt"),
        similarity_metric="euclidean",
        result_directory_path=tmp_path / "text",
        **given,
    )
    key = ("EntityRelatedness", "KORE", "kendalltau_correlation")
    own, text = (compared(tmp_path / name).loc[key, "score_value"] for name in ("own", "text"))
    # related entities lie in the order of the gold standard, so the reversed order is the worst
    assert text == 1.0 and own == -1.0


def test_one_gold_standard_is_chosen_by_its_name(tmp_path):
    write_gold(tmp_path)
    own = Extensions(folder=str(tmp_path))
    (gold,) = own.golds(["Clustering:teams_cluster"])
    assert (gold.task, gold.name, gold.dataset) == ("Clustering", "teams_cluster", "teams")
    assert own.task_name("clu:teams") == "Clustering:teams_cluster"
    assert own.task_name("Class:../Clustering/teams_cluster") is None
    assert own.labels(["Clustering:teams_cluster"]) == ["Clustering"]


def test_a_further_file_in_the_folder_is_a_gold_standard(tmp_path):
    gold = write_gold(tmp_path / "gold")
    rows = [f"{iri(f'Country_{i}')}\t{i % 2}" for i in range(6)]
    (gold / "Clustering" / "edges.tsv").write_text("DBpedia_URI\tcluster\n" + "\n".join(rows))
    path = write_text(tmp_path / "v.txt", vectors())
    folder = FrameworkManager().evaluate(
        str(path),
        tasks=["Clu:edges"],
        gold_directory_path=gold,
        result_directory_path=tmp_path / "out",
    )
    table = read(folder, "clustering_edges_results.csv")
    assert table["gold_standard_file"].unique().tolist() == ["edges"]
    assert not (folder / "clustering_teams_cluster_results.csv").exists()
    assert table["coverage"].unique().tolist() == [1.0]


def test_names_are_checked_before_anything_runs(tmp_path, clean_registry):
    path = write_text(tmp_path / "v.txt", {"a": np.ones(3)})

    def messages(**given):
        with pytest.raises(DefinitionError) as caught:
            Parameters(str(path), **given).checked()
        return caught.value.messages

    assert len(messages(tasks=["Clas", "Class:nothing"], vector_file_format="tx")) == 3
    assert "evaluate" in messages(tasks="json:JSONDecoder")[0]
    assert "no_such_module" in messages(tasks="no_such_module:Task")[0]
    assert "lost.yaml" in messages(define=[tmp_path / "lost.yaml"])[0]
    assert "analogy_function" in messages(analogy_function="defaul")[0]
    assert "data manager" in messages(vector_file_format=dict)[0]
    checked = Parameters(str(path), vector_file_format="TXT", analogy_function="default").checked()
    assert checked.vector_file_format == "txt"


def test_directions_of_metrics():
    assert lower_is_better("mae") and not lower_is_better("accuracy")
    assert registry.measures.kind == "measure"


def test_limits_and_the_name_of_the_folder_are_parameters(tmp_path):
    write_gold(tmp_path / "gold")
    given = {
        "vector_filename": str(write_text(tmp_path / "v.txt", vectors())),
        "tasks": "EntRel",
        "gold_directory_path": tmp_path / "gold",
        "result_directory_path": tmp_path / "out",
    }
    limits = "constraints: {brief: {max_runtime_seconds: 9000, max_mem_size_mb: 4096}}"
    (tmp_path / "my.yaml").write_text(limits)
    folder = FrameworkManager().evaluate(
        **given, constraint="brief", workers=1, result_name="mine", define=[tmp_path / "my.yaml"]
    )
    assert folder == tmp_path / "out" / "mine"
    (run,) = karat.open_runs(folder / "karat")
    assert run.about["constraint"] == "brief"
    for wrong in ({"result_name": "../x"}, {"workers": 0}, {"constraint": "brie"}):
        with pytest.raises(DefinitionError):
            FrameworkManager().evaluate(**given, **wrong)
