"""Folders and files that no run has written: pipes, unknown metrics, numbers without end, keys that
look like tags. One message each; a damaged run ends nothing for the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core.dataset import Dataset
from karat.core.files import read_regular
from karat.errors import DataError, DefinitionError
from karat.ext.compat.convert import read_scores
from karat.ext.compat.geval.gold import from_xml
from karat.ext.publish.site import site
from karat.models.vectors.vector_formats import read_vectors
from karat.reporting.page import report
from karat.results.rescore import rescore
from karat.results.run import Run, open_runs


@pytest.fixture
def runs(tmp_path):
    """Return the folder of two runs of one task."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    frame["y"] = np.where(frame["a"] > 0, "yes", "no")
    data = Dataset.from_table(frame, "y", name="signs")
    task = karat.Task("signs", data, metrics=["auc", "acc"], split={"use": "kfold", "folds": 2})
    karat.evaluate(["dummy", "onehot"], [task], output=tmp_path / "runs")
    return tmp_path / "runs"


def folder_of(runs, model):
    return next(runs.glob(f"{model}.*"))


def as_pipe(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def read_everything(runs, output):
    karat.leaderboard(runs)
    report(runs, output / "report.html")
    site(runs, output / "site")


def change(path, **facts):
    path.write_text(json.dumps(json.loads(path.read_text()) | facts))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders")
def test_pipes_in_a_run_folder_are_damaged_files(runs, tmp_path):
    folder = folder_of(runs, "dummy")
    for place in ("jobs/signs.0.json", "scores/jobs.columns", "jobs/signs.7.running"):
        as_pipe(folder / place)
    for place in ("predictions.csv", "metadata.json", "rows.csv", "missing.txt", "sample.csv"):
        as_pipe(folder / "predictions" / "signs" / "1" / place)
    (items,) = (folder / "items").iterdir()
    as_pipe(items)
    with warnings.catch_warnings(record=True) as told:
        read_everything(runs, tmp_path)
    assert any("1 of 2 records are damaged" in str(each.message) for each in told)
    with pytest.raises(DataError, match="no predictions of signs, fold 1.*not a regular file"):
        Run(folder).predictions("signs", 1)
    with pytest.raises(DataError, match="not a regular file"):
        Run(folder).items("signs")
    as_pipe(folder / "run.json")
    assert [run.model for run in open_runs(runs)] == ["onehot"]
    with pytest.raises(OSError, match="not a regular file"):
        read_regular(folder / "run.json")


def test_a_damaged_run_with_an_unknown_metric_is_a_note(runs, tmp_path):
    folder = folder_of(runs, "dummy")
    tasks = json.loads((folder / "run.json").read_text())["tasks"]
    tasks[0] |= {"metrics": ["nosuch"], "higher_is_better": {}}
    change(folder / "run.json", tasks=tasks)
    (folder / "jobs" / "signs.0.json").write_text('{"spec": 3')
    record = json.loads((folder / "jobs" / "signs.1.json").read_text())
    views = [{**view, "scores": {"nosuch": 0.5}} for view in record["views"]]
    change(folder / "jobs" / "signs.1.json", metric="nosuch", views=views)
    with pytest.warns(UserWarning, match='scores of dummy in "nosuch" are left out'):
        board = karat.leaderboard(runs)
    assert set(board.index) == {"dummy", "onehot"} and board["failed"].sum() == 0
    with warnings.catch_warnings(action="ignore"):
        read_everything(runs, tmp_path)
    # nothing else is there: what is unknown is an error that names it
    with warnings.catch_warnings(action="ignore"), pytest.raises(DefinitionError, match="nosuch"):
        karat.leaderboard(folder)


def test_nan_in_a_plan_is_null(runs, tmp_path):
    folder = folder_of(runs, "dummy")
    path = folder / "run.json"
    path.write_text(path.read_text().replace('"threads": 1', '"threads": NaN'))
    made = rescore(folder, output=tmp_path / "rescored").run
    assert made.about["threads"] is None
    (written,) = (tmp_path / "rescored").glob("*/run.json")
    assert json.loads(written.read_text(), parse_constant=pytest.fail)["threads"] is None


def test_numbers_without_end_are_refused(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.txt").write_text("a 1 2\n")
    digits = "9" * 6000
    (tmp_path / "p.xml").write_text(
        "<parameters><vector_filename>v.txt</vector_filename>"
        f"<vector_size>{digits}</vector_size></parameters>"
    )
    with pytest.raises(DefinitionError, match="vector_size must be an integer") as caught:
        from_xml(tmp_path / "p.xml")
    assert len(str(caught.value)) < 200
    (tmp_path / "m.json").write_text(
        '{"dataset_revision": "x", "task_name": "T", "mteb_version": "1", "evaluation_time": 1, '
        '"scores": {"test": [{"main_score": ' + digits[:400] + ', "accuracy": 0.5, '
        '"hf_subset": "default", "languages": ["eng"]}]}}'
    )
    assert np.isfinite(read_scores(tmp_path / "m.json", system="mteb")["value"]).all()
    data = "datasets:\n  d: {path: v.txt, target: y}\n"
    split = "{use: kfold, folds: 2, repeats: 18446744073709551616}"
    task = f"  t: {{extends: classification, dataset: diabetes, split: {split}}}\n"
    (tmp_path / "r.yaml").write_text(f"{data}tasks:\n{task}suites:\n  s: {{tasks: [t]}}\n")
    done = cli("plan", "s", "--define", "r.yaml", "-m", "dummy")
    assert done.code == 2 and "repeats must be at most 10,000" in done.err


def test_keys_that_look_like_tags_are_unknown_keys(tmp_path, cli):
    file = tmp_path / "b.yaml"
    file.write_text("models:\n  m: {use: 'karat.models.tabular_encoders:OneHotTable', <b>: 2}\n")
    done = cli("list", "models", "--define", str(file))
    assert done.code == 2 and "<b>" in done.err and "unknown key" in done.err


IDS = {
    "bytes that are not UTF-8": np.array([b"\xff\xfe", b"b"]),
    "a surrogate": np.array(["\ud800", "b"]),
    "not Unicode": np.frombuffer(np.array([0x7FFFFFFF, 98], dtype="<u4").tobytes(), dtype="<U1"),
    "numbers": np.ones((2, 2)),
    "dates": np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]"),
}


@pytest.mark.parametrize("what", IDS)
def test_ids_of_npz_files_are_texts(what, tmp_path):
    np.savez(tmp_path / "v.npz", ids=IDS[what], vectors=np.ones((2, 3), dtype=np.float32))
    with pytest.raises(DataError, match="v.npz: not an .npz"):
        read_vectors(tmp_path / "v.npz")
    np.savez(tmp_path / "v.npz", ids=np.array([b"\xc3\xbc", b"b"]), vectors=np.ones((2, 3)))
    assert read_vectors(tmp_path / "v.npz")[0] == ["ü", "b"]


@pytest.mark.parametrize("name", [b"_links", b"\xff\xfe"])
def test_names_in_hdf5_files_that_are_no_entities(name, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "v.h5", "w") as file:
        group, space = file.create_group("Vectors"), h5py.h5s.create_simple((2,))
        h5py.h5d.create(group.id, name, h5py.h5t.NATIVE_DOUBLE, space)
    with pytest.raises(DataError, match="v.h5"):
        read_vectors(tmp_path / "v.h5")


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use cannot be removed")
def test_a_current_folder_that_is_gone(tmp_path):
    code = "import os, sys; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); "
    code += "sys.argv = ['karat', 'list', 'models']; from karat.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "the current folder no longer exists" in done.stderr
