"""Details of predictions, maps of vectors, compact JSON and budgets."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.core.predictions import Predictions
from karat.errors import MissingExtra
from karat.reporting import details as module
from karat.reporting.details import (
    MAX_CLASSES,
    MAX_POINTS,
    MAX_ROWS,
    PageIndex,
    calibration,
    clean,
    compact,
    confusion,
    details,
    scatter,
    size,
    to_json,
    worst_rows,
)
from karat.reporting.page import make_bundle
from karat.results.load import FrozenRun

FACTS = {"answers": "classes", "truths": "classes", "classes": ["a", "b"]}


def labels(predictions, truth, probabilities=None, classes=("a", "b"), **more):
    return Predictions(
        predictions=np.array(list(predictions), dtype=object),
        target=np.array(list(truth), dtype=object),
        classes=classes,
        probabilities=None if probabilities is None else np.array(probabilities),
        **{"answers": "classes", "truths": "classes", **more},
    )


def files(*given):
    return {**labels(*given).files(), "metadata.json": json.dumps(FACTS)}


@pytest.fixture
def run(make_run):
    t = files("aa", "ab", [[0.9, 0.1], [0.8, 0.2]]), files("bb", "bb", [[0.25, 0.75]] * 2)
    stored = {("t", 0): t[0], ("t", 1): t[1], ("u", 0): files("ab", "bb")}
    return make_run("m", {"t": [0.5, 1.0], "u": [0.5]}, files=stored)


def test_details_are_of_all_folds_of_a_task(run):
    found = make_bundle(run)
    assert list(found["details"]) == ["0", "1"]
    (entry,) = found["details"]["0"]
    assert entry["model"] == 0
    assert entry["confusion"] == {"classes": ["a", "b"], "counts": [[1, 0], [1, 2]]}
    assert entry["calibration"] == [
        {"confidence": 0.75, "accuracy": 1, "count": 2},
        {"confidence": 0.8, "accuracy": 0, "count": 1},
        {"confidence": 0.9, "accuracy": 1, "count": 1},
    ]
    assert entry["rows"][0] == [0, 1, "b", "a", 0.8]
    assert found["details"]["1"][0]["calibration"] is None
    assert found["cut"] == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("predictions.csv", b'a,b,predictions,truth\n"0.9'),
        ("predictions.csv", b"\xff\xfe\x00"),
        ("predictions.csv", b""),
        ("predictions.csv", b"predictions,truth\na,b,c\n"),
        ("metadata.json", b"{"),
        ("metadata.json", b"[]"),
        ("metadata.json", None),
    ],
)
def test_a_damaged_fold_is_left_out_with_a_note(run, name, content):
    file = run.folder / "predictions" / "t" / "0" / name
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    found = make_bundle(run)
    (entry,) = found["details"]["0"]
    assert entry["confusion"] == {"classes": ["a", "b"], "counts": [[0, 0], [0, 2]]}
    (note,) = found["cut"]
    assert note.startswith("m on t, fold 0")


def test_a_run_without_predictions_has_no_details(make_run):
    found = make_bundle(make_run("m", {"t": [0.5]}))
    assert (found["details"], found["cut"]) == ({}, [])


def test_room_is_shared_the_best_model_of_every_task_first(make_run, monkeypatch):
    stored = {(task, 0): files("ab", "bb") for task in "tuv"}
    runs = [make_run(f"m{i}", dict.fromkeys("tuv", [1 - i / 10]), files=stored) for i in range(4)]
    whole = make_bundle(runs)
    assert {task: len(each) for task, each in whole["details"].items()} == {"0": 4, "1": 4, "2": 4}
    one = size(whole["details"]["0"][0])
    monkeypatch.setattr(module.make_details, "__defaults__", (5 * one,))
    found = make_bundle(runs)
    shown = {task: [each["model"] for each in rows] for task, rows in found["details"].items()}
    assert shown == {"0": [0, 1], "1": [0, 1], "2": [0]}
    assert any("7 pairs" in note for note in found["cut"])


def test_the_number_of_bytes_read_is_limited(run, monkeypatch):
    big = (run.folder / "predictions" / "t" / "0" / "predictions.csv").stat().st_size
    monkeypatch.setattr(module, "READ_EACH", big)
    found = make_bundle(run)
    assert found["details"]["0"][0]["confusion"]["counts"] == [[1, 0], [1, 0]]
    assert any("m on t" in note and "1 fold" in note for note in found["cut"])


def numbers(predictions, truth, **more):
    return Predictions(predictions=np.array(predictions), target=np.array(truth), **more)


@pytest.mark.parametrize(
    "folds, counts",
    [
        # summed over folds: target a once as a; target b twice as a, twice as b
        ([labels("aab", "abb"), labels("ba", "bb")], [[1, 0], [2, 2]]),
        # a predicted label without a class gets its own row
        ([labels("ca", "aa")], [[1, 0, 1], [0, 0, 0], [0, 0, 0]]),
        ([labels("ab", "aa", weight=np.array([3.0, 2.0]))], [[3, 2], [0, 0]]),
    ],
)
def test_confusion(folds, counts):
    found = confusion(list(enumerate(folds)))
    assert found["classes"] == list("abc"[: len(counts)])
    assert found["counts"].tolist() == counts


def test_rare_classes_are_merged():
    # class 00 has 40 questions, 01 has 39, …: the last 11 of 40 are merged
    names = [f"{i:02}" for i in range(40)]
    truth = [name for i, name in enumerate(names) for _ in range(40 - i)]
    found = confusion([(0, labels(["39"] * len(truth), truth, classes=tuple(names)))])
    assert len(found["classes"]) == MAX_CLASSES
    assert found["classes"] == [*names[:29], "other"]
    assert found["counts"][:, :-1].sum() == 0
    assert found["counts"][:, -1].tolist() == [*range(40, 11, -1), sum(range(1, 12))]
    # a class called "other" is not mixed up with the others
    truth = ["other"] * 9 + names
    found = confusion([(0, labels(truth, truth, classes=(*names, "other")))])
    assert found["classes"][-2:] == ["other", "other classes"]
    assert found["counts"][-2:, -2:].tolist() == [[9, 0], [0, 12]]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1))
def test_no_question_is_lost(pairs):
    answers = labels(*zip(*[(f"{a}", f"{b}") for a, b in pairs], strict=True), classes=())
    found = confusion([(0, answers)])
    assert found["counts"].sum() == len(pairs)
    assert len(found["classes"]) == len(found["counts"]) <= MAX_CLASSES
    diagonal = sum(a == b for a, b in pairs)
    assert np.trace(found["counts"]) >= diagonal  # what is gathered may only add to it


@pytest.mark.parametrize(
    "answers, bins",
    [
        (
            labels("aaba", "abbb", [[0.92, 0.08], [0.98, 0.02], [0.35, 0.65], [0.5, 0.5]]),
            # 0.5 wrong; 0.65 right; 0.92 right and 0.98 wrong
            [(0.5, 0.0, 1), (0.65, 1.0, 1), (0.95, 0.5, 2)],
        ),
        # 1 is in the last bin, NaN in none
        (labels("aa", "ab", [[1.0, 0.0], [np.nan, 0.5]]), [(1.0, 1.0, 1)]),
        # the probability of the prediction, even if another one is higher
        (labels("b", "b", [[0.8, 0.2]]), [(0.2, 1.0, 1)]),
    ],
)
def test_calibration(answers, bins):
    found = [tuple(each.values()) for each in calibration([(0, answers)])]
    assert found == [pytest.approx(each) for each in bins]


def test_without_probabilities_in_every_fold_there_is_no_calibration():
    confident = labels("a", "a", [[0.9, 0.1]])
    assert calibration([(0, confident), (1, labels("a", "a"))]) is None
    assert calibration([]) is None


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=200))
def test_bins_hold_every_answer_once(rows):
    chances = [[p, 1 - p] for p, _ in rows]
    truth = ["a" if right else "b" for _, right in rows]
    found = calibration([(0, labels(["a"] * len(rows), truth, chances))])
    assert sum(each["count"] for each in found) == len(rows)
    right = sum(each["accuracy"] * each["count"] for each in found)
    assert right == pytest.approx(sum(right for _, right in rows))
    assert all(0 <= each["confidence"] <= 1 for each in found)
    assert len(found) <= 10


def test_scatter_is_sampled_evenly():
    assert scatter([(0, numbers([2.0, np.nan], [1.0, 5.0])), (1, numbers([4.0], [3.0]))]) == [
        [1.0, 2.0],
        [3.0, 4.0],
    ]
    many = scatter([(0, numbers(np.arange(1000.0), np.arange(1000.0)))])
    assert len(many) == MAX_POINTS
    assert (many[0], many[-1]) == ([0.0, 0.0], [999.0, 999.0])
    assert scatter([(0, labels("a", "a"))]) is None


def test_worst_labels_are_sorted_by_confidence():
    chances = [[0.9, 0.1, 0], [0.6, 0.4, 0], [0.45, 0.35, 0.2], [0.7, 0.3, 0], [0.4, 0.3, 0.3]]
    answers = labels("aaaaa", "ababa", chances, classes=("a", "b", "c"))
    rows = worst_rows([(3, answers)], "classification")
    assert [row[:4] for row in rows] == [
        [3, 3, "b", "a"],  # wrong at 0.7
        [3, 1, "b", "a"],  # wrong at 0.6
        [3, 4, "a", "a"],  # right at 0.4
        [3, 2, "a", "a"],  # right at 0.45; 0.9 is not listed
    ]
    assert [row[4] for row in rows] == pytest.approx([0.7, 0.6, 0.4, 0.45])
    # without probabilities only wrong labels are listed
    rows = worst_rows([(0, labels("ab", "aa"))], "classification")
    assert rows == [[0, 1, "a", "b", None]]
    # long labels are cut
    (row,) = worst_rows([(0, labels(["b" * 10_000], ["a" * 10_000]))], "classification")
    assert max(len(text) for text in row[2:4]) == 80


def test_numbers_are_sorted_by_distance_or_distance_of_ranks():
    answers = numbers([1.0, 2.0, 30.0], [1.5, 5.0, 3.0])
    regression = worst_rows([(0, answers)], "regression")
    assert [row[1] for row in regression] == [2, 1, 0]  # 27, 3, 0.5 apart
    similarity = worst_rows([(0, answers)], "similarity")
    assert [row[1] for row in similarity] == [1, 2]  # ranks 1 2 3 against 1 3 2


def test_items_are_sorted_by_the_rank_of_the_correct_one():
    ranks = {"rank": np.array([7.0, 1.0]), "candidates": np.array([9, 9])}
    answers = labels("xy", "uy", classes=(), answers="items", truths="items", **ranks)
    assert worst_rows([(0, answers)], "analogy") == [[0, 0, "u", "x", None]]


def test_worst_rows_have_row_numbers_of_the_dataset():
    answers = labels(["b"] * 80, ["a"] * 80, question=np.arange(100, 180))
    rows = worst_rows([(0, answers), (1, answers)], "classification")
    assert len(rows) == MAX_ROWS
    assert [row[:2] for row in rows] == [[0, n] for n in range(100, 150)]


def test_clusters_and_empty_folds_have_no_details():
    clusters = labels([0, 1], "ab", classes=(), answers="clusters")
    nothing = {"confusion": None, "calibration": None, "scatter": None, "rows": []}
    assert details([(0, clusters)], "clustering") == nothing
    assert details([(0, labels([], []))], "classification")["rows"] == []


def kept(sample, truths="classes"):
    return {"sample.csv": sample, "metadata.json": json.dumps({**FACTS, "truths": truths})}


SIXTEEN = [",".join(f"c{i}" for i in range(16)), ",".join("1" * 16), ",".join("2" * 16)]


@pytest.mark.parametrize(
    ("sample", "truths", "expected"),
    [
        # the first two components; variances are the squares of 3, 3 and of 4, 4
        (
            "label,c0,c1,c2\nb,3,0,0\na,-3,4,0\nb,0,-4,0\n",
            "classes",
            {"labels": ["a", "b"], "points": [[3, 0, 1], [-3, 4, 0], [0, -4, 1]]}
            | {"model": 0, "task": 0, "method": "pca", "explained": [18 / 50, 32 / 50]},
        ),
        # numbers are colors, and an empty label is none
        (
            "label,c0\n1.5,3\n,1\n7,-4\n",
            "numbers",
            {"labels": None, "points": [[3, 0, 1.5], [1, 0, None], [-4, 0, 7]]},
        ),
        # no explained variance if components were truncated; the label NA is not missing
        (
            "label,{}\nNA,{}\nNA,{}\n".format(*SIXTEEN),
            "classes",
            {"labels": ["NA"], "explained": None},
        ),
    ],
)
def test_maps(make_run, sample, truths, expected):
    run = make_run("m", {"t": [0.5]}, files={("t", 0): kept(sample, truths)})
    (found,) = make_bundle(run)["maps"]
    assert {key: found[key] for key in expected} == expected


def test_rare_labels_are_merged():
    labels = [f"{i:02}" for i in range(40) for _ in range(2 if i < 29 else 1)]
    names, places = module.color_by(labels)
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
    monkeypatch.setattr(module, "MAPS", 200)
    found = make_bundle(runs)
    assert [each["model"] for each in found["maps"]] == [0]
    assert any("2 maps" in note for note in found["cut"])


def test_umap_must_be_installed(make_run, monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="umap-learn"):
        make_bundle(make_run("m", {"t": [0.5]}), umap=True)


MAPS_TWICE = """
import json, sys
from karat import open_runs
from karat.reporting.page import make_bundle
print(json.dumps([make_bundle(open_runs(sys.argv[1]), umap=True)["maps"] for _ in range(2)]))
"""


@pytest.mark.slow
def test_umap_keeps_neighborhoods_and_is_reproducible(make_run, python):
    pytest.importorskip("umap")
    rng = np.random.default_rng(0)
    far = np.repeat([[0.0] * 4, [50.0] * 4], 6, axis=0) + rng.normal(size=(12, 4))
    rows = [f"{'ab'[i // 6]},{','.join(f'{v:.4f}' for v in row)}" for i, row in enumerate(far)]
    sample = "\n".join(["label,c0,c1,c2,c3", *rows, ""])
    run = make_run("m", {"t": [0.5]}, files={("t", 0): kept(sample)})
    # UMAP compiles for half a minute, and runs a second on so few points without compiling
    done = python("-c", MAPS_TWICE, run.folder, env={"NUMBA_DISABLE_JIT": "1"})
    first, second = json.loads(done.stdout)
    pca, umap = first
    assert (pca["method"], umap["method"]) == ("pca", "umap")
    points = np.array(umap["points"])[:, :2]
    within = max(np.ptp(points[:6], axis=0).max(), np.ptp(points[6:], axis=0).max())
    assert np.linalg.norm(points[:6].mean(axis=0) - points[6:].mean(axis=0)) > within
    assert first == second


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.123456789, 0.123457),
        (1234567.8, 1234570),
        (-0.0, 0),
        (float("inf"), None),
        (np.float64("nan"), None),
        (np.int64(3), 3),
        (np.array([[1.0, np.nan]]), [[1, None]]),
        (True, True),
        ({1: (2.5,)}, {"1": [2.5]}),
    ],
)
def test_values_become_short_ones(value, expected):
    found = compact(value)
    assert found == expected and type(found) is type(expected)


@given(st.text() | st.lists(st.text()) | st.dictionaries(st.text(), st.floats()))
def test_what_is_written_reads_back_and_ends_no_script(value):
    short = compact(value)
    text = to_json(short)
    assert json.loads(text) == short
    assert not {"<", "\u2028", "\u2029"} & set(text)
    assert size(short) == len(text.encode())


@given(st.text(alphabet=st.characters()))
def test_any_text_can_be_written_and_whole_ones_stay(text):
    clean(text).encode()
    if not any("\ud800" <= sign <= "\udfff" for sign in text):
        assert clean(text) == text
    assert clean("\ud83d\ude00!\ud83d") == "\U0001f600!\ufffd"


@given(st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6))))
def test_rounds_name_every_pair_once_and_no_task_waits_for_another(pairs):
    shown = PageIndex([], [], [])
    shown.__dict__["done"] = dict.fromkeys(pairs)
    order = list(shown.rounds())
    assert sorted(order) == sorted(pairs)
    for task in {task for task, _ in pairs}:
        models = [model for t, model in order if t == task]
        assert models == sorted(models), "the best first"
    turns = [sum(t == task for t, _ in order[:i]) for i, (task, _) in enumerate(order)]
    assert turns == sorted(turns), "nobody has a second turn before all had the first"


def test_a_page_reads_a_run_once(make_run):
    run = make_run("m", {"t": [0.5, 0.7]})
    still = FrozenRun(run.folder)
    assert len(still.records()) == 2
    assert len(still.scores()) == 2
    (run.folder / "jobs" / "t.1.json").unlink()
    run.finish()
    assert (len(still.records()), len(still.scores()), len(run.records())) == (2, 2, 1)
    assert make_bundle(run)["folds"] == [[[0.5]]], "another page sees what is there now"


# -- items ----------------------------------------------------------------------------------


def with_items(
    make_run, model, keys, sample=None, text="key,text,characters\nk1,one,3\nk2,two,3\n"
):
    answers = labels("aa", "bb", key=np.array(keys, dtype=object))
    stored = {**answers.files(), "metadata.json": json.dumps(FACTS)}
    facts = {"metrics": ["acc"], "item_table": {"file": "items/t.csv.gz", "rows": 2, "of": 2}}
    stored |= {} if sample is None else {"sample.csv": sample}
    made = make_run(model, {"t": [0.0]}, task=facts, files={("t", 0): stored})
    (made.folder / "items").mkdir()
    (made.folder / "items" / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    return made


def test_worst_predictions_name_their_items():
    answers = labels("ab", "ba", [[0.7, 0.3], [0.2, 0.8]], key=["x", "007"])
    rows = worst_rows([(2, answers)], "classification")
    assert [row[:2] for row in rows] == [[2, "007"], [2, "x"]]


def test_texts_of_items_are_stored_once_for_all_models(make_run):
    runs = [with_items(make_run, f"m{i}", keys) for i, keys in enumerate((["k1", "k2"],) * 2)]
    first, second = make_bundle(runs)["details"]["0"]
    assert (first["items"], second["items"]) == ({"k1": "one", "k2": "two"}, {})
    assert [row[1] for row in second["rows"]] == ["k1", "k2"]


def test_texts_that_had_no_room_are_given_with_the_next_model(make_run):
    texts = module.ItemTexts(20)
    run = with_items(make_run, "m", ["k1", "k2"])
    assert texts.new(run, "t", 0, ["k1", "k3"]) == {"k1": "one"}
    assert texts.new(run, "t", 0, ["k1", "k2"]) == {"k1": "one", "k2": "two"}
    texts.shown(0, {"k1": "one"})
    assert texts.new(run, "t", 0, ["k1", "k2"]) == {"k2": "two"}
    assert texts.new(run, "t", 1, ["k1"]) == {"k1": "one"}


def test_a_damaged_item_table_leaves_the_keys(make_run):
    run = with_items(make_run, "m", ["k1", "k2"])
    (run.folder / "items" / "t.csv.gz").write_bytes(b"?")
    (entry,) = make_bundle(run)["details"]["0"]
    assert entry["items"] == {} and [row[1] for row in entry["rows"]] == ["k1", "k2"]


def test_points_of_a_map_name_their_items(make_run):
    sample = "label,c0,c1,key\na,1,2,k2\nb,2,1,k1\n"
    runs = [with_items(make_run, f"m{i}", ["k1", "k2"], sample) for i in range(2)]
    first, second = make_bundle(runs)["maps"]
    assert first["keys"] == second["keys"] == ["k2", "k1"]
    assert (first["items"], second["items"]) == ({"k2": "two", "k1": "one"}, {})
    assert first["points"] == [[1, 2, 0], [2, 1, 1]]
