"""Vector files that cannot be read: refused before any job, unless others can be evaluated."""

import numpy as np
import pandas as pd
import pytest

import karat
from karat.errors import KaratWarning
from karat.models import vector_files


@pytest.fixture
def broken(tmp_path):
    np.savez(tmp_path / "broken.npz", ids=np.ones((2, 2)), vectors=np.ones((2, 3)))
    return str(tmp_path / "broken.npz")


@pytest.fixture
def task():
    names = [f"e{i}" for i in range(20)]
    frame = pd.DataFrame({"name": names, "y": [i % 2 for i in range(20)]})
    data = karat.Dataset.from_columns(
        frame, ["name"], "y", name="names", modality="entity", kind="classification"
    )
    return karat.Task("names", data, metrics=["acc"], split={"use": "kfold", "folds": 2})


def test_a_broken_file_alone_is_refused_before_any_job(broken, tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("name,y\n" + "".join(f"e{i},{i % 2}\n" for i in range(20)))
    text = "datasets:\n  d: {path: t.csv, target: y, modality: entity, fields: [name]}\n"
    text += "tasks:\n  t: {extends: classification, dataset: d}\nsuites:\n  s: {tasks: [t]}\n"
    (tmp_path / "s.yaml").write_text(text)
    done = cli("run", "s", "--define", "s.yaml", "-m", broken, "-o", "out")
    assert done.code == 2 and 'broken.npz: not an .npz with "ids"' in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("large", [False, True])
def test_a_broken_file_next_to_another_model_is_a_failed_row(
    broken, task, tmp_path, large, monkeypatch
):
    names = [f"e{i}" for i in range(20)]
    np.savez(tmp_path / "good.npz", ids=np.array(names), vectors=np.eye(20))
    models = [broken] if large else [broken, str(tmp_path / "good.npz")]
    if large:  # it is not read before jobs
        monkeypatch.setattr(vector_files, "SMALL_FILE", 10)
    with pytest.warns(KaratWarning, match="broken"):
        runs = karat.evaluate(models, [task], output=tmp_path / "out")
    assert [record["status"] for record in runs[0].records()] == ["failed", "failed"]
    assert all(record["status"] == "ok" for run in runs[1:] for record in run.records())
