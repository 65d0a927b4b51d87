"""GEval (Evaluation-Framework 1.3) against ``karat geval``, on a file of 50,000 × 200 vectors.

Version 1.3 is written for Python 2 and for libraries of 2018. It runs with the oldest versions that
have wheels for Python 3.11, after a conversion by ``fissix``. The driver below gives its modules
what they expect of Python 2, texts in CSV files and in base32, which does not change its rules.
``KARAT_DATA`` may be a folder with ``geval/``, the gold standards; by default, they are downloaded
once. Karat runs ``--protocol legacy``, so that both do the same work; the cases
"corrected" run Karat's default, which also selects heads on inner folds.

Classification, regression and clustering are measured on one gold standard each: AAUP and
teams_cluster. Version 1.3 counts the hits of documents and of two places in another way, so
those scores are not compared; see docs/systems/geval.md.
"""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path

import numpy as np
from recipe import Case, Recipe

ROWS, WIDTH = 50_000, 200
TASKS = ("Classification", "Regression", "Clustering")
TASKS += ("DocumentSimilarity", "EntityRelatedness", "SemanticAnalogies")
#: the gold standards of the cases with one per task
ONE_EACH = ("AAUP", "teams_cluster", "LP50", "KORE", "capital_country_entities")

#: prints the scores of GEval's result files that the rules of both define equally
SCORES = """
import base64, csv, glob, json, os
def print_scores():
    found = {}
    for path in sorted(glob.glob("results/result_*/*_results.csv")):
        file = os.path.basename(path).split("_results")[0]
        repeats = {}
        for row in csv.DictReader(open(path)):
            model = row.get("model_name") or row.get("entity_name", "")
            if model in ("C45", "M5") or file.startswith(("documentSimilarity", "semantic")):
                continue
            if model.startswith("b'"):  # GEval prints the keys of an HDF5 file
                model = base64.b32decode(model[2:-1]).decode()
            # rows are in another order, and the distances of clusterings have other names
            if row.get("model_configuration", "").startswith("C="):
                model += " " + row["model_configuration"]
            repeats[model] = repeats.get(model, -1) + 1
            for metric in ("accuracy", "root_mean_squared_error", "adjusted_rand_index",
                           "adjusted_mutual_info_score", "homogeneity_score",
                           "completeness_score", "v_measure_score", "kendalltau_correlation"):
                if row.get(metric):
                    found[f"{file} {model} {repeats[model]} {metric}"] = float(row[metric])
    print("scores=" + json.dumps(found))
"""
#: gives the original's modules what they expect of Python 2, while they run
PYTHON2 = """
import base64, builtins, csv, sys, types
sys.modules["unicodecsv"] = csv  # writes bytes

def open_csv(path, mode="r", *more, **options):
    return builtins.open(path, mode.replace("b", ""), *more, **options)

def encoded(text):
    return text.encode() if isinstance(text, str) else text

def base32(text):
    code = base64.b32encode(encoded(text))
    return code.decode() if isinstance(text, str) else code

def give_python2(modules):
    for name, module in list(modules.items()):
        if name.startswith("evaluation_framework.") and name.endswith("_taskManager"):
            module.open = open_csv
        if name == "evaluation_framework.hdf5_dataManager":
            module.bytes = encoded
            module.base64 = types.SimpleNamespace(b32encode=base32, b32decode=base64.b32decode)
"""
ORIGINAL = (
    SCORES
    + PYTHON2
    + """
import os, shutil, sys, warnings
warnings.simplefilter("ignore")
path, form, tasks, datasets, gold = sys.argv[1:]
from evaluation_framework import evaluationManager as managers
from evaluation_framework.manager import FrameworkManager
give_python2(sys.modules)
names = {"Classification": "Classification_evaluator", "Regression": "Regression_evaluator",
         "Clustering": "Clustering_evaluator", "SemanticAnalogies": "Semantic_Analogies_evaluator"}
for task, name in names.items():
    manager = getattr(managers, name)
    all_of_them = manager.get_gold_standard_file()
    chosen = [each for each in all_of_them if datasets == "_all" or each in datasets.split(",")]
    manager.get_gold_standard_file = staticmethod(lambda chosen=chosen: chosen)
# the package lacks this file
place = os.path.join(os.path.dirname(managers.__file__), "DocumentSimilarity", "data")
shutil.copy(os.path.join(gold, "DocumentSimilarity", "LP50_entities.json"), place)
FrameworkManager().evaluate(path, form, 200, tasks=tasks.split(","))
log = open(glob.glob("results/result_*/log.txt")[0]).read()
for task in tasks.split(","):
    files = glob.glob(f"results/result_*/{task[0].lower()}{task[1:]}_*results.csv")
    if not files or any(os.path.getsize(file) < 100 for file in files):
        raise SystemExit(log)
print_scores()
"""
)
KARAT = (
    SCORES
    + """
import sys
from karat.cli.app import main
sys.argv[0] = "karat"
try:
    main()
except SystemExit as ended:
    if ended.code:
        raise
print_scores()
"""
)


def gold_folder(folder: Path) -> Path:
    """Copy all gold standards to a folder with GEval's layout, and return it."""
    from karat.config.catalog import Catalog
    from karat.data.load_dataset import fetch_file
    from karat.ext.compat.geval.gold import GOLD_STANDARDS, _place

    definitions = Catalog().definitions
    for gold in GOLD_STANDARDS:
        definition = definitions.get("datasets", gold.dataset)
        files = [definition]
        if "pairs" in (definition.get("options") or {}):
            files.append({"sources": definition["options"]["pairs"]})
        for each in files:
            path = folder / _place(each["sources"])
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(fetch_file(gold.dataset, each), path)
    return folder


def entities(gold: Path) -> list[str]:
    """Return the entities of all gold standards, in the order of the files."""
    import json

    found: list[str] = []
    for path in sorted(gold.rglob("*")):
        if path.suffix == ".tsv":
            head, *rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
            head = [name.strip() for name in head]
            key = "DBpedia_URI15" if "DBpedia_URI15" in head else "DBpedia_URI"
            found += [row[head.index(key)] for row in rows]
        elif path.suffix == ".txt":
            found += path.read_text("utf-8").split()
        elif path.name == "LP50_entities.json":
            documents = json.loads(path.read_text("utf-8"))
            found += [each["entity"] for text in documents for each in text["annotations"]]
    # a name with a blank cannot be in a text file
    return list(dict.fromkeys(name.strip() for name in found if len(name.split()) == 1))


def vectors(gold: Path, names: list[str]) -> np.ndarray:
    """Return random vectors; the ends of an analogy differ by a common offset and noise."""
    random = np.random.default_rng(0)
    made = random.normal(size=(len(names), WIDTH)) / np.sqrt(WIDTH)
    rows = {name: row for row, name in enumerate(names)}
    for path in sorted((gold / "SemanticAnalogies").glob("*.txt")):
        offset = random.normal(size=WIDTH) / np.sqrt(WIDTH)
        for line in path.read_text("utf-8").splitlines():
            first, second, third, fourth = (rows[name] for name in line.split())
            for begin, end in ((first, third), (second, fourth)):
                made[end] = made[begin] + offset + random.normal(size=WIDTH) / (2 * WIDTH**0.5)
    return made


def write_vectors(folder: Path, gold: Path) -> None:
    """Write the same vectors as text and as HDF5 in GEval's layout."""
    import h5py

    names = entities(gold)
    names += [f"http://example.org/resource/{i}" for i in range(ROWS - len(names))]
    lines = []
    for name, row in zip(names, vectors(gold, names), strict=True):
        lines.append(f"{name} {' '.join(f'{value:.6f}' for value in row)}\n")
    (folder / "vectors.txt").write_text("".join(lines), encoding="utf-8")
    with h5py.File(folder / "vectors.h5", "w") as file:
        group = file.create_group("Vectors")
        for line in lines:
            name, *cells = line.split()
            key = base64.b32encode(name.encode()).decode()
            group.create_dataset(key, data=np.array([cells], dtype=float))


def prepare(folder: Path) -> list[Case]:
    """Write gold standards, vectors and scripts, and return all cases."""
    gold = folder / "gold"
    if not (folder / "ready").exists():
        write_vectors(folder, gold_folder(gold))
        (folder / "ready").touch()
    (folder / "original.py").write_text(ORIGINAL)
    (folder / "karat_side.py").write_text(KARAT)

    def case(name: str, tasks: tuple[str, ...], goal: float, **options: str) -> Case:
        form = options.get("form", "txt")
        path = str(folder / {"txt": "vectors.txt", "hdf5": "vectors.h5"}[form])
        datasets = options.get("datasets", ",".join(ONE_EACH))
        protocol = options.get("protocol", "legacy")
        original = [path, form, ",".join(tasks), datasets, str(gold)]
        karat = ["geval", "--vector_file", path, "--vector_file_format", form]
        karat += ["--tasks", ",".join(tasks), "--datasets", datasets, "--protocol", protocol]
        return Case(
            name,
            ["{python}", str(folder / "original.py"), *original],
            ["{python}", str(folder / "karat_side.py"), *karat, "--gold_directory_path", str(gold)],
            goal,
            tolerance=5e-3 if protocol == "legacy" else np.inf,
            environment={"KARAT_DATA": os.environ.get("KARAT_DATA", "")},
            quick=tasks[0] in TASKS[-3:] and datasets != "_all",
        )

    classification, regression, clustering, documents, related, analogies = ((t,) for t in TASKS)
    return [
        case("entity relatedness", related, 3),
        case("document similarity", documents, 3),
        case("analogies, 506 questions", analogies, 3),
        case("analogies, 8,363 questions", analogies, 3, datasets="_all"),
        case("clustering, teams", clustering, 3),
        case("regression, AAUP", regression, 4),
        case("classification, AAUP", classification, 4),
        case("HDF5, entity relatedness", related, 3, form="hdf5"),
        case("HDF5, analogies, 506 questions", analogies, 3, form="hdf5"),
        case("six tasks, one gold standard each", TASKS, 6),
        case("regression, AAUP, corrected", regression, 4, protocol="corrected"),
        case("classification, AAUP, corrected", classification, 4, protocol="corrected"),
        case("six tasks, corrected", TASKS, 6, protocol="corrected"),
    ]


RECIPE = Recipe(
    title="GEval",
    requirements=(
        "numpy==1.26.4",
        "pandas==1.5.3",
        "scikit-learn==1.2.2",
        "scipy==1.11.4",
        "h5py==3.11.0",
        "pathlib2==2.3.7.post1",
        "fissix==24.4.24",
    ),
    no_deps=("evaluation-framework==1.3",),
    python2_package="evaluation_framework",
    extras=("h5",),
    prepare=prepare,
    quick=True,
)
