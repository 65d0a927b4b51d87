import json

import numpy as np
import pytest

from karat.errors import MissingExtra
from karat.report import maps
from karat.report.bundle import make_bundle


def kept(sample, truths="classes"):
    facts = {"answers": "classes", "truths": truths, "classes": ["a", "b"]}
    return {"sample.csv": sample, "metadata.json": json.dumps(facts)}


def test_a_map_shows_the_first_two_components_with_places_of_labels(make_run):
    sample = "label,c0,c1,c2\nb,3,0,0\na,-3,4,0\nb,0,-4,0\n"
    (found,) = make_bundle(make_run("m", {"t": [0.5]}, files={("t", 0): kept(sample)}))["maps"]
    assert found == {
        **{"model": 0, "task": 0, "method": "pca", "labels": ["a", "b"]},
        "points": [[3, 0, 1], [-3, 4, 0], [0, -4, 1]],
        "explained": pytest.approx([18 / 50, 32 / 50]),  # squares of 3, 3 and of 4, 4
    }


def test_numbers_are_colours_of_their_own_and_no_label_is_none(make_run):
    sample = "label,c0\n1.5,3\n,1\n7,-4\n"
    run = make_run("m", {"t": [0.5]}, files={("t", 0): kept(sample, "numbers")})
    (found,) = make_bundle(run)["maps"]
    assert found["labels"] is None
    assert found["points"] == [[3, 0, 1.5], [1, 0, None], [-4, 0, 7]]


def test_no_explained_variance_of_truncated_components(make_run):
    names = ",".join(f"c{i}" for i in range(16))
    sample = f"label,{names}\nNA,{','.join('1' * 16)}\nNA,{','.join('2' * 16)}\n"
    (found,) = make_bundle(make_run("m", {"t": [0.5]}, files={("t", 0): kept(sample)}))["maps"]
    assert found["explained"] is None
    assert found["labels"] == ["NA"], "a label, no gap"


def test_rare_labels_are_merged():
    labels = [f"{i:02}" for i in range(40) for _ in range(2 if i < 29 else 1)]
    names, places = maps.color_by(labels)
    assert names == [*(f"{i:02}" for i in range(29)), "other"]
    assert places[:4] == [0, 0, 1, 1] and places[-11:] == [29] * 11


@pytest.mark.parametrize(
    "sample", ["", "label,c0\na,x\n", "c0,c1\n1,2\n", "label,c0\na,inf\n", "label,c0\na,1,2,3\nb\n"]
)
def test_a_damaged_sample_is_left_out_with_a_note(make_run, sample):
    found = make_bundle(make_run("m", {"t": [0.5]}, files={("t", 0): kept(sample)}))
    assert found["maps"] == []
    assert found["cut"][0].startswith("m on t")


def test_nothing_outside_a_run_folder_is_read(make_run, tmp_path):
    run = make_run("m", {"t": [0.5]}, files={("t", 0): kept("label,c0\na,1\n")})
    secret = tmp_path / "secret.csv"
    secret.write_text("label,c0\nsecret,1\n")
    sample = run.folder / "predictions" / "t" / "0" / "sample.csv"
    sample.unlink()
    sample.symlink_to(secret)
    found = make_bundle(run)
    assert found["maps"] == [] and "secret" not in str(found)


def test_room_is_for_the_best_models_first(make_run, monkeypatch):
    sample = kept("label,c0,c1\na,1,2\nb,2,1\n")
    runs = [make_run(f"m{i}", {"t": [1 - i / 10]}, files={("t", 0): sample}) for i in range(3)]
    monkeypatch.setattr(maps, "MAPS", 200)
    found = make_bundle(runs)
    assert [each["model"] for each in found["maps"]] == [0]
    assert any("2 maps" in note for note in found["cut"])


def test_umap_must_be_installed(make_run, monkeypatch):
    monkeypatch.setattr(maps, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="umap-learn"):
        make_bundle(make_run("m", {"t": [0.5]}), umap=True)


@pytest.mark.slow
def test_umap_keeps_neighborhoods_and_is_reproducible(make_run):
    pytest.importorskip("umap")
    rng = np.random.default_rng(0)
    far = np.repeat([[0.0] * 4, [50.0] * 4], 20, axis=0) + rng.normal(size=(40, 4))
    rows = [f"{'ab'[i // 20]},{','.join(f'{v:.4f}' for v in row)}" for i, row in enumerate(far)]
    sample = "\n".join(["label,c0,c1,c2,c3", *rows, ""])
    run = make_run("m", {"t": [0.5]}, files={("t", 0): kept(sample)})
    pca, umap = make_bundle(run, umap=True)["maps"]
    assert (pca["method"], umap["method"]) == ("pca", "umap")
    points = np.array(umap["points"])[:, :2]
    within = max(np.ptp(points[:20], axis=0).max(), np.ptp(points[20:], axis=0).max())
    assert np.linalg.norm(points[:20].mean(axis=0) - points[20:].mean(axis=0)) > within
    assert make_bundle(run, umap=True)["maps"][1] == umap
