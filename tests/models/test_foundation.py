"""TabICL and tfm-embeddings: without weights, and with random networks of their architecture."""

import sys

import numpy as np
import pandas as pd
import pytest

import karat
from karat.catalogue import Catalogue
from karat.errors import Declined, DefinitionError, MissingExtra
from karat.models import foundation
from karat.models.foundation import TabICLEncoder, TfmEncoder, tabicl_weights
from karat.models.tabpfn import TabPFNEncoder

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.normal(size=(60, 3)), columns=list("abc"))
ROWS["word"] = np.resize(["x", "y", "z"], 60)
NUMBERS = ROWS["a"].to_numpy() * 2
CLASSES = np.where(NUMBERS > 1, "high", np.where(NUMBERS > -1, "middle", "low"))
WIDTH = 32


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Make the weights of small random networks of TabICL's second version, of both kinds."""
    torch = pytest.importorskip("torch")
    network = pytest.importorskip("tabicl._model.tabicl").TabICL
    folder, made = tmp_path_factory.mktemp("tabicl"), {}
    blocks = {f"{part}_num_blocks": 1 for part in ("col", "row", "icl")}
    heads = {f"{part}_nhead": 2 for part in ("col", "row", "icl")}
    for kind, classes in (("numbers", 0), ("classes", 10)):
        config = {**blocks, **heads, "max_classes": classes, "num_quantiles": 19}
        config |= {"embed_dim": 16, "row_num_cls": 2, "col_num_inds": 8, "zero_init": False}
        with torch.random.fork_rng():
            torch.manual_seed(1)
            state = network(**config).state_dict()
        made[kind] = str(folder / f"{kind}.ckpt")
        torch.save({"config": config, "state_dict": state}, made[kind])
    return made


@pytest.fixture
def no_cache(monkeypatch, tmp_path):
    """Nothing was ever downloaded from the hub."""
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub, "try_to_load_from_cache", lambda *about: None)


# -- without them ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "lacking", "command"),
    [
        (TabICLEncoder(), "tabicl", "karat[tabicl]"),
        (
            TfmEncoder(),
            "tfm_embeddings",
            "karat[tfm]",
        ),
    ],
)
def test_without_the_package_its_row_is_declined(
    model, lacking, command, line, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, lacking, None)
    with pytest.raises(MissingExtra) as error:
        model.fit(ROWS, NUMBERS)
    assert command in str(error.value)
    (run,) = karat.evaluate({"mine": model}, [line()], output=tmp_path)
    assert all(r["status"] == "declined" and command in r["info"] for r in run.records())


@pytest.mark.parametrize(("name", "lacking"), [("tabicl", "tabicl"), ("tfm", "tfm_embeddings")])
def test_by_name_it_is_declined_without_the_package(name, lacking, monkeypatch):
    monkeypatch.setitem(sys.modules, lacking, None)
    assert Catalogue().model(name).unavailable.endswith(f'pip install "karat[{name}]"')


@pytest.mark.parametrize("model", ["tabpfn", "tabfm"])
def test_a_network_that_is_not_installed_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, model, None)
    monkeypatch.setattr(
        foundation.importlib.util,
        "find_spec",
        lambda name: None if name == model else object(),
    )
    extra = {"tabpfn": "karat[tabpfn]", "tabfm": "tabfm[pytorch]"}[model]
    assert TfmEncoder("x.ckpt", model=model).unavailable() == (
        f'{model} is not installed: pip install "{extra}"'
    )


def test_an_unknown_network_raises():
    with pytest.raises(DefinitionError, match='"tabicle".*"tabicl"'):
        TfmEncoder(model="tabicle").unavailable()


# -- without weights ------------------------------------------------------------------------


def test_without_weights_it_says_how_to_get_them(no_cache):
    pytest.importorskip("tabicl")
    line = (
        "TabICL's weights are not here: hf download jingang/TabICL "
        "tabicl-regressor-v2-20260212.ckpt tabicl-classifier-v2-20260212.ckpt"
    )
    assert TabICLEncoder().unavailable() == line
    with pytest.raises(Declined, match="hf download"):
        TabICLEncoder().fit(ROWS, NUMBERS)


def test_the_files_it_asks_for_are_those_the_package_would_load():
    tabicl = pytest.importorskip("tabicl")
    assert foundation.TABICL_FILES == {
        "numbers": tabicl.TabICLRegressor().checkpoint_version,
        "classes": tabicl.TabICLClassifier().checkpoint_version,
    }


def test_what_was_downloaded_is_found(tiny, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    by_name = {foundation.TABICL_FILES[kind]: path for kind, path in tiny.items()}
    monkeypatch.setattr(hub, "try_to_load_from_cache", lambda repo, name: by_name[name])
    assert {kind: str(path) for kind, path in tabicl_weights(None, None).items()} == tiny
    assert TabICLEncoder().unavailable() == ""


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(Declined, match="not found"):
        tabicl_weights(str(tmp_path / "lost.ckpt"), None)
    pytest.importorskip("tfm_embeddings")
    pytest.importorskip("tabpfn")
    assert "not found" in TfmEncoder(str(tmp_path / "lost.ckpt"), model="tabpfn").unavailable()
    assert "checkpoint" in TfmEncoder(model="tabpfn").unavailable()


# -- with random networks -------------------------------------------------------------------


def made(encoder, tiny, **options):
    """Return TabICL as it is or through tfm-embeddings, with two members and two folds."""
    if encoder is TfmEncoder:
        pytest.importorskip("tfm_embeddings")
    return encoder(**{"checkpoint": tiny["numbers"], "n_estimators": 2, "folds": 2, **options})


BOTH = pytest.mark.parametrize("which", [TabICLEncoder, TfmEncoder])


@BOTH
@pytest.mark.parametrize(
    ("options", "y", "width"),
    [
        ({}, NUMBERS, WIDTH),
        ({"join": "concat"}, NUMBERS, 2 * WIDTH),
        ({}, CLASSES == "low", WIDTH),
        ({}, CLASSES, 3 * WIDTH),
        ({"targets": 2}, None, 2 * WIDTH),
    ],
    ids=["numbers", "concat", "two", "three", "hidden"],
)
def test_dimensions(which, tiny, options, y, width):
    encoder = made(which, tiny, **options)
    found = encoder.fit_transform(ROWS, y)
    assert found.shape == (60, width) and found.dtype == np.float32
    assert np.isfinite(found).all() and found.std(axis=0).min() > 0
    assert encoder.transform(ROWS.iloc[:1]).shape == (1, width)


@BOTH
def test_a_classifier_reads_classes_at_once(which, tiny):
    encoder = made(which, tiny, classifier=tiny["classes"], kind="classes")
    assert encoder.fit_transform(ROWS, CLASSES).shape == (60, WIDTH)
    alone = made(which, tiny, checkpoint=None, classifier=tiny["classes"], kind="numbers")
    with pytest.raises(Declined, match="classes only"):
        alone.fit(ROWS, NUMBERS)


@BOTH
def test_more_than_ten_classes_are_declined(which, tiny):
    encoder = made(which, tiny, classifier=tiny["classes"], kind="classes")
    assert encoder.fit_transform(ROWS, np.arange(60) % 10).shape == (60, WIDTH)
    with pytest.raises(Declined, match="10 classes.* 11"):
        encoder.fit(ROWS, np.arange(60) % 11)


@BOTH
def test_the_seed_decides_and_no_global_generator_is_touched(which, tiny):
    import torch

    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    one, same, other = (
        made(which, tiny, kind="numbers", random_state=seed).fit_transform(ROWS, NUMBERS)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])


@BOTH
def test_each_row_is_embedded_by_itself(which, tiny):
    gaps = ROWS.assign(b=np.where(np.arange(60) % 4 == 0, np.nan, ROWS["b"]))
    encoder = made(which, tiny, folds=0, kind="numbers").fit(gaps, NUMBERS)
    whole = encoder.transform(gaps)
    turned = np.random.default_rng(3).permutation(60)
    np.testing.assert_allclose(encoder.transform(gaps.iloc[turned]), whole[turned], atol=1e-5)
    # alone, a row's column without a value has none at all
    np.testing.assert_allclose(encoder.transform(gaps.iloc[:1]), whole[:1], atol=1e-5)


@BOTH
def test_missing_values_new_words_and_odd_columns(which, tiny):
    day = pd.date_range("2024-01-01", periods=60)
    odd = ROWS.assign(empty=np.nan, same=1.0, day=day)
    encoder = made(which, tiny, kind="numbers")
    assert np.isfinite(encoder.fit_transform(odd, NUMBERS)).all()
    new = odd.iloc[:3].assign(word=["never", None, "x"], a=[np.nan, 1.0, np.inf], day=pd.NaT)
    assert np.isfinite(encoder.transform(new)).all()


def test_both_ways_to_tabicl_give_the_same_vectors(tiny):
    one, two = (
        made(which, tiny, folds=0, kind="numbers").fit_transform(ROWS, NUMBERS)
        for which in (TabICLEncoder, TfmEncoder)
    )
    np.testing.assert_allclose(one, two, atol=1e-4)


def test_whole_numbers_are_no_classes_for_tfm(tiny):
    encoder = made(TfmEncoder, tiny, kind="numbers").fit(ROWS, np.round(NUMBERS))
    fitted = encoder.contexts_[0].fitted.embedder_.adapter.estimator_
    assert type(fitted).__name__ == "TabICLRegressor"


@BOTH
def test_a_run_from_the_object_to_the_scores(which, tiny, line, two_classes, tmp_path):
    models = {"mine": made(which, tiny)}
    (run,) = karat.evaluate(models, [line(), two_classes()], output=tmp_path)
    assert [(r["status"], r["dimensions"]) for r in run.records()] == [("ok", WIDTH)] * 4


# -- with TabPFN's real weights -------------------------------------------------------------


@pytest.mark.network
@pytest.mark.slow
def test_tfm_gets_what_tabpfn_itself_gives(tmp_path_factory, monkeypatch):
    """The same network, asked through the package and asked directly, tells rows alike."""
    pytest.importorskip("tfm_embeddings")
    pytest.importorskip("tabpfn")
    from karat.data.load import fetch_file
    from karat.errors import Unavailable

    monkeypatch.setenv("KARAT_CACHE", str(tmp_path_factory.mktemp("weights")))
    name = "tabpfn_v2_regressor"
    try:
        weights = str(fetch_file(name, Catalogue().definitions.get("datasets", name)))
    except Unavailable as error:
        pytest.skip(str(error).splitlines()[0])
    given = {"n_estimators": 1, "folds": 0, "kind": "numbers"}
    one = TfmEncoder(weights, model="tabpfn", **given).fit_transform(ROWS, NUMBERS)
    two = TabPFNEncoder(weights, **given).fit_transform(ROWS, NUMBERS)
    assert one.shape == two.shape == (60, 192)

    def order(vectors):
        """Return the first principal component, without its sign."""
        centred = vectors - vectors.mean(axis=0)
        return np.linalg.svd(centred, full_matrices=False)[0][:, 0]

    # TabPFN adds columns of its own there, so the vectors are alike and not the same
    assert abs(np.corrcoef(order(one), order(two))[0, 1]) > 0.9
