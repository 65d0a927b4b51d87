"""In-context encoders: a transparent network, random networks, and real weights if available."""

import sys
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.config.catalog import Catalog
from karat.data.load_dataset import fetch_file
from karat.errors import Declined, DefinitionError, MissingExtra, Unavailable
from karat.ext.models import foundation_models as foundation
from karat.ext.models.foundation_models import (
    BLOCK,
    ContextEncoder,
    TabICLEncoder,
    TabPFNEncoder,
    TabPFNPredictor,
    TfmEncoder,
    context_mask,
    network_columns,
    tabicl_weights,
)


@dataclass(eq=False, repr=False)
class Glass(ContextEncoder):
    """Its vectors: was the row in the context, how large was that, the mean of its target.

    A row's first column is its number. The second member says the same, plus 10.
    """

    package = "scikit-learn"

    n_estimators: int = 1
    weights: tuple = ("regression",)

    def _check_weights(self):
        if not self.weights:
            raise Declined("no weights: fetch some")

    def _reads(self, kind):
        return kind in self.weights

    def _estimator(self, kind):
        return Seen(kind)

    def _members(self, fitted, rows):
        values = np.column_stack(
            [
                np.isin(rows[:, 0], fitted.rows[:, 0]),
                np.full(len(rows), len(fitted.rows)),
                np.full(len(rows), fitted.target.mean()),
            ]
        )
        return np.stack([values + 10 * member for member in range(self.n_estimators)])


class Seen:
    def __init__(self, kind):
        self.kind = kind

    def fit(self, rows, target):
        self.rows, self.target = rows, np.asarray(target)
        return self


def table(count):
    return pd.DataFrame({"n": np.arange(float(count)), "w": np.resize(["a", "b", "c"], count)})


@given(count=st.integers(6, 40), folds=st.integers(2, 7), seed=st.integers(0, 9))
@settings(max_examples=30, deadline=None)
def test_no_train_row_is_embedded_by_a_context_that_holds_it(count, folds, seed):
    encoder = Glass(folds=folds, kind="regression", random_state=seed)
    found = encoder.fit_transform(table(count), np.arange(float(count)))
    assert not found[:, 0].any()
    # a part is as large as any other, so a context lacks that many
    lacking = count - found[:, 1]
    assert set(lacking) <= {count // folds, -(-count // folds)}


def test_other_rows_are_embedded_by_all_train_rows():
    encoder = Glass(kind="regression")
    encoder.fit_transform(table(10), np.arange(10.0))
    new = pd.DataFrame({"n": [3.0, 99.0], "w": ["a", "z"]})
    assert encoder.transform(new).tolist() == [[1, 10, 4.5], [0, 10, 4.5]]
    without_folds = Glass(folds=0, kind="regression").fit_transform(table(10), np.arange(10.0))
    assert without_folds.tolist() == [[1, 10, 4.5]] * 10


def test_rows_outside_the_context_need_no_folds():
    encoder = Glass(rows=8, folds=4, kind="regression", random_state=3)
    with pytest.warns(UserWarning, match="8 of 20"):
        found = encoder.fit_transform(table(20), np.arange(20.0))
    assert not found[:, 0].any()
    assert sorted(found[:, 1]) == [6] * 8 + [8] * 12


def test_two_classes_are_read_as_0_and_1_and_more_have_a_context_each():
    y = np.array(["no", "yes"] * 10)
    found = Glass(folds=0, kind="classification").fit_transform(table(20), y)
    assert found.tolist() == [[1, 20, 0.5]] * 20
    y = np.array(["a", "b", "b", "c", "c", "c"] * 2)
    found = Glass(folds=0, kind="classification").fit_transform(table(12), y)
    assert found.shape == (12, 9)
    np.testing.assert_allclose(found[0], [1, 12, 1 / 6, 1, 12, 1 / 3, 1, 12, 1 / 2], rtol=1e-6)


def test_weights_for_classes_read_them_all_at_once():
    y = np.array(["a", "b", "c"] * 4)
    encoder = Glass(weights=("classification",), folds=0, kind="classification")
    assert encoder.fit_transform(table(12), y).tolist() == [[1, 12, 1.0]] * 12
    assert [context.fitted.kind for context in encoder.contexts_] == ["classification"]


def test_a_class_of_one_row_leaves_zeros_in_the_part_that_holds_it():
    y = np.array(["rare"] + ["a", "b"] * 6)
    found = Glass(folds=3, kind="classification", random_state=0).fit_transform(table(13), y)
    classes = np.split(found, 3, axis=1)  # a, b, rare
    assert classes[2][0].tolist() == [0, 0, 0]
    known = classes[2][:, 1] > 0
    assert sorted(known) == [False] * 5 + [True] * 8 or sorted(known) == [False] * 4 + [True] * 9
    assert not classes[2][~known].any() and (classes[0][:, 1] > 0).all()


@pytest.mark.parametrize(
    ("encoder", "y", "reason"),
    [
        (Glass(weights=("classification",)), np.arange(20.0), "for classes only"),
        (Glass(), np.arange(20).astype(str), "10 classes.* 20"),
        (Glass(weights=("classification",)), None, "needs weights for numbers"),
        (Glass(targets=0), None, "which is hidden"),
        (Glass(weights=()), np.arange(20.0), "no weights: fetch some"),
        (Glass(), np.ones(20), "constant"),
    ],
)
def test_it_declines_with_a_reason(encoder, y, reason):
    with pytest.raises(Declined, match=reason):
        encoder.fit(table(20), y)


@pytest.mark.parametrize(
    ("columns", "y", "why"), [(501, np.arange(5.0), "500 .* 501"), (1, None, "no column")]
)
def test_a_table_that_is_too_wide_or_too_narrow_is_declined(columns, y, why):
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(5, columns)))
    with pytest.raises(Declined, match=why):
        Glass().fit(rows, y)


def test_without_a_target_columns_are_predicted_from_the_others():
    rows = table(12).assign(x=np.arange(12) % 5, gap=[None, *range(11)])
    encoder = Glass(targets=9, random_state=0)
    found = encoder.fit_transform(rows)
    # numbers come first: n, x, gap, w; one with gaps cannot be a target
    assert sorted(context.without for context in encoder.contexts_) == [0, 1, 3]
    assert found.shape == (12, 9)
    np.testing.assert_array_equal(encoder.transform(rows), found)
    for context in encoder.contexts_:
        assert context.fitted.rows.shape == (12, 3)


def test_as_many_columns_as_asked_for_drawn_by_the_seed():
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 20)))
    fitted = [Glass(targets=3, random_state=seed).fit(rows) for seed in (1, 1, 2)]
    one, same, other = ([context.without for context in each.contexts_] for each in fitted)
    assert len(one) == 3 and one == same != other


@pytest.mark.parametrize(
    ("join", "row"), [("mean", [11, 14, 14.5]), ("concat", [1, 4, 4.5, 11, 14, 14.5, 21, 24, 24.5])]
)
def test_members_are_averaged_or_concatenated(join, row):
    encoder = Glass(n_estimators=3, join=join, folds=0, kind="regression")
    found = encoder.fit_transform(table(4), np.array([3.0, 4, 5, 6]))
    assert found[0].tolist() == row


def test_many_rows_are_embedded_in_blocks():
    encoder = Glass(kind="regression").fit(table(3), np.arange(3.0))
    found = encoder.transform(table(2 * BLOCK + 1))
    assert found.shape == (2 * BLOCK + 1, 3)
    assert found[:, 0].sum() == 3 and found[:3, 0].all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"folds": 1},
        {"folds": -1},
        {"folds": 2.5},
        {"join": "sum"},
        {"rows": 1},
        {"n_estimators": 0},
        {"targets": -1},
    ],
)
def test_a_wrong_parameter_raises_before_fit(wrong):
    for call in (Glass(**wrong).unavailable, lambda: Glass(**wrong).fit(table(9), np.arange(9.0))):
        with pytest.raises(DefinitionError, match=next(iter(wrong))):
            call()


def test_missing_weights_and_required_target():
    assert Glass().unavailable() == ""
    assert Glass(weights=()).unavailable() == "no weights: fetch some"
    assert not Glass().__sklearn_tags__().target_tags.required
    assert Glass(targets=0).__sklearn_tags__().target_tags.required
    assert Glass(weights=("classification",)).__sklearn_tags__().target_tags.required


def test_columns_are_read_as_numbers_dates_and_words():
    rows = pd.DataFrame(
        {
            "n": [1.5, np.nan, 1e30],
            "day": pd.to_datetime(["2024-01-31 06:00", None, "1970-01-01 00:00"]),
            "w": ["b", None, "a"],
            "yes": [True, False, True],
        }
    )
    found = network_columns().fit_transform(rows)
    assert found[0].tolist() == [1.5, 2024, 1, 31, 2, 6, 1706680800, 2, 1]
    assert np.isnan(found[1, :7]).all() and found[1, 7:].tolist() == [0, 0]
    assert found[2].tolist() == [1e15, 1970, 1, 1, 3, 0, 0, 1, 1]


def test_a_new_word_is_missing_and_a_missing_number_is_the_median():
    rows = pd.DataFrame({"n": [1.0, 3.0, None], "w": ["a", "b", "a"]})
    new = pd.DataFrame({"n": [None], "w": ["z"]})
    assert np.isnan(network_columns().fit(rows).transform(new)).all()
    assert network_columns(imputed=True).fit(rows).transform(new).tolist() == [[2.0, -1.0]]


pytestmark = pytest.mark.filterwarnings("ignore:the context has")


def test_a_drawn_context_has_its_share_of_every_class():
    truth = np.repeat(["a", "b", "c"], [60, 30, 10])
    chosen = truth[context_mask(100, 20, truth, 1)]
    assert {label: (chosen == label).sum() for label in "abc"} == {"a": 12, "b": 6, "c": 2}


def test_a_drawn_context_of_numbers_covers_them_evenly():
    truth = np.arange(1000.0)
    chosen = truth[context_mask(1000, 11, truth, 1)]
    assert len(chosen) == 11 and chosen[0] == 0 and chosen[-1] == 999
    assert np.ptp(np.diff(chosen)) <= 1


def test_without_a_target_rows_are_drawn_at_random():
    one, same, other = (context_mask(100, 10, None, seed) for seed in (1, 1, 2))
    assert one.sum() == 10 and one.tolist() == same.tolist() != other.tolist()


RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.normal(size=(60, 3)), columns=list("abc"))
ROWS["word"] = np.resize(["x", "y", "z"], 60)
NUMBERS = ROWS["a"].to_numpy() * 2
CLASSES = np.where(NUMBERS > 1, "high", np.where(NUMBERS > -1, "middle", "low"))
WIDTH, TABPFN_WIDTH = 32, 24


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Make the weights of small random networks of TabICL's second version, of both kinds."""
    torch = pytest.importorskip("torch")
    network = pytest.importorskip("tabicl._model.tabicl").TabICL
    folder, made = tmp_path_factory.mktemp("tabicl"), {}
    blocks = {f"{part}_num_blocks": 1 for part in ("col", "row", "icl")}
    heads = {f"{part}_nhead": 2 for part in ("col", "row", "icl")}
    for kind, classes in (("regression", 0), ("classification", 10)):
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


@pytest.mark.parametrize(
    ("model", "lacking", "command"),
    [(TabICLEncoder(), "tabicl", "karat[tabicl]"), (TfmEncoder(), "tfm_embeddings", "karat[tfm]")],
)
def test_without_the_package_its_row_is_declined(
    model, lacking, command, line, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, lacking, None)
    with pytest.raises(MissingExtra) as error:
        model.fit(ROWS, NUMBERS)
    assert command in str(error.value)
    name = command.removeprefix("karat[").removesuffix("]")
    for run in karat.evaluate({"mine": model, "named": name}, [line()], output=tmp_path):
        assert all(r["status"] == "declined" and command in r["info"] for r in run.records())


@pytest.mark.parametrize("model", ["tabpfn", "tabfm"])
def test_a_network_that_is_not_installed_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, model, None)
    monkeypatch.setattr(
        foundation.importlib.util, "find_spec", lambda name: None if name == model else object()
    )
    extra = {"tabpfn": "karat[tabpfn]", "tabfm": "tabfm[pytorch]"}[model]
    assert TfmEncoder("x.ckpt", model=model).unavailable() == (
        f'{model} is not installed: pip install "{extra}"'
    )


def test_an_unknown_network_raises():
    with pytest.raises(DefinitionError, match='"tabicle".*"tabicl"'):
        TfmEncoder(model="tabicle").unavailable()


def test_without_weights_it_says_how_to_get_them(no_cache):
    pytest.importorskip("tabicl")
    assert "tabicl-regressor-v2-20260212.ckpt" in TabICLEncoder().unavailable()
    with pytest.raises(Declined, match="hf download"):
        TabICLEncoder().fit(ROWS, NUMBERS)


def test_the_files_it_asks_for_are_those_the_package_would_load():
    tabicl = pytest.importorskip("tabicl")
    assert foundation.TABICL_FILES == {
        "regression": tabicl.TabICLRegressor().checkpoint_version,
        "classification": tabicl.TabICLClassifier().checkpoint_version,
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


class Network:
    """An encoder with a small random network of its architecture, two members and two folds."""

    def __init__(self, encoder, weights, width):
        self.encoder, self.weights, self.width = encoder, weights, width

    def __call__(self, **options):
        usual = {"checkpoint": self.weights["regression"], "n_estimators": 2, "folds": 2}
        return self.encoder(**{**usual, **options})


@pytest.fixture(params=[TabICLEncoder, TfmEncoder, TabPFNEncoder])
def network(request):
    if request.param is TabPFNEncoder:
        return Network(request.param, request.getfixturevalue("tiny_tabpfn"), TABPFN_WIDTH)
    if request.param is TfmEncoder:
        pytest.importorskip("tfm_embeddings")
    return Network(request.param, request.getfixturevalue("tiny"), WIDTH)


@pytest.mark.parametrize(
    ("options", "y", "widths"),
    [
        ({}, NUMBERS, 1),
        ({"join": "concat"}, NUMBERS, 2),
        ({}, CLASSES == "low", 1),
        ({}, CLASSES, 3),
        ({"targets": 2}, None, 2),
        ({"targets": 9}, None, 4),
    ],
    ids=["numbers", "concat", "two", "three", "hidden", "all columns"],
)
def test_dimensions(network, options, y, widths):
    encoder, width = network(**options), widths * network.width
    found = encoder.fit_transform(ROWS, y)
    assert found.shape == (60, width) and found.dtype == np.float32
    assert np.isfinite(found).all() and found.std(axis=0).min() > 0
    assert encoder.transform(ROWS.iloc[:1]).shape == (1, width)


def test_a_classifier_reads_classes_at_once(network):
    classifier = network.weights["classification"]
    encoder = network(classifier=classifier, kind="classification")
    assert encoder.fit_transform(ROWS, CLASSES).shape == (60, network.width)
    alone = network(checkpoint=None, classifier=classifier, kind="regression")
    with pytest.raises(Declined, match="classes only"):
        alone.fit(ROWS, NUMBERS)


def test_more_than_ten_classes_are_declined(network):
    encoder = network(classifier=network.weights["classification"], kind="classification")
    assert encoder.fit_transform(ROWS, np.arange(60) % 10).shape == (60, network.width)
    with pytest.raises(Declined, match="10 classes.* 11"):
        encoder.fit(ROWS, np.arange(60) % 11)


def test_the_seed_decides_and_no_global_generator_is_touched(network):
    import torch

    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    one, same, other = (
        network(kind="regression", random_state=seed).fit_transform(ROWS, NUMBERS)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])


def test_each_row_is_embedded_by_itself(network):
    gaps = ROWS.assign(b=np.where(np.arange(60) % 4 == 0, np.nan, ROWS["b"]))
    encoder = network(folds=0, kind="regression").fit(gaps, NUMBERS)
    whole = encoder.transform(gaps)
    turned = np.random.default_rng(3).permutation(60)
    np.testing.assert_allclose(encoder.transform(gaps.iloc[turned]), whole[turned], atol=1e-5)
    # alone, a row's column without a value has none at all
    np.testing.assert_allclose(encoder.transform(gaps.iloc[:1]), whole[:1], atol=1e-5)


def test_missing_values_new_words_and_odd_columns(network):
    odd = ROWS.assign(
        empty=np.nan,
        same=1.0,
        day=pd.date_range("2024-01-01", periods=60),
        gap=np.where(np.arange(60) % 3 == 0, np.nan, RNG.normal(size=60)),
        huge=np.where(np.arange(60) == 5, 1e300, 1.0),
    )
    encoder = network(kind="regression")
    assert np.isfinite(encoder.fit_transform(odd, NUMBERS)).all()
    new = odd.iloc[:3].assign(word=["never", None, "x"], a=[np.nan, 1.0, np.inf], day=pd.NaT)
    assert np.isfinite(encoder.transform(new)).all()


def test_both_ways_to_tabicl_give_the_same_vectors(tiny):
    pytest.importorskip("tfm_embeddings")
    one, two = (
        Network(encoder, tiny, WIDTH)(folds=0, kind="regression").fit_transform(ROWS, NUMBERS)
        for encoder in (TabICLEncoder, TfmEncoder)
    )
    np.testing.assert_allclose(one, two, atol=1e-4)


def test_whole_numbers_are_no_classes_for_tfm(tiny):
    pytest.importorskip("tfm_embeddings")
    encoder = TfmEncoder(tiny["regression"], kind="regression").fit(ROWS, np.round(NUMBERS))
    fitted = encoder.contexts_[0].fitted.embedder_.adapter.estimator_
    assert type(fitted).__name__ == "TabICLRegressor"


def test_a_run_from_the_object_to_the_scores(network, line, two_classes, tmp_path):
    (run,) = karat.evaluate({"mine": network()}, [line(), two_classes()], output=tmp_path)
    assert [(r["status"], r["dimensions"]) for r in run.records()] == [("ok", network.width)] * 4


@pytest.mark.network
@pytest.mark.slow
def test_tfm_gets_what_tabpfn_itself_gives(weights):
    pytest.importorskip("tfm_embeddings")
    given = {"n_estimators": 1, "folds": 0, "kind": "regression"}
    one = TfmEncoder(weights, model="tabpfn", **given).fit_transform(ROWS, NUMBERS)
    two = TabPFNEncoder(weights, **given).fit_transform(ROWS, NUMBERS)
    assert one.shape == two.shape == (60, 192)

    def order(vectors):
        """Return the first principal component, without its sign."""
        centred = vectors - vectors.mean(axis=0)
        return np.linalg.svd(centred, full_matrices=False)[0][:, 0]

    # TabPFN adds columns of its own there, so the vectors are alike and not the same
    assert abs(np.corrcoef(order(one), order(two))[0, 1]) > 0.9


@pytest.fixture(scope="module")
def tiny_tabpfn(tmp_path_factory):
    """Make the weights of small random networks of TabPFN's second version, of both kinds."""
    pytest.importorskip("tabpfn")
    folder = tmp_path_factory.mktemp("tabpfn")
    return {
        kind: str(_tiny(folder / f"{kind}.ckpt", kind)) for kind in ("regression", "classification")
    }


def _tiny(path, kind):
    import torch
    from tabpfn.architectures import ARCHITECTURES

    config = {"emsize": TABPFN_WIDTH, "nhead": 2, "nlayers": 2, "features_per_group": 2, "seed": 0}
    config |= {"max_num_classes": 0 if kind == "regression" else 10, "num_buckets": 20}
    made = ARCHITECTURES["tabpfn_v2"]
    generator = torch.Generator().manual_seed(1)
    with torch.random.fork_rng():
        network = made.get_architecture(made.parse_config(config)[0])
    state = {
        name: torch.randn(values.shape, generator=generator) * 0.3
        if values.is_floating_point()
        else values
        for name, values in network.state_dict().items()
    }
    if kind == "regression":
        state["criterion.borders"] = torch.linspace(-3, 3, 21)
        state["criterion.losses_per_bucket"] = torch.zeros(20)
    torch.save({"state_dict": state, "config": config}, path)
    return path


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Return the real weights of the regressor, fetched once."""
    pytest.importorskip("tabpfn")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KARAT_CACHE", str(tmp_path_factory.mktemp("weights")))
        try:
            name = "tabpfn_v2_regressor"
            return str(fetch_file(name, Catalog().definitions.get("datasets", name)))
        except Unavailable as error:
            pytest.skip(str(error).splitlines()[0])


def test_without_tabpfn_its_weights_are_not_fetched(monkeypatch):
    monkeypatch.setitem(sys.modules, "tabpfn", None)
    fetched = "its weights were fetched, and nobody can use them"
    monkeypatch.setattr("karat.config.catalog.fetch_file", lambda *about: pytest.fail(fetched))
    for name in ("tabpfn", "tabpfn-in-sample", "tabpfn-predictor"):
        reason = Catalog().model(name).unavailable
        assert "karat[tabpfn]" in reason


def test_a_predictor_declines_what_it_has_no_weights_for():
    for name, own, other in (
        ("checkpoint", "regression", "classification"),
        ("classifier", "classification", "regression"),
    ):
        predictor = TabPFNPredictor(**{name: "x.ckpt"})
        assert predictor.declines(own) == ""
        assert predictor.declines(other) == f"it has no weights for {other}"


def test_without_weights_it_says_where_they_are(tmp_path):
    pytest.importorskip("tabpfn")
    for model in (TabPFNEncoder(), TabPFNPredictor()):
        assert "hf download Prior-Labs/TabPFN-v2-clf" in model.unavailable()
        with pytest.raises(Declined, match="hf download"):
            model.fit(ROWS, NUMBERS)
    lost = TabPFNEncoder(str(tmp_path / "lost.ckpt"))
    assert "lost.ckpt" in lost.unavailable()


def test_offline_its_row_is_declined_and_the_run_goes_on(line, tmp_path, monkeypatch):
    pytest.importorskip("tabpfn")
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "empty"))
    monkeypatch.delenv("KARAT_DATA", raising=False)
    runs = karat.evaluate(["tabpfn", "onehot"], [line()], output=tmp_path)
    assert [{r["status"] for r in run.records()} for run in runs] == [{"declined"}, {"ok"}]
    assert "tabpfn_v2_regressor" in runs[0].records()[0]["info"]


def test_all_rows_are_embedded_without_their_targets(tiny_tabpfn):
    encoder = TabPFNEncoder(tiny_tabpfn["regression"], folds=0, kind="regression")
    found = encoder.fit_transform(ROWS, NUMBERS)
    np.testing.assert_array_equal(encoder.transform(ROWS), found)


def test_scaling_the_target_does_not_change_the_vectors(tiny_tabpfn):
    """The network sees the truth at mean 0 and deviation 1: units of measurement do not matter."""
    encoder = TabPFNEncoder(tiny_tabpfn["regression"], folds=2, kind="regression")
    one, two = (encoder.fit_transform(ROWS, y) for y in (NUMBERS, 1000 * NUMBERS + 5))
    np.testing.assert_allclose(two, one, atol=1e-3)


def test_the_target_of_a_held_out_row_does_not_affect_its_vector(tiny_tabpfn):
    """Another truth in one row changes the vectors of other parts, and not of its own."""
    from karat.models.model import assign_folds

    changed = NUMBERS.copy()
    changed[7] += 3
    one, two = (
        TabPFNEncoder(tiny_tabpfn["regression"], folds=3, kind="regression").fit_transform(ROWS, y)
        for y in (NUMBERS, changed)
    )
    part = assign_folds(NUMBERS, "regression", 3, 0)
    same = (one == two).all(axis=1)
    assert same[part == part[7]].all() and not same[part != part[7]].any()


def test_a_run_from_its_name_to_its_scores(tiny_tabpfn, line, two_classes, tmp_path):
    models = {
        "pfn": TabPFNEncoder(tiny_tabpfn["regression"], folds=2),
        "predictor": TabPFNPredictor(tiny_tabpfn["regression"], n_estimators=1),
    }
    first, second = karat.evaluate(models, [line(), two_classes()], output=tmp_path)
    assert [r["status"] for r in first.records()] == ["ok"] * 4
    assert {r["dimensions"] for r in first.records()} == {TABPFN_WIDTH}
    records = [(r["task"], r["status"], r["info"]) for r in second.records()]
    assert records[:2] == [("line", "ok", "")] * 2
    assert [record[:2] for record in records[2:]] == [("halves", "declined")]


@pytest.mark.parametrize(("kind", "y"), [("regression", NUMBERS), ("classification", CLASSES)])
def test_a_predictor_answers_with_the_weights_of_its_kind(tiny_tabpfn, kind, y):
    predictor = TabPFNPredictor(
        tiny_tabpfn["regression"], tiny_tabpfn["classification"], n_estimators=1, kind=kind
    )
    found = predictor.fit(ROWS, y).predict(ROWS)
    if kind == "regression":
        assert found.dtype.kind == "f" and np.isfinite(found).all()
        assert not hasattr(predictor, "predict_proba")
        return
    assert predictor.classes_.tolist() == ["high", "low", "middle"]
    chances = predictor.predict_proba(ROWS)
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-5)
    assert (found == predictor.classes_[chances.argmax(axis=1)]).all()


def _scores(train, y, test, truth):
    """Return how much of the truth ten neighbors tell: 1 all, 0 nothing more than the mean."""
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), KNeighborsRegressor(10)).fit(train, y).score(test, truth)


@pytest.mark.network
@pytest.mark.slow
def test_train_rows_out_of_fold_lie_among_the_test_rows(weights):
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    y, order = y.to_numpy(), np.random.default_rng(0).permutation(len(y))
    train, test = order[:150], order[150:300]
    encoder = TabPFNEncoder(weights, kind="regression", random_state=0)
    known, new = encoder.fit_transform(X.iloc[train], y[train]), encoder.transform(X.iloc[test])
    assert known.shape == new.shape == (150, 192)
    assert _scores(known, y[train], new, y[test]) > 0.25
    # as rows of known truth, which TabPFN also offers, they lie elsewhere
    plain = encoder._estimator("regression").set_params(fit_mode="fit_preprocessors")
    plain.fit(X.iloc[train].to_numpy(), y[train])
    embeddings = plain.get_embeddings(X.iloc[train].to_numpy(), data_source="train")[0]
    assert _scores(embeddings, y[train], new, y[test]) < 0.1


@pytest.mark.network
@pytest.mark.slow
def test_the_predictor_beats_a_forest_where_it_is_known_to(weights):
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import RandomForestRegressor

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    y, order = y.to_numpy(), np.random.default_rng(0).permutation(len(y))
    train, test = order[:200], order[200:]
    predictor = TabPFNPredictor(weights, n_estimators=2, kind="regression", random_state=0)
    predictions = predictor.fit(X.iloc[train], y[train]).predict(X.iloc[test])
    error = np.mean((predictions - y[test]) ** 2)
    forest = RandomForestRegressor(random_state=0).fit(X.iloc[train], y[train])
    assert error < np.mean((forest.predict(X.iloc[test]) - y[test]) ** 2)
