"""TabEB's published scores on its own tables, and a script that calls what its users call."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from karat.ext.compat.tabeb import (
    TabEBClassificationTask,
    TabEBRegressionTask,
    get_model,
)

from ....skips import original_file
from .test_tasks import Constant

pytest.importorskip("pyarrow")

NAMES = ("wine_pl", "wine_vivino_price", "spotify")
#: as in TabEB's notebook: the first 500 rows, 16 of them for training
FAITHFUL = {"protocol": "original", "max_rows": 500, "n_train": 16, "seed": 42}
TRAIN = [20, 71, 87, 102, 106, 121, 188, 214, 270, 330, 348, 372, 435, 458, 466, 499]

#: three encoders on both tasks, saved, and the leaderboard of the saved scores
SCRIPT = """\
from karat.ext.compat.tabeb.interface import display, get_leaderboard, get_model
from karat.ext.compat.tabeb.tasks import TabEBClassificationTask, TabEBRegressionTask

encoders = [get_model("random_encoder"), get_model("carte_encoder", task="regression")]
encoders.append(get_model("skrub_encoder"))
for title, make in (("regression", TabEBRegressionTask), ("classes", TabEBClassificationTask)):
    print(title)
    display(make(data_dir="data").evaluate(encoders, save_dir="results"))
display(get_leaderboard(["regression", "classification"], "results"))
"""


@pytest.fixture(scope="session")
def tables(tmp_path_factory) -> Path:
    """Return a folder of TabEB's own files; skip if they are missing."""
    folder = tmp_path_factory.mktemp("tables")
    for name in NAMES:
        shutil.copy(original_file(name), folder / f"{name}.parquet")
        notes = original_file(f"tabeb_{name}_metadata")
        shutil.copy(notes, folder / f"{name}_metadata.json")
    return folder


def need_skrub() -> None:
    skrub = pytest.importorskip("skrub")
    if not skrub.__version__.startswith("0.11."):
        pytest.skip(f"needs skrub 0.11, got {skrub.__version__}")


@pytest.mark.filterwarnings("ignore:wine_pl_metadata")
@pytest.mark.parametrize("name", NAMES)
def test_training_rows(tables, name):
    task = TabEBRegressionTask(data_dir=tables, data_name_list=[name], **FAITHFUL)
    task.load_data()
    frame, metadata = task.data_dict[name]
    X_train, X_test, y_train, _ = task.get_splits(frame, metadata)
    assert sorted(X_train.index) == TRAIN
    assert y_train.tolist() == frame.loc[X_train.index, metadata["target_name"]].tolist()
    assert sorted([*X_train.index, *X_test.index]) == list(range(500))


@pytest.mark.filterwarnings("ignore:wine_pl_metadata")
def test_mean_predictor(tables):
    frame = TabEBRegressionTask(data_dir=tables, **FAITHFUL).evaluate([Constant()])
    assert round(frame.loc[0, "wine_pl"], 6) == 0.387780
    assert round(frame.loc[0, "wine_vivino_price"], 6) == 0.916172


@pytest.mark.filterwarnings("ignore:wine_pl_metadata")
def test_skrub_with_the_original_head(tables):
    need_skrub()
    task = TabEBRegressionTask(data_dir=tables, **FAITHFUL)
    frame = task.evaluate([get_model("skrub_encoder")])
    # the numbers of the notebook; single precision leaves six digits
    assert frame.loc[0, "wine_pl"] == pytest.approx(1.888127, abs=3e-6)
    assert frame.loc[0, "wine_vivino_price"] == pytest.approx(1.726246, abs=3e-6)
    assert frame.loc[0, "regression_average"] == pytest.approx(1.807186, abs=3e-6)


def test_spotify_differs_only_by_the_metric(tables):
    """The original computes AUROC from hard labels."""
    need_skrub()

    class HardLabels(TabEBClassificationTask):
        def get_score(self, y_true, y_pred):
            return roc_auc_score(y_true, y_pred.argmax(axis=1))

    theirs = TabEBClassificationTask(data_dir=tables, metric="balacc", **FAITHFUL)
    for task in (HardLabels(data_dir=tables, **FAITHFUL), theirs):
        hard = task.evaluate([get_model("skrub_encoder")])
        assert round(hard.loc[0, "spotify"], 6) == 0.564957
    ours = TabEBClassificationTask(data_dir=tables, **FAITHFUL)
    frame = ours.evaluate([get_model("skrub_encoder")])
    assert round(frame.loc[0, "spotify"], 6) == 0.617453
    assert "converge" in frame.attrs["notes"][0]["note"]


def run_script(script, folder: Path) -> tuple[list[str], str]:
    (folder / "scores.py").write_text(SCRIPT)
    done = script(folder / "scores.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def test_a_script_on_small_tables(script, tmp_path):
    pytest.importorskip("skrub")
    root = tmp_path / "tabeb"
    x = np.arange(80)
    words = pd.DataFrame({"name": [f"wine {i % 9}" for i in x], "x": x.astype(float)})
    for name, target in (("wine_pl", x / 80), ("wine_vivino_price", x * 2.0), ("spotify", x % 2)):
        place = root / "data" / name
        place.mkdir(parents=True)
        words.assign(y=target).to_parquet(place / f"{name}.parquet")
        task = "classification" if name == "spotify" else "regression"
        (place / f"{name}_metadata.json").write_text(
            f'{{"name": "{name}", "task": "{task}", "target_name": "y"}}'
        )
    printed, errors = run_script(script, root)
    assert printed[0] == "regression"
    assert printed[1].split() == ["encoder", "wine_pl", "wine_vivino_price", "regression_average"]
    assert printed[5] == "classes"
    assert [line.split()[1] for line in printed[7:10]] == [
        "random_encoder",
        "carte_encoder",
        "skrub_encoder",
    ]
    assert printed[11].split()[1] == "skrub_encoder"  # best first
    assert "Traceback" not in errors


@pytest.mark.slow
def test_a_script_on_tabebs_tables(script, tmp_path, tables):
    pytest.importorskip("skrub")
    root = tmp_path / "tabeb"
    for name in NAMES:
        (root / "data" / name).mkdir(parents=True)
        for file in (f"{name}.parquet", f"{name}_metadata.json"):
            shutil.copy(tables / file, root / "data" / name / file)
    _, errors = run_script(script, root)
    saved = pd.read_parquet(root / "results" / "scores_regression.parquet").set_index("encoder")
    assert saved.loc["skrub_encoder", "wine_pl"] < 0.25 < saved.loc["random_encoder", "wine_pl"]
    saved = pd.read_parquet(root / "results" / "scores_classification.parquet")
    scores = saved.set_index("encoder")["spotify"]
    assert scores["skrub_encoder"] > 0.88 and abs(scores["random_encoder"] - 0.5) < 0.03
    if np.isnan(scores["carte_encoder"]):
        assert "carte_encoder on spotify: " in errors
