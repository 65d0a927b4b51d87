"""Every registered component fulfills the contract of its kind."""

from __future__ import annotations

import inspect
import json
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from karat.config.catalog import Catalog
from karat.config.loading import Definitions
from karat.core import registry
from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.core.predictions import Predictions
from karat.corruptions.view import parse_composition
from karat.data.load_dataset import DataSpec
from karat.data.queries import generate_queries
from karat.errors import DefinitionError, KaratError, Unavailable
from karat.execution.splits import split
from karat.metrics.metric import get_metric, score
from karat.probes.trained import Trained
from karat.testing import check_corruption, check_metric, check_model

from .endpoint_server import serving

DEFINITIONS = Definitions.load()


def builtin(parts: registry.Registry) -> list[str]:
    """Return the names of Karat's own components, not those that other tests registered."""
    return [name for name in parts if parts.origin(name).startswith("karat.")]


def broken(checks):
    return [f"{c.requirement} ({c.reason})" for c in checks if not c.passed]


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("KARAT_OFFLINE", "1")


MODELS = [*DEFINITIONS.names("models"), *builtin(registry.models)]
#: fewer trees or rows for the models that would take long
SMALLER = {
    "forest-scores": {"options": {"trees": 20}},
    "random-forest": {
        "classifier_options": {"n_estimators": 20},
        "regressor_options": {"n_estimators": 20},
    },
    "table-rows-use": {"rows": 3},
    "RandomForest": {"n_estimators": 10},
    "TunedRandomForest": {"n_estimators": 2, "k_folds": 2},
}


@pytest.mark.parametrize("name", MODELS)
def test_model(name, loaded_once):
    with ExitStack() as stack:
        given = name  # an endpoint is named by its address
        if name == "endpoint":
            given = f"{stack.enter_context(serving()).url}/v1#words-small"
        model = Catalog().model(given, params=SMALLER.get(name))
        if model.unavailable:
            pytest.skip(model.unavailable.splitlines()[0])
        checks = check_model(model)
    assert checks
    assert broken(checks) == []


@pytest.mark.parametrize("name", builtin(registry.metrics))
def test_metric(name):
    assert broken(check_metric(name)) == []


@pytest.mark.parametrize("name", builtin(registry.corruptions))
def test_corruption(name, tmp_path, monkeypatch):
    if name == "misspellings":  # of which the built-in list is downloaded
        monkeypatch.setenv("KARAT_DATA", str(tmp_path))
        (tmp_path / "misspellings").mkdir()
        (tmp_path / "misspellings/spelling_en.txt").write_text("red rad\ngreen grean\nlong lonk\n")
    assert broken(check_corruption(name)) == []


ROWS = 48


def vectors() -> Vectors:
    """Return two distant clusters: the even items in one, the odd items in the other."""
    rng = np.random.default_rng(1)
    side = np.where(np.arange(ROWS) % 2 == 0, -4.0, 4.0)
    return Vectors(side[:, None] + rng.normal(size=(ROWS, 5)), np.arange(ROWS))


def singles(kind: str) -> Dataset:
    """Return one query per item: its cluster, or a linear function of its vector."""
    items = pd.Series([f"text {i}" for i in range(ROWS)])
    numbers = vectors().matrix @ np.arange(1.0, 6.0)
    truth = (
        np.where(np.arange(ROWS) % 2 == 0, "here", "there") if kind == "classification" else numbers
    )
    return Dataset("singles", items, pd.DataFrame({"item": items.index}), truth, kind, "text")


def pairs() -> Dataset:
    """Return queries about the similarity of two items."""
    items = pd.Series([f"text {i}" for i in range(ROWS)])
    asked = pd.DataFrame({"a": np.arange(ROWS), "b": (np.arange(ROWS) * 7 + 3) % ROWS})
    return Dataset("pairs", items, asked, np.arange(ROWS) / ROWS, "regression", "text")


def analogies() -> Dataset:
    """Return queries of three items, answered by a fourth."""
    ids = [f"e{i}" for i in range(ROWS)]
    asked = pd.DataFrame({field: np.roll(ids, -place) for place, field in enumerate("abc")})
    return Dataset(
        "analogies", pd.Series(ids, index=ids), asked, np.roll(ids, -3), "items", "entity"
    )


def lookups() -> Dataset:
    """Return queries of one item with two answers each."""
    ids = [f"e{i}" for i in range(ROWS)]
    asked = pd.DataFrame({"query": [*ids, *ids]})
    answers = np.concatenate([np.roll(ids, -2), np.roll(ids, -4)])
    return Dataset("lookups", pd.Series(ids, index=ids), asked, answers, "items", "entity")


#: per capability of a head: data, whether the target is hidden, metric and minimum score
USES = {
    "classes": (singles("classification"), False, "acc", 0.95),
    "numbers": (singles("regression"), False, "r2", 0.8),
    "clusters": (singles("classification"), True, "v_measure", 0.9),
}
#: what every head can do; one that loses a capability, or gains one, fails the test
HEADS = {
    **dict.fromkeys(("adamw", "logistic-regression", "naive-bayes"), {"classes"}),
    **dict.fromkeys(("linear-regression", "model-tree", "ridge"), {"numbers"}),
    **dict.fromkeys(("best-of", "decision-tree", "knn", "svm"), {"classes", "numbers"}),
    **dict.fromkeys(("agglomerative", "dbscan", "kmeans", "ward"), {"clusters"}),
    **dict.fromkeys(("isolation-forest", "knn-distance"), {"outliers"}),
}
REQUIRED_PARAMS = {"best-of": {"heads": ["knn", "svm"], "folds": 3}}


def headed(name: str, use: str) -> Predictions:
    data, blind, _, _ = USES[use]
    probe = Trained(head={"use": name, **REQUIRED_PARAMS.get(name, {})}, random_state=5)
    rows = np.arange(ROWS)
    test = data if blind else data.take(rows[rows % 4 < 2])
    probe.fit(data.blind() if blind else data.take(rows[rows % 4 >= 2]), vectors())
    return probe.answer(test, vectors())


def assert_finds_outliers(name: str) -> None:
    """One number per item, deterministic, highest for the three distant items."""
    head = registry.build("head", registry.heads.get(name), {}, {"random_state": 5})
    X = np.random.default_rng(3).normal(size=(60, 4))
    X[:3] += [[9.0], [-9.0], [20.0]]
    before = X.copy()
    scores = head.outlier_scores(X)
    assert scores.shape == (60,) and np.isfinite(scores).all()
    assert set(np.argsort(-scores)[:3]) == {0, 1, 2}
    assert np.array_equal(scores, head.outlier_scores(X)) and np.array_equal(X, before)


@pytest.mark.parametrize("name", builtin(registry.heads))
def test_head(name):
    assert name in HEADS, f"add the capabilities of {name} to HEADS"
    if HEADS[name] == {"outliers"}:
        return assert_finds_outliers(name)
    for use, (_, _, metric, lowest) in USES.items():
        if use not in HEADS[name]:
            with pytest.raises(KaratError):
                headed(name, use)
            continue
        answers = headed(name, use)
        value, reason = score(metric, answers)
        assert value is not None and value >= lowest, reason or value
        assert answers.to_csv() == headed(name, use).to_csv()


def split_data(grouped: bool) -> Dataset:
    row = np.arange(ROWS)
    group = row // 6
    return Dataset(
        "split",
        pd.DataFrame({"x": row}),
        pd.DataFrame({"row": row}),
        np.where(row % 3 == 0, "rare", "common"),
        "classification",
        "table",
        group=group if grouped else None,
        part=np.where(group == 2, "test", "train"),
    )


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("name", builtin(registry.splitters))
def test_splitter(name, grouped):
    data = split_data(grouped)
    if grouped and name in ("senteval", "geval"):  # these replay folds that ignore groups
        with pytest.raises(DefinitionError, match="groups"):
            split(data, {"use": name}, 7)
        return
    if name in ("groups", "each-group") and not grouped:
        sides = {"train": [0], "test": [1]} if name == "groups" else {}
        with pytest.raises(DefinitionError, match="groups"):
            split(data, {"use": name, **sides}, 7)
        return
    more = {"time": {"column": "x", "folds": 1}, "groups": {"train": [0, 1], "test": [2]}}
    how = {"use": name, **more.get(name, {})}
    folds = split(data, how, 7)
    assert folds
    tested: dict[int, list[int]] = {}
    for fold in folds:
        train, test = set(fold.train.tolist()), set(fold.test.tolist())
        assert train and test and train | test <= set(range(ROWS))
        assert len(train) == len(fold.train) and len(test) == len(fold.test)
        assert train == test or not train & test
        if grouped and train != test:
            assert not {i // 6 for i in train} & {i // 6 for i in test}
        tested.setdefault(fold.repeat, []).extend(fold.test.tolist())
    assert all(len(rows) == len(set(rows)) for rows in tested.values())
    again = split(split_data(grouped), how, 7)
    assert [(f.train.tolist(), f.test.tolist(), f.repeat) for f in folds] == [
        (f.train.tolist(), f.test.tolist(), f.repeat) for f in again
    ]


#: the numbers of fields that every composer combines
COMPOSERS = {"concat": {1, 2, 3}, "interaction": {2}, "single": {1}}


@pytest.mark.parametrize("name", builtin(registry.composers))
@pytest.mark.parametrize("count", [1, 2, 3])
def test_composer(name, count):
    compose = registry.composers.get(name)
    fields = [np.random.default_rng(i).normal(size=(6, 4)) for i in range(count)]
    if count not in COMPOSERS[name]:
        with pytest.raises(DefinitionError):
            compose(*fields)
        return
    before = [field.copy() for field in fields]
    whole = compose(*fields)
    assert whole.shape[0] == 6 and whole.ndim == 2
    assert np.array_equal(compose(*(field[[4, 1]] for field in fields)), whole[[4, 1]])
    assert all(np.array_equal(a, b) for a, b in zip(fields, before, strict=True))


QUERIES = {
    "classes": singles("classification"),
    "numbers": singles("regression"),
    "pairs": pairs(),
    "analogies": analogies(),
    "lookups": lookups(),
}
#: the queries that every probe answers; one that loses a capability, or gains one, fails the test
PROBES = {
    "analogy": {"analogies"},
    "bitext": {"lookups"},
    "candidates": set(),  # pairs with groups, see tests/ext/compat/mteb/test_mteb_tasks.py
    "duplicates": {"classes"},
    "links": {"lookups"},
    "mteb-clustering": {"classes"},
    "mteb-pairs": {"pairs"},
    "nearest": {"lookups"},
    "same-class": {"classes"},
    "similarity": {"pairs"},
    "trained": {"classes", "numbers", "pairs"},
}


def made_probe(name: str):
    assert name in PROBES, f"add the capabilities of {name} to PROBES"
    return registry.build("probe", registry.probes.get(name), {}, {"random_state": 3})


def assert_no_default_answers(probe, data) -> None:
    with pytest.raises(DefinitionError, match="missing: ignore"):
        probe.unanswered(data)


def assert_one_answer_each(probe, data, answers) -> None:
    lost = probe.unanswered(data)
    for given in (answers, lost):
        assert len(given) == len(data)
        assert given.target.tolist() == answers.target.tolist()
    merged = answers.take(np.arange(3)).merged(lost.take(np.arange(2)), np.arange(5) < 3)
    assert len(merged) == 5


def assert_ranked_lists(answers) -> None:
    """All answers of a query, each with a rank of its own."""
    for query in set(answers.group):
        ranks = answers.rank[answers.group == query]
        assert len(set(ranks)) == len(ranks) and ranks.min() >= 1
        assert (ranks <= answers.candidates[answers.group == query]).all()


@pytest.mark.parametrize("queries", QUERIES)
@pytest.mark.parametrize("name", builtin(registry.probes))
def test_probe(name, queries):
    data, known, probe = QUERIES[queries], vectors(), made_probe(name)
    if queries not in PROBES[name]:
        with pytest.raises(DefinitionError):
            probe.answerable(data, known)
        return
    mark, able = data.fingerprint, probe.answerable(data, known)
    assert able.dtype == bool and able.all()
    probe.fit(data, known)
    answers = probe.answer(data, known)
    if answers.weight is not None:  # weighted rows: every pair is counted once
        assert answers.weight.sum() == len(data) * (len(data) - 1) // 2
        assert_no_default_answers(probe, data)
    elif not getattr(probe, "one_answer_each", True):
        if answers.rank is not None:
            assert_ranked_lists(answers)
        assert_no_default_answers(probe, data)
    else:
        assert_one_answer_each(probe, data, answers)
    assert answers.to_csv() == probe.answer(data, known).to_csv()
    assert isinstance(probe.notes, list)
    assert data.fingerprint == mark and np.array_equal(known.matrix, vectors().matrix)


@pytest.mark.parametrize("name", builtin(registry.probes))
def test_probe_declines_items_without_a_vector(name):
    for data in (QUERIES[queries] for queries in PROBES[name] - {"numbers"}):
        known = vectors()
        known.matrix[5] = np.nan
        able = made_probe(name).answerable(data, known)
        asked = np.any([data.mentions(field).rows == 5 for field in data.fields], axis=0)
        if data.kind == "items":
            asked |= np.asarray(data.target) == "e5"
        assert able.tolist() == (~asked).tolist()


FILES = {
    "table.csv": "place,weight,label\nParis,1.5,yes\nRome,2.5,no\nBonn,0.5,yes\n",
    "table.tsv": "place\tweight\tlabel\nParis\t1.5\tyes\nRome\t2.5\tno\n",
    "analogies.txt": "Athens Baghdad Greece Iraq\nOslo Rome Norway Italy\n",
    "pairs.csv": ",text,label\n0,fine,yes\n1,poor,no\n",
    "messages.po": 'msgid "yes"\nmsgstr "sim"\n\nmsgid "no"\nmsgstr "não"\n',
    "related.txt": "Paris\n\tFrance\n\tSeine\nRome\n\tItaly\n\tTiber\n",
    "words.txt": "cat dog 7.5\ncat car 1\n",
    "documents.json": '[{"annotations": [{"entity": "a", "weight": 1}]}, '
    '{"annotations": [{"entity": "b", "weight": 0.5}]}]',
    "compared.csv": "doc1,doc2,average\n1,2,3.5\n2,1,3\n",
    "empty.csv": "",
    "noise.bin": "\x00\x01\x02",
    "arrays/info.json": '{"task_type": "binclass"}',
    "texts/good/1.txt": "fine",
    "texts/bad/1.txt": "poor",
    "corpus/cities.csv": "place,people\nRome,3\nOslo,1\n",
    "corpus/columns.csv": "table,column,type\ncities,place,City\ncities,people,number\n",
}
LABEL = {"target": "label", "kind": "classification"}
SPECS = [
    LABEL,
    {**LABEL, "fields": ("place",), "modality": "text"},
    {**LABEL, "options": {"key": "place"}},
    {**LABEL, "options": {"positive": "ye"}},
    {"options": {"pairs": "compared.csv"}},
    {},
]


@pytest.fixture
def files(tmp_path) -> list[Path]:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    documents = "\n".join(json.dumps({"_id": str(i), "text": f"text {i}"}) for i in range(3))
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"):
        path = tmp_path / "search" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("1 2 1\n" if name == "qrels.tsv" else documents)
    for name, values in {"X_num": [[1.5], [2.5]], "Y": [0, 1]}.items():
        np.save(tmp_path / "arrays" / f"{name}.npy", np.array(values))
    return [*sorted(tmp_path.iterdir()), tmp_path / "missing.csv"]


@pytest.mark.parametrize("name", builtin(registry.readers))
def test_reader(name, files):
    """It returns a dataset or raises a KaratError, whatever it is given."""
    read = registry.readers.get(name)
    found = []
    for path in files:
        for about in SPECS:
            try:
                data = read(path, DataSpec(name="sample", **about))
            except KaratError as error:
                assert str(error)
            else:
                assert isinstance(data, Dataset) and data.name == "sample"
                assert data.target is not None
                found.append(path.name)
    assert found, "it reads none of the files"
    assert not {"empty.csv", "noise.bin", "missing.csv"} & set(found)


@pytest.mark.parametrize("name", builtin(registry.readers))
def test_reader_refuses_an_unknown_option(name, files):
    for path in files:
        with pytest.raises(KaratError, match="zzz"):
            spec = DataSpec(name="sample", options={"zzz": 1}, target="label", fields=("place",))
            registry.readers.get(name)(path, spec)


@pytest.mark.parametrize("name", builtin(registry.query_generators))
def test_query_generator(name):
    """It makes queries that can be split, and the seed alone determines them."""
    rng = np.random.default_rng(4)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=90).round(2),
            "count": np.where(rng.random(90) < 0.1, np.nan, rng.integers(0, 60, 90)),
            "color": rng.choice(["red", "green", None], 90),
            "{brace} 'quote'": rng.choice([f"{{{i}}}" for i in range(25)], 90),
            "y": rng.random(90),
        }
    )
    data = Dataset.from_table(table, "y", name="rows", kind="regression")
    mark = data.fingerprint
    one, again, other = (generate_queries(data, {"use": name}, seed) for seed in (3, 3, 4))
    assert one.fingerprint == again.fingerprint != other.fingerprint
    assert len(one) > 20 and one.target is not None and one.name.startswith("rows ")
    assert len(split(one, {"use": "kfold"}, 0)) == 5
    vars(data).pop("fingerprint")
    assert data.fingerprint == mark
    texts = singles("classification")
    try:
        assert isinstance(generate_queries(texts, {"use": name}, 3), Dataset)
    except DefinitionError as error:
        assert "table" in str(error)


@pytest.mark.parametrize("name", builtin(registry.vector_formats))
def test_vector_format(name):
    """It is a function of a path, or has one."""
    part = registry.vector_formats.get(name)
    assert callable(getattr(part, "read_vectors", part))


@pytest.mark.parametrize("name", builtin(registry.measures))
def test_measure(name):
    """It returns one number for two vectors."""
    a, b = np.random.default_rng(0).normal(size=(2, 8))
    assert np.isfinite(registry.measures.get(name)(a, b))


@pytest.mark.parametrize("name", builtin(registry.analogy_functions))
def test_analogy_function(name):
    """It returns a vector of the same size and changes none of its own."""
    given = np.random.default_rng(0).normal(size=(3, 8))
    before = given.copy()
    assert registry.analogy_functions.get(name)(*given).shape == (8,)
    assert (given == before).all()


def is_bundled(name: str) -> bool:
    load = DEFINITIONS.get("datasets", name)["load"]
    return load is not None and load["use"].startswith("karat.data.readers.table_files:")


#: datasets that need no file; tests/data/test_builtin_datasets.py covers the others
DATASETS = [
    *(name for name in DEFINITIONS.names("datasets") if is_bundled(name)),
    *builtin(registry.datasets),
]


@pytest.mark.parametrize("name", DATASETS)
def test_dataset(name):
    load = Catalog().dataset(name)
    try:
        data = load()
    except Unavailable as error:
        pytest.skip(str(error).splitlines()[0])
    assert isinstance(data, Dataset) and len(data) > 1
    assert data.fingerprint == load().fingerprint


CONTRACTS = {
    "model": test_model,
    "dataset": test_dataset,
    "metric": test_metric,
    "corruption": test_corruption,
    "head": test_head,
    "splitter": test_splitter,
    "composer": test_composer,
    "probe": test_probe,
    "reader": test_reader,
    "query_generator": test_query_generator,
    "vector_format": test_vector_format,
    "measure": test_measure,
    "analogy_function": test_analogy_function,
}


@pytest.mark.parametrize("parts", registry.ALL, ids=lambda parts: parts.kind)
def test_every_kind_of_component_has_a_contract_test(parts):
    assert parts.kind in CONTRACTS, f"write a contract test for every {parts.kind}"
    asked = [m.args[1] for m in CONTRACTS[parts.kind].pytestmark if m.args[:1] == ("name",)]
    assert len(asked) == 1
    assert set(builtin(parts)) <= set(asked[0])


@pytest.mark.parametrize("parts", registry.ALL, ids=lambda parts: parts.kind)
def test_every_component_has_a_docstring(parts):
    for name in builtin(parts):
        part = parts.get(name)
        text = inspect.getdoc(getattr(part, "compute", part)) or ""
        first = text.partition("\n")[0]
        assert first.endswith((".", "?", ":")) and len(first) > 10, (
            f"{parts.kind} {name}: {first!r}"
        )


@pytest.mark.parametrize("name", DEFINITIONS.names("models"))
def test_model_definition(name):
    definition = DEFINITIONS.get("models", name)
    assert definition["description"]
    assert not definition["requires"] or definition["extra"]


@pytest.mark.parametrize("name", DEFINITIONS.names("tasks"))
def test_task_definition(name):
    definition = DEFINITIONS.get("tasks", name)
    assert definition["metrics"]
    for metric in definition["metrics"]:
        get_metric(metric)
    probe, how = definition["probe"], definition["split"]
    assert probe["use"] in registry.probes and how["use"] in registry.splitters
    assert definition["ask"] is None or definition["ask"]["use"] in registry.query_generators
    head = probe.get("head")
    nested = head.get("heads", []) if isinstance(head, dict) else []
    used = [h["use"] if isinstance(h, dict) else h for h in (head, *nested) if h is not None]
    assert set(used) <= set(registry.heads)
    assert probe.get("compose") is None or probe["compose"] in registry.composers
    parts = {part for name in definition["corruptions"] for part, _ in parse_composition(name)}
    assert parts <= set(registry.corruptions)
    if isinstance(definition["dataset"], str):
        assert definition["dataset"] in DEFINITIONS.names("datasets")
    assert Catalog().task(name).name == name


@pytest.mark.parametrize("name", DEFINITIONS.names("suites"))
def test_suite_definition(name):
    definition = DEFINITIONS.get("suites", name)
    assert definition["description"]
    assert set(definition["tasks"]) <= set(DEFINITIONS.names("tasks"))
    assert set(definition["models"]) <= {*DEFINITIONS.names("models"), *registry.models}
    assert [task.name for task in Catalog().suite(name)] == definition["tasks"]
