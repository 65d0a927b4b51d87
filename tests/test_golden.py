"""Run folders, fingerprints and keys of earlier versions: what is stored must stay readable.

The archives were written by golden/make.py; the numbers below were right when they were.
"""

import importlib.util
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core.files import fingerprint
from karat.execution.embedding_cache import VectorCache, text_hashes
from karat.models.predictors import RbfRegressor

GOLDEN = Path(__file__).parent / "golden"
ARCHIVES = sorted(GOLDEN.glob("runs_*.tar.gz"))
#: mean scores over two folds: auc of the labels, rmse of the prices
SCORES = {
    "kept-onehot": (0.8710570618465355, 0.2592763517119946),
    "kept-svm": (0.830619794435584, 0.8789909004556606),
    "dummy": (0.5, 1.8183100928848985),
}


@pytest.fixture(scope="module")
def make():
    spec = importlib.util.spec_from_file_location("golden_make", GOLDEN / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name)
def runs(request, tmp_path):
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    return karat.open_runs(tmp_path / "runs")


def test_the_leaderboard_of_old_runs_is_the_same(runs):
    board = karat.leaderboard(runs)
    assert list(board.index) == list(SCORES) and list(board["rank"]) == [1, 2, 3]
    found = board[["labels", "prices"]].to_numpy()
    np.testing.assert_allclose(found, list(SCORES.values()), rtol=1e-12)


def test_scores_of_old_runs_follow_from_their_predictions(runs):
    for run in runs:
        scores = karat.rescore(run, ["f1_macro"]).scores
        assert scores["value"].notna().sum() == 4 * 3 + 2 * 2  # folds and views of both tasks
        stored = scores[~scores["added"]]
        np.testing.assert_allclose(stored["value"], stored["before"], rtol=1e-12)


def test_pickled_models_of_old_runs_are_loaded(runs, make):
    (prices,) = (task for task in make.make_tasks() if task.name == "prices")
    by_name = {run.about["model"]: run for run in runs}
    svm, onehot = (
        karat.load_artifact(by_name[name], "models", "prices", 0, allow_pickle=True)
        for name in ("kept-svm", "kept-onehot")
    )
    assert type(svm.estimator) is RbfRegressor
    vectors = onehot["encoder"].transform(prices.dataset.items.iloc[[2, 5]])
    np.testing.assert_allclose(vectors[:, 0], [0.01534376, -0.81091768], rtol=1e-6)
    np.testing.assert_array_equal(vectors[:, 1:], [[1, 0, 0], [0, 0, 1]])


def test_the_same_models_score_as_they_did(make, tmp_path):
    runs = karat.evaluate(["onehot", "dummy"], make.make_tasks(), output=tmp_path)
    board = karat.leaderboard(runs)
    for name, old in {"onehot": "kept-onehot", "dummy": "dummy"}.items():
        found = board.loc[name, ["labels", "prices"]].to_numpy(dtype=float)
        np.testing.assert_allclose(found, SCORES[old], rtol=1e-9)


def test_a_report_of_old_runs_has_their_models(runs, tmp_path):
    page = Path(karat.report(runs, tmp_path / "report.html")).read_text()
    assert all(name in page for name in SCORES)


def test_fingerprints_of_data_are_the_same(make):
    labels, prices = (task.dataset.fingerprint for task in make.make_tasks())
    assert labels == "c193b2c3d69219e838617a92a8a0b3b7300b0314a42660d1f2218c5112da24da"
    assert prices == "8996a71d867d73f7aa4239037f32df7774a799c03783cf45ab067f0b3625d6fd"


def test_fingerprints_of_cells_are_the_same():
    frame = pd.DataFrame({"n": [1, 2], "text": ["a", None], "bag": [{"x": 1.0}, {"y": 0.5}]})
    assert fingerprint(frame) == "d71d41aea1a2bc0e3a290b03e56a8759bdb829a1cada3892beb6e936cc3fd3b5"


def test_keys_of_the_vector_cache_are_the_same():
    assert (
        VectorCache.key("identity", "data", "item", "7")
        == "8419618d1170b42b84a5a1fd6bc72ae5e98816eb994386b63d4524e7cc5f914b"
    )
    assert [one.hex() for one in text_hashes(["a", "ä"], "query: ")] == [
        "2b3fb9eafbee0cbbd00d14f79b78f49e",
        "54ebabcd179bf6e13849b7fe44f50040",
    ]
