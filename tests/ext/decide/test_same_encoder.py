"""Two encoders are identical, equivalent or different, with the cause; fingerprints keep one."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core.predictions import Predictions
from karat.errors import DataError, DefinitionError
from karat.ext.decide.same_encoder import (
    Fingerprint,
    Tasks,
    noise_p,
    probe_texts,
    read_items,
    same,
)

from ...score_data import write_run

ALPHABET = "abcdefghijklmnopqrstuvwxyz ,.?"


def letters(texts):
    """Return unit vectors of the shares of letters."""
    counts = np.array([[text.lower().count(c) + 0.1 for c in ALPHABET] for text in texts])
    return counts / np.linalg.norm(counts, axis=1, keepdims=True)


class Noisy:
    """Letters with noise that differs from call to call."""

    takes = ("text",)

    def __init__(self, seed, size=0.01, shift=0.0):
        self.rng, self.size, self.shift = np.random.default_rng(seed), size, shift

    def encode(self, texts):
        noise = self.size * self.rng.standard_normal((len(texts), len(ALPHABET)))
        return letters(texts) + noise + self.shift


def test_probe_texts_are_varied():
    items = probe_texts()
    assert len(items.values) == len(set(items.values)) == 500
    assert len(set(items.facts.languages) - {""}) == 20
    assert items.facts.lengths.min() == 0 and items.facts.lengths.max() == 3000
    assert (items.facts.roles == "query").sum() > 40
    assert all(
        (items.facts.languages == name).sum() >= 14 for name in set(items.facts.languages) - {""}
    )


def test_an_encoder_is_identical_to_itself():
    found = same(letters, letters)
    assert (found.verdict, found.cause, found.level, found.exit_code) == ("identical", "none", 1, 0)


FAULTS = {
    "scale": lambda texts: 3 * letters(texts),
    "order": lambda texts: np.roll(letters(texts), 1, axis=0),
    "permutation": lambda texts: letters(texts)[:, ::-1],
    "length": lambda texts: letters([" ".join(text.split()[:50]) for text in texts]),
    "truncated": lambda texts: letters(texts)[:, :20],
    "batch": lambda texts: letters(texts) - 0.3 * letters(texts).mean(axis=0),
}


@pytest.mark.parametrize("cause", FAULTS)
def test_a_fault_is_found_and_named(cause):
    found = same(letters, FAULTS[cause])
    assert (found.verdict, found.cause, found.level, found.exit_code) == ("different", cause, 1, 1)


def test_a_missing_prompt_is_found():
    class Prompted:
        prompts = {"query": "search the documents: "}

        def __init__(self, used=True):
            self.used = used

        def encode(self, texts, prompt_name=None):
            prompt = self.prompts[prompt_name] if prompt_name and self.used else ""
            return letters([prompt + text for text in texts])

    assert same(Prompted(), Prompted(used=False)).cause == "queries"


def test_small_errors_are_equivalent_by_their_neighbors():
    found = same(letters, lambda texts: np.round(letters(texts), 5))
    assert (found.verdict, found.cause, found.level) == ("equivalent", "noise", 2)
    assert found.facts["neighbors"]["overlap@10_low"] >= 0.99


def test_large_errors_are_not_settled_by_neighbors():
    rng = np.random.default_rng(0)
    rows = dict(enumerate(rng.standard_normal((300, 8))))
    other = {key: row + 0.2 * rng.standard_normal(8) for key, row in rows.items()}
    found = same(pd.DataFrame(rows).T, pd.DataFrame(other).T, rotations=False)
    assert (found.verdict, found.cause, found.exit_code) == ("undecided", "noise", 3)


def test_own_noise_is_no_difference_but_a_shift_is():
    alarms = [same(Noisy(seed), Noisy(1000 + seed)).verdict != "equivalent" for seed in range(3)]
    assert sum(alarms) <= 1
    assert same(Noisy(1), Noisy(2, shift=0.2)).verdict == "different"


def test_false_alarms_of_the_noise_test():
    # calls have noise of their own that all items share: items are not independent
    rng = np.random.default_rng(0)
    p = [
        noise_p(*np.split(rng.standard_normal((8, 1)) + 0.1 * rng.standard_normal((8, 30)), 2))
        for _ in range(2000)
    ]
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(1 / 35, abs=0.012)


def test_rotated_node_vectors_are_the_same():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 12))
    turned = rows @ np.linalg.qr(rng.standard_normal((12, 12)))[0]
    names = [f"node {i}" for i in range(300)]
    a, b = pd.DataFrame(rows, index=names), pd.DataFrame(turned, index=names)
    found = same(a, b)
    assert (found.verdict, found.cause) == ("equivalent", "rotation")
    assert same(a, b, rotations=False).verdict == "different"


def _vectors(path, matrix):
    rows = (f"n{i} " + " ".join(f"{x:.6f}" for x in row) for i, row in enumerate(matrix))
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def test_unrelated_node_vectors_are_different(tmp_path):
    rng = np.random.default_rng(0)
    a, b = (_vectors(tmp_path / f"{n}.txt", rng.normal(size=(200, 8))) for n in "ab")
    found = same(a, b)
    assert (found.verdict, found.cause, found.level) == ("different", "model", 2)
    c = _vectors(tmp_path / "c.txt", rng.normal(size=(20, 8)))
    assert "200" in same(a, c).notes[0] and "20 ids" in same(a, c).notes[0]


def test_a_server_is_asked_again(tmp_path, monkeypatch):
    """Stored answers of an endpoint do not hide that its model changed."""
    from karat.ext.endpoints.endpoint_encoder import EndpointEncoder

    from ...endpoint_server import serving

    monkeypatch.setenv("KARAT_CACHE", str(tmp_path))
    items = _own_items(tmp_path)
    with serving() as server:
        model = EndpointEncoder(f"{server.url}/v1", "words-small")
        kept = Fingerprint.of(model, items)
        number = server.texts.total()
        assert same(kept, model, items=items).verdict == "identical"
        assert server.texts.total() > number
        server.width = 16
        assert same(kept, model, items=items).verdict == "different"


def test_run_folders_of_one_model(tmp_path):
    """Two runs with the same model name: the flips have the names of the answer."""
    kept = {}
    for folder, wrong in {"one": {1, 2}, "two": {3}}.items():
        answers = ["no" if i in wrong else "yes" for i in range(60)]
        facts = {"answers": "classes", "truths": "classes", "classes": ("no", "yes")}
        keys = [f"k{i}" for i in range(60)]
        stored = Predictions(answers, ["yes"] * 60, key=keys, **facts)
        texts = {**stored.files(), "metadata.json": json.dumps(facts)}
        scores = {"t": [1 - len(wrong) / 60]}
        sizes = {"questions": 60, "train_questions": 240}
        run = write_run(tmp_path / folder, "m", scores, files={("t", 0): texts}, record=sizes)
        kept[folder] = run.folder
    found = same(kept["one"], kept["two"])
    assert (found.verdict, found.level) == ("undecided", 3)
    assert sorted(found.flips["better"]) == ["m (1)", "m (2)", "m (2)"]
    with pytest.raises(DefinitionError, match="same run folder"):
        same(kept["one"], kept["one"])
    with pytest.raises(DefinitionError, match="run folder"):
        same(kept["one"], letters)


def test_rows_of_tables(tmp_path):
    table = pd.DataFrame({"a": np.arange(30), "b": list("xyz") * 10})
    path = tmp_path / "rows.csv"
    table.to_csv(path, index=False)
    found = same("onehot", "onehot", items=read_items(path))
    assert (found.verdict, found.facts["vectors"]["items"]) == ("identical", 30)
    assert found.a != found.b  # equal names are numbered


def test_a_fingerprint_replaces_the_encoder(tmp_path):
    path = Fingerprint.of(letters).save(tmp_path / "letters.json")
    assert path.stat().st_size < 3_000_000
    assert same(path, letters).verdict == "identical"
    assert same(str(path), FAULTS["scale"]).cause == "scale"
    with pytest.raises(DataError, match="other items"):
        same(path, letters, items=_own_items(tmp_path))


def _own_items(folder):
    path = folder / "own.txt"
    path.write_text("\n".join(f"text {i}" for i in range(25)), encoding="utf-8")
    return read_items(path)


@pytest.mark.parametrize("content", ["", "{}", '{"format": "other"}', "[1"])
def test_a_broken_fingerprint_is_refused(tmp_path, content):
    path = tmp_path / "broken.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match="not a fingerprint"):
        same(path, letters)


def test_a_fingerprint_with_a_missing_row_is_refused(tmp_path):
    path = Fingerprint.of(letters).save(tmp_path / "letters.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, "items": content["items"][1:]}), encoding="utf-8")
    with pytest.raises(DataError, match="499 items"):
        Fingerprint.load(path)


def test_too_few_items_are_refused(tmp_path):
    path = tmp_path / "few.txt"
    path.write_text("one\ntwo\n", encoding="utf-8")
    with pytest.raises(DataError, match="at least 20"):
        read_items(path)


def test_predictors_and_unknown_names_are_refused():
    with pytest.raises(DefinitionError, match="predictor"):
        same("random-forest", "onehot")
    with pytest.raises(DefinitionError, match="onehot"):
        same("onehott", "onehot")
    with pytest.raises(DefinitionError, match="rope|margin"):
        same(letters, letters, margin=-1)


def test_public_names():
    assert karat.same is same


def test_flipped_items_are_listed_in_both_directions():
    rows = [
        ("t", "b", "k1", "yes", "no", "yes", "an item"),
        ("t", "a", "k2", "no", "no", "yes", ""),
        ("t", "b", "k3", "yes", "no", "yes", ""),
        ("u", "b", "k4", 2.0, 2.5, 1.98765, ""),
    ]
    columns = ["task", "better", "key", "target", "first", "second", "item"]
    flips = pd.DataFrame(rows, columns=columns)
    found = karat.Same("a", "b", "different", "noise", "", 3, 0.01, flips=flips)
    assert found.flip_lines(2) == [
        "Items that a answers better: 1.",
        "  t, k2: target no, no → yes",
        "Items that b answers better: 3.",
        "  t, k1: target yes, no → yes (an item)",
        "  u, k4: target 2.000, 2.500 → 1.988",
    ]
    assert karat.Same("a", "b", "identical", "none", "", 1, 0.01).flip_lines() == []


SUITE = """
tasks:
  words:
    extends: classification
    dataset: {path: rows.csv, fields: [x], target: y, modality: text}
    metrics: [acc]
  rows:
    extends: classification
    dataset: {path: rows.csv, target: y, kind: classification}
    metrics: [acc]
suites:
  mine: {tasks: [words, rows]}
"""


def test_a_function_runs_only_tasks_with_items_of_the_probe(tmp_path):
    """It declares no modality; the items are texts, so tables are not tried."""
    rows = "".join(
        f"{'abc' if i % 2 else 'xyz'} {i},{'yes' if i % 2 else 'no'}\n" for i in range(60)
    )
    (tmp_path / "rows.csv").write_text("x,y\n" + rows)
    (tmp_path / "mine.yaml").write_text(SUITE)
    tasks = Tasks(suite="mine", output=tmp_path / "runs")
    found = same(letters, letters, every_level=True, tasks=tasks, define=tmp_path / "mine.yaml")
    assert found.tasks["task"].tolist() == ["words"]
    for run in karat.open_runs(tmp_path / "runs"):
        assert {r["task"]: r["status"] for r in run.records()} == {
            "words": "ok",
            "rows": "declined",
        }
