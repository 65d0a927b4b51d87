"""CARTE: missing requirements, and the real network if its packages are installed."""

import importlib.util
import pickle
import struct
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import PowerTransformer

import karat
from karat.errors import ContractError, DataError, Declined, DefinitionError, MissingExtra
from karat.ext.models import carte
from karat.ext.models.carte import (
    ADDRESS,
    FILE,
    CarteEncoder,
    PowerNumbers,
    RowGraphs,
    find_fasttext,
)
from karat.models.adapters import adapt
from karat.models.model_identity import object_identity
from karat.models.out_of_fold import OutOfFold

NEEDED = ("torch", "torch_geometric", "torcheval", "fasttext", "carte_ai")
installed = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason='needs pip install "karat[carte]" and pip install --no-deps carte-ai==0.0.26',
)


@pytest.fixture(autouse=True)
def no_vectors(monkeypatch, tmp_path):
    """Hide the vectors of this machine."""
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    for name in ("KARAT_FASTTEXT", "KARAT_DATA"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def all_installed(monkeypatch):
    monkeypatch.setattr(carte, "check_installed", lambda: None)


MAGIC = 793712314


def file_of(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<iii", MAGIC, 12, 300) + b"words")
    return path


def test_missing_vectors_decline_with_instructions():
    with pytest.raises(Declined) as caught:
        find_fasttext(None, 300)
    message = str(caught.value)
    assert ADDRESS == "https://dl.fbaipublicfiles.com/fasttext/vectors-crawl/cc.en.300.bin.gz"
    for part in (FILE, ADDRESS, "4.2 GB", "KARAT_FASTTEXT", "hi-paris/fastText", "$KARAT_DATA"):
        assert part in message
    # a table shows the first 200 characters
    assert ADDRESS in message[:200] and "KARAT_FASTTEXT" in message[:200]


@pytest.mark.parametrize("inside", [FILE, f"fasttext/{FILE}"])
@pytest.mark.parametrize("place", ["KARAT_DATA", "KARAT_CACHE"])
def test_vectors_are_found_in_the_data_folders(monkeypatch, tmp_path, place, inside):
    file = file_of(tmp_path / "second" / inside)
    folders = {"KARAT_DATA": f"{tmp_path / 'first'}:{tmp_path / 'second'}"}
    monkeypatch.setenv(place, folders.get(place, str(tmp_path / "second")))
    monkeypatch.setattr("os.pathsep", ":")
    assert find_fasttext(None, 300) == file


def test_order_of_the_search_for_vectors(monkeypatch, tmp_path):
    given, set_by_env, found = (file_of(tmp_path / name / FILE) for name in "abc")
    monkeypatch.setenv("KARAT_DATA", str(found.parent))
    assert find_fasttext(None, 300) == found
    monkeypatch.setenv("KARAT_FASTTEXT", str(set_by_env))
    assert find_fasttext(None, 300) == set_by_env
    assert find_fasttext(str(given), 300) == given


def test_a_missing_named_file_is_not_replaced(monkeypatch, tmp_path):
    monkeypatch.setenv("KARAT_DATA", str(file_of(tmp_path / FILE).parent))
    with pytest.raises(Declined, match="^fasttext: .*gone.bin"):
        find_fasttext(str(tmp_path / "gone.bin"), 300)
    monkeypatch.setenv("KARAT_FASTTEXT", str(tmp_path / "gone.bin"))
    with pytest.raises(Declined, match="^KARAT_FASTTEXT: .*gone.bin"):
        find_fasttext(None, 300)


def test_files_that_are_not_the_right_ones(tmp_path):
    for name, content, why in (
        ("small.bin", struct.pack("<iii", MAGIC, 12, 100), "300 .* 100"),
        ("other.bin", struct.pack("<iii", 1, 12, 300), "binary format"),
        ("packed.bin.gz", b"\x1f\x8b" + bytes(20), "gunzip"),
        ("short.bin", b"\x3a", "binary format"),
        ("cc.en.300.vec", b"2000000 300\nthe 0.1 0.2", "binary format"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(Declined, match=why):
            find_fasttext(str(tmp_path / name), 300)


@pytest.mark.parametrize(
    ("module", "error", "line"),
    [
        *((name, MissingExtra, "karat[carte]") for name in NEEDED[:-1]),
        ("carte_ai", Declined, "pip install --no-deps carte-ai==0.0.26"),
    ],
)
def test_a_missing_package_is_reported_with_its_install_command(monkeypatch, module, error, line):
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == module else object()
    )
    with pytest.raises(error) as caught:
        CarteEncoder().fit(pd.DataFrame({"x": [1.0]}))
    assert line in str(caught.value)
    assert CarteEncoder().unavailable() == str(caught.value)


def test_without_vectors_the_row_is_declined_and_the_run_goes_on(
    all_installed, two_classes, tmp_path
):
    models = {
        "carte": CarteEncoder(),
        "folds": OutOfFold(CarteEncoder()),
        "named": OutOfFold("karat.ext.models.carte:CarteEncoder", {"finetune": False}),
        "onehot": "onehot",
    }
    runs = karat.evaluate(models, two_classes(), output=tmp_path)
    assert [{r["status"] for r in run.records()} for run in runs] == [*[{"declined"}] * 3, {"ok"}]
    for run in runs[:3]:
        (record,) = run.records()
        assert ADDRESS in record["info"] and "KARAT_FASTTEXT" in record["info"]
    board = karat.leaderboard(runs)
    assert board["declined"].to_dict() == {"carte": 1, "folds": 1, "named": 1, "onehot": 0}
    assert board["failed"].sum() == 0


def test_with_a_file_of_vectors_nothing_is_missing(all_installed, monkeypatch, tmp_path):
    path = str(file_of(tmp_path / "own.bin"))
    monkeypatch.setattr(carte, "packaged_weights", lambda: tmp_path)
    assert adapt(CarteEncoder(fasttext=path)).unavailable == ""
    assert "gone.pt" in adapt(CarteEncoder(fasttext=path, pretrained="gone.pt")).unavailable


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task", "ranking"),
        ("num_model", 0),
        ("num_layers", 0),
        ("batch_size", 1.5),
        ("max_epoch", 0),
        ("early_stopping_patience", -1),
        ("val_size", 1.0),
    ],
)
def test_a_wrong_parameter_stops_before_anything_runs(
    all_installed, monkeypatch, two_classes, tmp_path, name, value
):
    encoder = CarteEncoder(fasttext=str(file_of(tmp_path / "own.bin")), **{name: value})
    monkeypatch.setattr(carte, "packaged_weights", lambda: tmp_path)
    with pytest.raises(DefinitionError, match=f"{name} .*got .?{value}"):
        karat.evaluate(encoder, two_classes(), output=tmp_path)


def test_ordinary_numbers_are_made_normal_as_carte_does_it():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.exponential(size=60), "b": rng.normal(5, 2, size=60)})
    table.iloc[3, 0] = np.nan
    ours = PowerNumbers().fit(table).transform(table)
    theirs = PowerTransformer().fit_transform(table)
    assert np.array_equal(ours.to_numpy(), theirs, equal_nan=True)


@pytest.mark.parametrize(
    "values",
    [
        [1e8 + i for i in range(20)],
        [3.0] * 20,
        [1e100, -1e100, *range(18)],
        [2000.0 + i % 10 for i in range(20)],
        [0.0, 1.0] * 10,
        [7.0, *[np.nan] * 19],
    ],
)
def test_extraordinary_numbers_stay_finite(values):
    table = pd.DataFrame({"a": np.array(values, dtype=float)})
    normal = PowerNumbers().fit(table)
    found = normal.transform(table)["a"]
    assert np.array_equal(found.isna(), table["a"].isna())
    assert np.isfinite(found.dropna()).all()
    far = normal.transform(pd.DataFrame({"a": [1e100, -1e100, 0.0]}))["a"]
    assert (far.abs() <= 1e6).all()


def test_columns_are_numbers_or_small_letters():
    table = pd.DataFrame(
        {
            "n": [1.5, np.inf, np.nan],
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "empty": [np.nan] * 3,
            "time": pd.to_timedelta([1, 2, None], unit="min"),
            "word": ["İzmir\nWine", None, ""],
            "day": pd.to_datetime(["2024-02-01 00:00", None, "2024-02-02 10:30"]),
            "flag": [True, False, True],
            "kind": pd.Categorical(["A", None, "B"]),
            "mixed": [1.0, "Two", b"x"],
        }
    )
    graphs = RowGraphs().fit(table)
    assert graphs.names["number"] == ["n", "whole", "time"]
    assert graphs._numbers(table)["time"].tolist()[:2] == [60.0, 120.0]
    assert np.isnan(graphs._numbers(table)["n"].iloc[1])
    texts = graphs._texts(table)
    assert set(map(str, texts.dtypes)) == {"object"}
    assert texts["word"].tolist() == ["İzmir wine".lower(), None, ""]
    assert texts["day"].tolist() == ["2024-02-01", None, "2024-02-02 10:30:00"]
    assert texts["flag"].tolist() == ["true", "false", "true"]
    assert texts["kind"].tolist() == ["a", None, "b"]
    assert texts["mixed"].tolist() == ["1", "two", "b'x'"]


def test_what_a_column_holds_is_decided_in_fit():
    graphs = RowGraphs().fit(pd.DataFrame({"n": [1.0, 2.0], "w": ["a", "b"]}))
    test = pd.DataFrame({"w": [3.0, np.nan], "n": ["5", "five"], "new": [1, 2]})
    assert graphs._texts(test)["w"].tolist() == ["3", None]
    assert np.array_equal(graphs._numbers(test)["n"], [5.0, np.nan], equal_nan=True)


def test_columns_that_look_the_same_stay_apart():
    odd = pd.DataFrame([["x"] * 4], columns=["a\nb", "a b", 1, "1"])
    assert RowGraphs().fit(odd).names["text"] == ["a b", "a b ", "1", "1 "]


ROWS = 60
FAST = {"max_epoch": 3, "random_state": 1}


def table_of(rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    side = rng.integers(0, 2, rows)
    table = pd.DataFrame(
        {
            "name": np.where(side, "Château Rouge", "Villa Bianca"),
            "note": rng.choice(["dark and dry", "light and sweet", "İstanbul cellar"], rows),
            "Age": side * 3.0 + rng.normal(size=rows),
            "price paid": rng.exponential(size=rows),
        }
    )
    table.iloc[::7, 1] = None
    table.iloc[::5, 2] = np.nan
    return table, side * 2.0 + rng.normal(size=rows) / 4


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """Real vectors of the right shape, learned on a few sentences: the file is right, not good."""
    library = pytest.importorskip("fasttext")
    folder = tmp_path_factory.mktemp("words")
    corpus = folder / "corpus.txt"
    table, _ = table_of()
    lines = [" ".join(map(str, row)).lower() for row in table.itertuples(index=False)]
    corpus.write_text("\n".join([*lines, "name note Age price paid " * 20] * 5), encoding="utf-8")
    options = {"dim": 300, "minCount": 1, "bucket": 2000, "thread": 1, "verbose": 0, "epoch": 2}
    library.train_unsupervised(str(corpus), **options).save_model(str(folder / "words.bin"))
    return str(folder / "words.bin")


@pytest.fixture
def encoder(words, monkeypatch):
    monkeypatch.setenv("KARAT_FASTTEXT", words)

    def make(**options):
        return CarteEncoder(**{**FAST, **options})

    return make


@installed
def test_graphs_are_those_of_carte(words):
    table, y = table_of()
    table["note"] = table["note"].fillna("none").str.replace("İ", "I")
    vectors = carte.load_fasttext(carte.Path(words))
    ours = RowGraphs().fit(table).transform(table, vectors, y)
    made = carte.carte_module("carte_table_to_graph").Table2GraphTransformer()
    made.lm_model_ = vectors
    theirs = made.fit(table.astype({"name": object, "note": object}), y).transform(
        table.astype({"name": object, "note": object})
    )
    assert len(ours) == len(theirs) == ROWS
    for a, b in zip(ours, theirs, strict=True):
        assert a.x.shape[1] == 300 and (a.edge_index == b.edge_index).all()
        assert np.allclose(a.x, b.x, atol=1e-6) and np.allclose(a.edge_attr, b.edge_attr)
        assert a.y.tolist() == b.y.tolist()


@installed
def test_a_row_is_a_center_and_a_leaf_per_cell(words):
    """Worked out by hand: one word, one number at its mean, one missing cell."""
    table = pd.DataFrame({"w": ["Red", None], "n": [1.0, 1.0], "gone": ["x", None]})
    vectors = carte.load_fasttext(carte.Path(words))
    first, second = RowGraphs().fit(table).transform(table, vectors)
    red, column = (vectors.get_sentence_vector(text) for text in ("red", "w"))
    assert first.num_nodes == 4 and second.num_nodes == 2
    assert np.allclose(first.x[1], red) and np.allclose(first.x[3], 0)
    assert np.allclose(first.edge_attr[0], column) and np.allclose(first.edge_attr[3:], 1)
    assert first.edge_index.tolist() == [[0, 0, 0, 1, 2, 3], [1, 2, 3, 1, 2, 3]]
    assert np.allclose(first.x[0], (first.edge_attr[:3] * first.x[1:]).mean(dim=0))


@installed
def test_the_vector_is_the_last_hidden_layer(encoder, words):
    """The last layer on top of the 75 numbers is what CARTE's own regressor predicts."""
    table, y = table_of()
    ours = encoder(kind="regression")
    vectors = ours.fit_transform(table, y)
    assert vectors.shape == (ROWS, 75) and vectors.dtype == np.float32
    graphs = ours.graphs_.transform(table, carte.load_fasttext(carte.Path(words)), y)
    with carte.isolated_torch("cpu"):
        theirs = carte.carte_module("carte_estimator").CARTERegressor(**FAST)
        theirs._estimator_type = "regressor"
        predicted = theirs.fit(graphs, y).predict(graphs)
    (state,) = ours.states_
    weight, bias = (np.asarray(state[f"ft_classifier.6.{name}"]) for name in ("weight", "bias"))
    assert np.allclose(vectors @ weight[0] + bias[0], predicted, atol=1e-4)
    assert predicted.std() > 0


@installed
@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_the_same_seed_gives_the_same_bytes_and_another_does_not(encoder, kind):
    table, y = table_of()
    y = y if kind == "regression" else np.where(y > 1, "high", "low")
    first, again, other = (
        encoder(kind=kind, random_state=seed).fit_transform(table, y) for seed in (1, 1, 2)
    )
    assert np.isfinite(first).all() and first.tobytes() == again.tobytes()
    assert not np.allclose(first, other)


@installed
def test_nothing_outside_is_touched(encoder):
    import torch

    table, y = table_of()
    kept, truth = table.copy(), y.copy()
    before = torch.get_rng_state(), torch.get_num_threads(), repr(np.random.get_state())
    loaded = "carte_ai" in sys.modules
    encoder(dropout=0.2, kind="regression").fit_transform(table, y)
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1:] == (torch.get_num_threads(), repr(np.random.get_state()))
    assert ("carte_ai" in sys.modules) == loaded
    pd.testing.assert_frame_equal(table, kept)
    assert np.array_equal(y, truth)


@installed
def test_the_truth_is_looked_at_in_fit_only(encoder):
    table, y = table_of()
    fresh, _ = table_of(20, seed=5)
    tuned = encoder(kind="regression").fit(table, y)
    turned = encoder(kind="regression").fit(table, y[::-1].copy())
    assert not np.allclose(tuned.transform(fresh), turned.transform(fresh))
    assert {name for name in vars(tuned) if name.endswith("_")} == {"tuned_", "graphs_", "states_"}
    assert {*vars(tuned.graphs_)} == {"numbers", "texts", "names", "normal"}
    frozen, other = (
        encoder(kind="regression", finetune=False).fit(table, truth) for truth in (y, y[::-1])
    )
    assert np.array_equal(frozen.transform(fresh), other.transform(fresh))


@installed
def test_without_truth_or_tuning_it_is_the_pretrained_network(encoder):
    table, y = table_of()
    hidden = encoder().fit_transform(table)
    assert hidden.shape == (ROWS, 300)
    assert np.array_equal(
        hidden, encoder(finetune=False, kind="regression").fit_transform(table, y)
    )
    # nothing in it is random
    assert np.array_equal(hidden, encoder(random_state=9).fit_transform(table))
    blank = encoder(load_pretrain=False).fit_transform(table)
    assert not np.allclose(hidden, blank)
    assert not np.allclose(blank, encoder(load_pretrain=False, random_state=9).fit_transform(table))


@installed
def test_classes_and_numbers_are_learned_in_their_own_way(encoder):
    table, y = table_of()
    two = (y > 1).astype(int)
    three = np.array(["low", "mid", "high"])[np.digitize(y, [0.5, 1.5])]
    outputs = {}
    for name, kind, truth in (
        ("numbers", "regression", two.astype(float)),
        ("two", "classification", two),
        ("labels", "classification", np.where(two, "yes", "no")),
        ("halves", "classification", two + 0.5),
        ("three", "classification", three),
        ("one", "classification", np.full(ROWS, "all")),
        ("rare", "classification", np.array(["rare", *["a", "b"] * 29, "a"])),
    ):
        fitted = encoder(kind=kind).fit(table, truth)
        outputs[name] = fitted.transform(table), len(fitted.states_[0]["ft_classifier.6.bias"])
        assert outputs[name][0].shape == (ROWS, 75) and np.isfinite(outputs[name][0]).all()
    assert {name: count for name, (_, count) in outputs.items()} == {
        **dict.fromkeys(("numbers", "two", "labels", "halves", "one"), 1),
        **{"three": 3, "rare": 3},
    }
    assert np.array_equal(outputs["two"][0], outputs["labels"][0])
    assert np.array_equal(outputs["two"][0], outputs["halves"][0])
    assert not np.allclose(outputs["two"][0], outputs["numbers"][0])


@installed
def test_it_declines_what_it_was_not_made_for(encoder):
    table, y = table_of()
    with pytest.raises(Declined, match="regression.*classification"):
        encoder(task="regression", kind="classification").fit(table, y > 1)
    with pytest.raises(Declined, match="classification.*regression"):
        encoder(task="classification", kind="regression").fit(table, y)
    assert encoder(task="regression", kind="regression").fit_transform(table, y).shape == (ROWS, 75)
    # where nothing is tuned, the truth is of no concern
    assert encoder(task="regression", finetune=False, kind="classification").fit(table, y > 1)
    with pytest.raises(Declined, match="5 rows"):
        encoder(kind="regression").fit(table.iloc[:5], y[:5])
    with pytest.raises(Declined, match="nowhere"):
        encoder(device="nowhere").fit(table)


@installed
@pytest.mark.parametrize("finetune", [True, False])
def test_rows_are_independent(encoder, finetune, monkeypatch):
    table, y = table_of()
    test, _ = table_of(30, seed=3)
    test.loc[0] = [None, None, np.nan, np.nan]
    test.loc[1] = ["never seen before", "Überraschung", 1e30, -np.inf]
    fitted = encoder(kind="regression", finetune=finetune).fit(table, y)
    whole = fitted.transform(test)
    assert np.isfinite(whole).all() and len(whole) == 30
    order = np.random.default_rng(0).permutation(30)
    assert np.allclose(fitted.transform(test.iloc[order]), whole[order], atol=1e-5)
    assert np.allclose(fitted.transform(test.iloc[:1]), whole[:1], atol=1e-5)
    assert len(np.unique(whole.round(5), axis=0)) == 30
    monkeypatch.setattr(carte, "GRAPHS_PER_BLOCK", 7)
    assert np.allclose(fitted.transform(test), whole, atol=1e-5)


@installed
@pytest.mark.parametrize("columns", [["Age", "price paid"], ["name", "note"], ["note"]])
def test_tables_of_numbers_or_of_words_alone(encoder, columns):
    table, y = table_of()
    fitted = encoder(kind="regression").fit(table[columns], y)
    found = fitted.transform(table_of(10, seed=4)[0][columns])
    assert found.shape == (10, 75) and np.isfinite(found).all() and found.std(axis=0).max() > 0


@installed
def test_vectors_of_several_networks_are_concatenated(encoder):
    table, y = table_of()
    both = encoder(kind="regression", num_model=2).fit_transform(table, y)
    assert both.shape == (ROWS, 150)
    assert not np.allclose(both[:, :75], both[:, 75:])


@installed
@pytest.mark.parametrize(
    "change",
    [
        {"learning_rate": 1e-2},
        {"batch_size": 8},
        {"max_epoch": 4, "learning_rate": 1e-4},
        {"dropout": 0.5},
        {"val_size": 0.4},
        {"num_layers": 2},
        {"freeze_pretrain": False},
        {"load_pretrain": False},
        {"scale_truth": True},
        {"early_stopping_patience": 0, "learning_rate": 0.05, "max_epoch": 12},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_parameter_has_an_effect(encoder, change):
    table, y = table_of()
    first = next(iter(change))
    same = {name: value for name, value in change.items() if name != first}
    changed = encoder(kind="regression", **change).fit_transform(table, y)
    assert changed.shape == (ROWS, 75)
    assert not np.allclose(changed, encoder(kind="regression", **same).fit_transform(table, y))


@installed
def test_scaled_truth_makes_the_unit_of_measure_irrelevant(encoder):
    table, y = table_of()
    plain, large = (
        encoder(kind="regression", scale_truth=True).fit_transform(table, truth)
        for truth in (y, y * 1024 + 4096)
    )
    assert np.allclose(plain, large, atol=1e-3)
    with pytest.raises(DataError, match="scale_truth"):
        encoder(kind="regression").fit(table, y * 1e40)


@installed
def test_an_untrained_network_warns(encoder):
    table, y = table_of()
    with pytest.warns(UserWarning, match="not trained"):
        encoder(kind="regression").fit(table, np.ones(ROWS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder(kind="regression").fit(table, y)


@installed
def test_the_weights_of_a_file_are_used(encoder, tmp_path):
    import torch

    table, y = table_of()
    weights = torch.load(carte.packaged_weights(), map_location="cpu")
    same, other, junk = (tmp_path / name for name in ("same.pt", "other.pt", "junk.pt"))
    torch.save(weights, same)
    torch.save({name: value * 1.5 for name, value in weights.items()}, other)
    torch.save({"a": torch.zeros(1)}, junk)
    for options in ({"finetune": False}, {"kind": "regression"}):
        own, copied, changed = (
            encoder(pretrained=path, **options).fit_transform(table, y)
            for path in (None, str(same), str(other))
        )
        assert np.array_equal(own, copied) and not np.allclose(own, changed)
    torch.save({name: value * torch.nan for name, value in weights.items()}, other)
    with pytest.raises(ContractError, match="not finite"):
        encoder(pretrained=str(other)).fit_transform(table)
    with pytest.raises(DataError, match="junk.pt"):
        encoder(pretrained=str(junk)).fit(table)
    with pytest.raises(DefinitionError, match="num_layers .* 13 .* 14"):
        encoder(num_layers=14).fit(table)


@installed
def test_out_of_fold_no_row_is_embedded_by_a_network_that_saw_its_truth(encoder):
    """Row 0 was held out when it was embedded, so another truth of it changes only the others."""
    table, y = table_of()
    changed = y.copy()
    changed[0] += 50.0
    one, two = (OutOfFold(encoder(), folds=2, kind="regression", random_state=1) for _ in range(2))
    first, second = one.fit_transform(table, y), two.fit_transform(table, changed)
    assert first.shape == (ROWS, 75) and np.isfinite(first).all()
    assert np.array_equal(first[0], second[0])
    assert not np.allclose(first[1:], second[1:])
    assert not np.allclose(first, one.transform(table))
    in_sample = encoder(kind="regression").fit(table, y)
    assert np.array_equal(one.transform(table), in_sample.transform(table))


@installed
def test_a_fitted_encoder_pickles_small(encoder):
    table, y = table_of()
    fitted = encoder(kind="regression").fit(table, y)
    sent = pickle.dumps(fitted)
    assert len(sent) < 10e6
    assert np.array_equal(pickle.loads(sent).transform(table), fitted.transform(table))


@installed
def test_other_vectors_make_another_model(words, encoder, monkeypatch, tmp_path):
    table, _ = table_of()
    was, vectors = object_identity(encoder()), encoder().fit_transform(table)
    assert was is not None and was == object_identity(encoder())
    assert object_identity(encoder(max_epoch=4)) != was
    content = bytearray(carte.Path(words).read_bytes())
    content[-50_000:] = bytes(50_000)
    (tmp_path / "other.bin").write_bytes(content)
    monkeypatch.setenv("KARAT_FASTTEXT", str(tmp_path / "other.bin"))
    assert object_identity(encoder()) != was
    assert encoder().fit_transform(table).shape == vectors.shape


@installed
@pytest.mark.parametrize("kept", [12, 60, 90, 400, 50_000, -1])
def test_a_download_that_was_cut_off_is_refused(words, kept, tmp_path):
    cut = tmp_path / "cut.bin"
    cut.write_bytes(carte.Path(words).read_bytes()[:kept])
    with pytest.raises(DataError, match="cut.bin"):
        carte.load_fasttext(find_fasttext(str(cut), 300))


@installed
def test_a_run_from_end_to_end(encoder, tmp_path):
    table, y = table_of()
    numbers = karat.Dataset.from_table(table.assign(y=y), target="y", name="n", kind="regression")
    classes = karat.Dataset.from_table(table.assign(y=y > 1), target="y", name="c")
    tasks = [
        karat.Task("price", numbers, split={"use": "kfold", "folds": 2}, metrics=["r2"]),
        karat.Task("side", classes, split={"use": "kfold", "folds": 2}, metrics=["auc"]),
    ]
    models = {"carte": encoder(max_epoch=20), "frozen": encoder(finetune=False)}
    tuned, frozen = karat.evaluate(models, tasks, output=tmp_path)
    for run, dimensions in ((tuned, 75), (frozen, 300)):
        assert {r["status"] for r in run.records()} == {"ok"}
        assert {r["dimensions"] for r in run.records()} == {dimensions}
    scores = tuned.scores().groupby("task")["value"].mean()
    assert scores["price"] > 0.5 and scores["side"] > 0.9
