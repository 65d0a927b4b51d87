"""TabPFN: without the package, with random networks of its architecture, with real weights."""

import inspect
import sys

import numpy as np
import pandas as pd
import pytest

import karat
from karat.catalogue import Catalogue
from karat.data.load import fetch_file
from karat.errors import Declined, DefinitionError, MissingExtra, Unavailable
from karat.models.out_of_fold import OutOfFold
from karat.models.tabpfn import TabPFNEncoder, TabPFNPredictor

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.normal(size=(60, 3)), columns=list("abc"))
ROWS["word"] = np.resize(["x", "y", "z"], 60)
NUMBERS = ROWS["a"].to_numpy() * 2
CLASSES = np.where(NUMBERS > 1, "high", np.where(NUMBERS > -1, "middle", "low"))
WIDTH = 24


@pytest.fixture
def without_tabpfn(monkeypatch):
    monkeypatch.setitem(sys.modules, "tabpfn", None)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Make the weights of small random networks of TabPFN's second version, of both kinds."""
    pytest.importorskip("tabpfn")
    folder = tmp_path_factory.mktemp("tabpfn")
    return {kind: str(_tiny(folder / f"{kind}.ckpt", kind)) for kind in ("numbers", "classes")}


def _tiny(path, kind):
    import torch
    from tabpfn.architectures import ARCHITECTURES

    config = {"emsize": WIDTH, "nhead": 2, "nlayers": 2, "features_per_group": 2, "seed": 0}
    config |= {"max_num_classes": 0 if kind == "numbers" else 10, "num_buckets": 20}
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
    if kind == "numbers":
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
            return str(fetch_file(name, Catalogue().definitions.get("datasets", name)))
        except Unavailable as error:
            pytest.skip(str(error).splitlines()[0])


# -- without it -----------------------------------------------------------------------------


@pytest.mark.parametrize("model", [TabPFNEncoder("x.ckpt"), TabPFNPredictor("x.ckpt")])
def test_without_the_package_it_says_what_to_install(model, without_tabpfn):
    message = r'tabpfn is not installed: pip install "karat\[tabpfn\]"'
    with pytest.raises(MissingExtra, match=message):
        model.fit(ROWS, NUMBERS)
    assert model.unavailable().startswith("tabpfn is not installed")


def test_without_the_package_its_row_is_declined(without_tabpfn, line, tmp_path):
    (run,) = karat.evaluate({"pfn": TabPFNEncoder("x.ckpt")}, [line()], output=tmp_path)
    assert {record["status"] for record in run.records()} == {"declined"}
    assert 'pip install "karat[tabpfn]"' in run.records()[0]["info"]


def test_by_name_it_is_declined_without_the_package(without_tabpfn, monkeypatch):
    fetched = "its weights were fetched, and nobody can use them"
    monkeypatch.setattr("karat.catalogue.fetch_file", lambda *about: pytest.fail(fetched))
    for name in ("tabpfn", "tabpfn-in-sample", "tabpfn-predictor"):
        reason = Catalogue().model(name).unavailable
        assert "karat[tabpfn]" in reason


def test_a_wrong_parameter_stops_before_anything_runs(line, tmp_path):
    wrong = {"a": TabPFNEncoder("x.ckpt", join="sum")}
    with pytest.raises(DefinitionError, match="join"):
        karat.evaluate(wrong, [line()], output=tmp_path)


def test_a_predictor_declines_what_it_has_no_weights_for():
    assert TabPFNPredictor("x.ckpt").declines("numbers") == ""
    assert TabPFNPredictor("x.ckpt").declines("classes") == "it has no weights for classes"
    assert TabPFNPredictor(classifier="x.ckpt").declines("classes") == ""
    assert (
        TabPFNPredictor(classifier="x.ckpt").declines("numbers") == "it has no weights for numbers"
    )


# -- with it, without weights ---------------------------------------------------------------


def test_without_weights_it_says_where_they_are(tmp_path):
    pytest.importorskip("tabpfn")
    for model in (TabPFNEncoder(), TabPFNPredictor()):
        assert "hf download Prior-Labs/TabPFN-v2-clf" in model.unavailable()
        with pytest.raises(Declined, match="hf download"):
            model.fit(ROWS, NUMBERS)
    lost = TabPFNEncoder(str(tmp_path / "lost.ckpt"))
    assert lost.unavailable().startswith(f"there is no file {tmp_path / 'lost.ckpt'}")


def test_offline_its_row_is_declined_and_the_run_goes_on(line, tmp_path, monkeypatch):
    pytest.importorskip("tabpfn")
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "empty"))
    monkeypatch.delenv("KARAT_DATA", raising=False)
    runs = karat.evaluate(["tabpfn", "onehot"], [line()], output=tmp_path)
    assert [{r["status"] for r in run.records()} for run in runs] == [{"declined"}, {"ok"}]
    assert 'the file of "tabpfn_v2_regressor" could not be had' in runs[0].records()[0]["info"]


# -- with random networks -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "y", "width"),
    [
        ({}, NUMBERS, WIDTH),
        ({"n_estimators": 2}, NUMBERS, WIDTH),
        ({"n_estimators": 2, "join": "concat"}, NUMBERS, 2 * WIDTH),
        ({}, CLASSES == "low", WIDTH),
        ({}, CLASSES, 3 * WIDTH),
        ({"targets": 2}, None, 2 * WIDTH),
        ({"targets": 9}, None, 4 * WIDTH),
    ],
    ids=["numbers", "mean", "concat", "two", "three", "hidden", "all columns"],
)
def test_dimensions(tiny, options, y, width):
    encoder = TabPFNEncoder(tiny["numbers"], folds=2, **options)
    found = encoder.fit_transform(ROWS, y)
    assert found.shape == (60, width) and found.dtype == np.float32
    assert np.isfinite(found).all() and found.std(axis=0).min() > 0
    assert encoder.transform(ROWS.iloc[:1]).shape == (1, width)


def test_a_classifier_reads_classes_at_once(tiny):
    encoder = TabPFNEncoder(tiny["numbers"], tiny["classes"], folds=2, kind="classes")
    assert encoder.fit_transform(ROWS, CLASSES).shape == (60, WIDTH)
    assert type(encoder.contexts_[0].fitted).__name__ == "TabPFNClassifier"
    with pytest.raises(Declined, match="classes only"):
        TabPFNEncoder(classifier=tiny["classes"], kind="numbers").fit(ROWS, NUMBERS)


def test_all_rows_are_embedded_without_their_targets(tiny):
    encoder = TabPFNEncoder(tiny["numbers"], folds=0, kind="numbers")
    found = encoder.fit_transform(ROWS, NUMBERS)
    np.testing.assert_array_equal(encoder.transform(ROWS), found)
    # the truth of a row is nowhere in what is given to embed it
    assert "y" not in inspect.signature(encoder.transform).parameters


def test_the_seed_decides(tiny):
    one, same, other = (
        TabPFNEncoder(tiny["numbers"], folds=2, kind="numbers", random_state=seed).fit_transform(
            ROWS, NUMBERS
        )
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_no_global_generator_is_touched(tiny):
    import torch

    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    TabPFNEncoder(tiny["numbers"], folds=2, kind="numbers").fit_transform(ROWS, NUMBERS)
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])


def test_the_order_of_rows_does_not_matter(tiny):
    encoder = TabPFNEncoder(tiny["numbers"], folds=0, kind="numbers").fit(ROWS, NUMBERS)
    whole = encoder.transform(ROWS)
    turned = np.random.default_rng(3).permutation(60)
    np.testing.assert_allclose(encoder.transform(ROWS.iloc[turned]), whole[turned], atol=1e-5)
    shuffled = TabPFNEncoder(tiny["numbers"], folds=0, kind="numbers")
    shuffled.fit(ROWS.iloc[turned], NUMBERS[turned])
    np.testing.assert_allclose(shuffled.transform(ROWS), whole, atol=1e-4)


def test_missing_values_new_words_and_odd_columns(tiny):
    odd = ROWS.assign(
        empty=np.nan,
        same=1.0,
        day=pd.date_range("2024-01-01", periods=60),
        gap=np.where(np.arange(60) % 3 == 0, np.nan, RNG.normal(size=60)),
        huge=np.where(np.arange(60) == 5, 1e300, 1.0),
    )
    encoder = TabPFNEncoder(tiny["numbers"], folds=3, kind="numbers")
    assert np.isfinite(encoder.fit_transform(odd, NUMBERS)).all()
    new = odd.iloc[:3].assign(word=["never", None, "x"], a=[np.nan, 1.0, np.inf], day=pd.NaT)
    found = encoder.transform(new)
    assert found.shape == (3, WIDTH) and np.isfinite(found).all()


def test_scaling_the_target_does_not_change_the_vectors(tiny):
    """The network sees the truth at mean 0 and deviation 1: units of measurement do not matter."""
    one = TabPFNEncoder(tiny["numbers"], folds=2, kind="numbers").fit_transform(ROWS, NUMBERS)
    two = TabPFNEncoder(tiny["numbers"], folds=2, kind="numbers")
    np.testing.assert_allclose(two.fit_transform(ROWS, 1000 * NUMBERS + 5), one, atol=1e-3)


def test_the_target_of_a_held_out_row_does_not_affect_its_vector(tiny):
    """Another truth in one row changes the vectors of other parts, and not of its own."""
    from karat.models.truth import deal

    changed = NUMBERS.copy()
    changed[7] += 3
    one, two = (
        TabPFNEncoder(tiny["numbers"], folds=3, kind="numbers").fit_transform(ROWS, y)
        for y in (NUMBERS, changed)
    )
    part = deal(NUMBERS, "numbers", 3, 0)
    same = (one == two).all(axis=1)
    assert same[part == part[7]].all() and not same[part != part[7]].any()


def test_out_of_fold_can_also_be_had_from_outside(tiny):
    wrapped = OutOfFold(TabPFNEncoder(tiny["numbers"], folds=0), folds=3, kind="numbers")
    assert wrapped.fit_transform(ROWS, NUMBERS).shape == (60, WIDTH)


def test_a_run_from_its_name_to_its_scores(tiny, line, two_classes, tmp_path):
    models = {
        "pfn": TabPFNEncoder(tiny["numbers"], folds=2),
        "predictor": TabPFNPredictor(tiny["numbers"], n_estimators=1),
    }
    first, second = karat.evaluate(models, [line(), two_classes()], output=tmp_path)
    assert [r["status"] for r in first.records()] == ["ok"] * 4
    assert {r["dimensions"] for r in first.records()} == {WIDTH}
    records = [(r["task"], r["status"], r["info"]) for r in second.records()]
    assert records[:2] == [("line", "ok", "")] * 2
    assert [record[:2] for record in records[2:]] == [("halves", "declined")]


@pytest.mark.parametrize(("kind", "y"), [("numbers", NUMBERS), ("classes", CLASSES)])
def test_a_predictor_answers_with_the_weights_of_its_kind(tiny, kind, y):
    predictor = TabPFNPredictor(tiny["numbers"], tiny["classes"], n_estimators=1, kind=kind)
    found = predictor.fit(ROWS, y).predict(ROWS)
    if kind == "numbers":
        assert found.dtype.kind == "f" and np.isfinite(found).all()
        assert not hasattr(predictor, "predict_proba")
        return
    assert predictor.classes_.tolist() == ["high", "low", "middle"]
    chances = predictor.predict_proba(ROWS)
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-5)
    assert (found == predictor.classes_[chances.argmax(axis=1)]).all()


# -- with the real weights ------------------------------------------------------------------


def _scores(train, y, test, truth):
    """Return how much of the truth ten neighbours tell: 1 all, 0 nothing more than the mean."""
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
    encoder = TabPFNEncoder(weights, kind="numbers", random_state=0)
    known, new = encoder.fit_transform(X.iloc[train], y[train]), encoder.transform(X.iloc[test])
    assert known.shape == new.shape == (150, 192)
    assert _scores(known, y[train], new, y[test]) > 0.25
    # as rows of known truth, which TabPFN also offers, they lie elsewhere
    plain = encoder._estimator("numbers").set_params(fit_mode="fit_preprocessors")
    plain.fit(X.iloc[train].to_numpy(), y[train])
    embeddings = plain.get_embeddings(X.iloc[train].to_numpy(), data_source="train")[0]
    assert _scores(embeddings, y[train], new, y[test]) < 0.1


@pytest.mark.network
@pytest.mark.slow
def test_classes_encoded_as_numbers_are_separated(weights):
    from sklearn.datasets import load_wine
    from sklearn.neighbors import KNeighborsClassifier

    X, y = load_wine(return_X_y=True, as_frame=True)
    y, order = y.to_numpy(), np.random.default_rng(0).permutation(len(y))
    train, test = order[:80], order[80:]
    encoder = TabPFNEncoder(weights, folds=3, kind="classes", random_state=0)
    known = encoder.fit_transform(X.iloc[train], y[train])
    assert known.shape == (80, 3 * 192)
    head = KNeighborsClassifier(5).fit(known, y[train])
    assert head.score(encoder.transform(X.iloc[test]), y[test]) > 0.9  # 0.4 by the largest class


@pytest.mark.network
@pytest.mark.slow
def test_the_predictor_beats_a_forest_where_it_is_known_to(weights):
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import RandomForestRegressor

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    y, order = y.to_numpy(), np.random.default_rng(0).permutation(len(y))
    train, test = order[:200], order[200:]
    predictor = TabPFNPredictor(weights, n_estimators=2, kind="numbers", random_state=0)
    predictions = predictor.fit(X.iloc[train], y[train]).predict(X.iloc[test])
    error = np.mean((predictions - y[test]) ** 2)
    forest = RandomForestRegressor(random_state=0).fit(X.iloc[train], y[train])
    assert error < np.mean((forest.predict(X.iloc[test]) - y[test]) ** 2)
