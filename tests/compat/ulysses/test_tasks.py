"""The 18 tasks of Ulysses SentEval: their definitions, and downloads from a local server."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import karat
from karat.compat.ulysses import tasks
from karat.config.loading import Definitions
from karat.core.files import cache_folder
from karat.data.load_dataset import load_dataset

from ..conftest import FILES

pytestmark = pytest.mark.usefixtures("download_settings")


@pytest.fixture(scope="module")
def definitions() -> Definitions:
    return Definitions.load()


def rows(kind: str, count: int = 60) -> str:
    """Return a file of one of the three forms; the label shows in the words."""
    words = [f"alfa {i}" if i % 2 else f"beta {i}" for i in range(count)]
    forms: dict[str, dict[str, list[Any]]] = {
        "single": {"text": words},
        "pair": {"text_a": words, "text_b": [f"fim {i % 7}" for i in range(count)]},
        "options": {"question": words, "options": ["sim [SEP] não [SEP] talvez"] * count},
    }
    labels = [i % 2 for i in range(count)]
    return pd.DataFrame({**forms[kind], "label": labels}).to_csv()


def zipped(content: str, name: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        opened.writestr(name, content)
    return packed.getvalue()


@pytest.mark.parametrize("task", FILES)
def test_tasks_match_the_paper(definitions, task):
    definition = definitions.get("tasks", task)
    assert definition["dataset"] == f"ulysses_{task}" and definition["kind"] == f"ulysses-{task[0]}"
    assert definition["metrics"] == ["above_chance", "mcc", "f1_macro", "acc", "logloss"]
    assert definition["split"] == {"use": "kfold", "folds": 5, "repeats": 10, "balanced": True}
    exam = task in ("F3", "F5")
    head = {"use": "adamw", "mode": "fast", **({"hidden_dims": [256]} if exam else {})}
    assert definition["probe"]["head"] == head and definition["probe"]["scale"] == "plain"
    assert definition["probe"].get("compose") == ("concat" if exam else None)
    data = definitions.get("datasets", f"ulysses_{task}")
    places = [source.get("folder") for source in data["sources"]][:2]
    assert places == [f"{FILES[task]}.csv", f"ulysses_senteval_datasets/{FILES[task]}.csv"]
    assert data["options"] == ({"options": " [SEP] "} if exam else {})


@pytest.mark.parametrize("task", FILES)
def test_exact_tasks_differ_only_in_split_and_mode(definitions, task):
    fast, exact = (definitions.get("tasks", name) for name in (task, f"{task}-exact"))
    assert exact["split"] == {"use": "senteval", "folds": 5, "repeats": 10}
    assert exact["probe"]["head"] == {**fast["probe"]["head"], "mode": "exact"}
    for same in ("dataset", "kind", "metrics"):
        assert exact[same] == fast[same]


def test_suites_list_all_tasks_in_the_order_of_the_paper(definitions):
    assert definitions.get("suites", "ulysses")["tasks"] == list(FILES)
    assert definitions.get("suites", "ulysses-exact")["tasks"] == [f"{t}-exact" for t in FILES]


def test_urls_and_checksums_match_the_benchmark(definitions, shared: Path):
    published = json.loads((shared / "ulysses" / "senteval_datasets.json").read_text())
    published = published["sentence_model_evaluation"]
    assert set(published) == set(FILES.values())
    for task, file in FILES.items():
        remote = definitions.get("datasets", f"ulysses_{task}")["sources"][2:]
        assert [source["url"] for source in remote] == published[file]["urls"]
        assert {source["sha256"] for source in remote} == {published[file]["sha256"]}


@pytest.mark.parametrize("below", ["", "ulysses_senteval_datasets"])
def test_local_file_takes_precedence(definitions, tmp_path, monkeypatch, below):
    folder = tmp_path / "data" / below
    folder.mkdir(parents=True)
    (folder / "faqs.csv").write_text(rows("pair"))
    monkeypatch.setenv("KARAT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    data = load_dataset("ulysses_G3", definitions.get("datasets", "ulysses_G3"))
    assert len(data) == 60 and data.fields == ["text_a", "text_b"] and data.classes == (0, 1)


CSV = rows("single", 4000)
ZIP = zipped(CSV, "ulysses_senteval_datasets/hatebr_offensive_lang.csv")


@pytest.fixture
def served(definitions, stub):
    """Return a definition whose two URLs are on the local server."""

    def serve(first: list[Any], second: list[Any]) -> dict[str, Any]:
        definition = dict(definitions.get("datasets", "ulysses_T1A"))
        given = definition["sources"]
        addresses = [stub.put("/s/x.zip", *first), stub.put("/uc", *second)]
        remote = [
            {**source, "url": address, "sha256": hashlib.sha256(ZIP).hexdigest()}
            for source, address in zip(given[2:], addresses, strict=True)
        ]
        return {**definition, "sources": [*given[:2], *remote]}

    return serve


@pytest.mark.parametrize("trouble", ["none", "wrong", "gone", "cut"])
def test_zip_is_downloaded_from_one_of_two_urls(stub, served, trouble):
    answers = {
        "none": stub.ranged(ZIP),
        "wrong": stub.body(zipped(CSV, "other.csv")),
        "gone": stub.status(404),
        "cut": stub.ranged(ZIP, 40_000),
    }
    data = load_dataset("t", served([answers[trouble]], [stub.ranged(ZIP)]))
    assert len(data) == 4000 and data.classes == (0, 1)
    assert data.about["sha256"] == hashlib.sha256(CSV.encode()).hexdigest()
    assert ("/uc" in stub.asked) is (trouble != "none")
    assert not list(cache_folder().rglob("*.part"))
    load_dataset("t", served([stub.status(500)], [stub.status(500)]))  # it is in the cache


def test_downloaded_file_is_copied_into_the_folder(stub, served, tmp_path, monkeypatch):
    tasks.rule_of("T1A")  # which is kept
    monkeypatch.delenv("KARAT_DATA", raising=False)
    definition = served([stub.ranged(ZIP)], [stub.status(500)])
    loader = partial(load_dataset, "t", definition)
    loader.definition = definition
    catalog = SimpleNamespace(task=lambda name: SimpleNamespace(dataset=loader))
    monkeypatch.setattr(tasks, "Catalog", lambda: catalog)
    texts = tasks.load_texts("T1A", tmp_path / "new")
    assert len(texts.a) == 4000 and texts.b is None
    assert (tmp_path / "new" / "hatebr_offensive_lang.csv").read_text() == CSV
    asked = len(stub.asked)
    assert tasks.load_texts("T1A", tmp_path / "new").a == texts.a
    assert len(stub.asked) == asked


@pytest.fixture
def local(tmp_path, monkeypatch) -> Path:
    """Return a folder with synthetic files of three tasks, one of each form."""
    for task, form in (("T1A", "single"), ("G3", "pair"), ("F3", "options")):
        (tmp_path / f"{FILES[task]}.csv").write_text(rows(form, 400))
    monkeypatch.setenv("KARAT_DATA", str(tmp_path))
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    return tmp_path


@pytest.mark.parametrize("task", ["T1A", "G3", "F3", "T1A-exact"])
def test_heads_learn_every_kind_of_task(local, task):
    suite = karat.suite(task)
    (run,) = karat.evaluate("tfidf", suite, folds=[7], output=local / "results")
    results = run.results()
    assert results["info"].tolist() == [""] or results["info"].isna().all()
    assert results["result"].iloc[0] > 0.9, "the label is a word of the text"
