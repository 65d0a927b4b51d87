"""The trained probe and the composers."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import DBSCAN, MiniBatchKMeans
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from karat.core import registry
from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.errors import ContractError, DefinitionError
from karat.metrics import score
from karat.probes.trained import (
    Trained,
    baseline,
    concat,
    flag_outliers,
    interaction,
    predict_checked,
    single,
)

NAN = np.nan


def table(truth, kind, **given):
    frame = pd.DataFrame({"x": np.arange(float(len(truth))), "y": truth})
    return Dataset.from_table(frame, "y", kind=kind, name="toy", **given)


def draw(kind, rows=60, width=4):
    """Return a data set and vectors that have something to do with its truth."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, width)) * [1, 10, 0.1, 3] + [0, 5, 0, -2]
    signal = X @ [1, 0.2, 3, 0.1] + rng.standard_normal(rows)
    truth = (
        np.array(list("abc"))[np.digitize(signal, [0.5, 1.5])]
        if kind == "classification"
        else signal
    )
    return table(truth, kind), X


def run(probe, data, X, train, test):
    vectors = Vectors(np.asarray(X), np.arange(len(X)))
    probe.fit(data.take(train), vectors)
    return probe.answer(data.take(test), vectors)


TRAIN, TEST = np.arange(40), np.arange(40, 60)


@pytest.mark.parametrize(
    ("head", "kind", "theirs"),
    [
        (None, "classification", LogisticRegression(max_iter=100)),
        ("logistic-regression", "classification", LogisticRegression(max_iter=100)),
        ({"use": "logistic-regression", "C": 0.01}, "classification", LogisticRegression(C=0.01)),
        ({"use": "knn", "n_neighbors": 3}, "classification", KNeighborsClassifier(3)),
        (None, "regression", Ridge(1.0)),
        ({"use": "ridge", "alpha": 10.0}, "regression", Ridge(10.0)),
        ("linear-regression", "regression", LinearRegression()),
        ("knn", "regression", KNeighborsRegressor(5)),
    ],
)
@pytest.mark.parametrize("scale", ["standard", "plain"])
def test_answers_are_those_of_scikit_learn(head, kind, theirs, scale):
    data, X = draw(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run(Trained(head=head, scale=scale), data, X, TRAIN, TEST)
        scaler = StandardScaler().fit(X[TRAIN])
        scaled = scaler.transform(X) if scale == "standard" else X
        theirs.fit(scaled[TRAIN], data.target[TRAIN])
    wanted = theirs.predict(scaled[TEST]).tolist()
    if head == "linear-regression":  # by another formula
        wanted = pytest.approx(wanted, rel=1e-9)
    assert found.predictions.tolist() == wanted
    if kind == "classification":
        np.testing.assert_array_equal(found.probabilities, theirs.predict_proba(scaled[TEST]))
        assert found.classes == ("a", "b", "c")


@pytest.mark.parametrize(
    ("scale", "answer"), [("standard", 1 + 49 * 2 / 3), ("plain", 1 + 98 * 4 / 9)]
)
def test_scaling_uses_the_train_questions_only(scale, answer):
    # train x 0, 4 and y 0, 2; test x 100. Standard: mean 2, deviation 2, slope 2 / (2 + 1), so
    # 1 + 49 · 2/3. Plain: slope 4 / (8 + 1), so 1 + 98 · 4/9.
    data = table([0.0, 2.0, 7.0], "regression")
    found = run(
        Trained(head="ridge", scale=scale), data, [[0.0], [4.0], [100.0]], [0, 1], np.array([2])
    )
    assert found.predictions[0] == pytest.approx(answer)


def test_a_constant_dimension():
    data = table([0.0, 2.0, 4.0], "regression")
    found = run(Trained("linear-regression"), data, [[0, 7], [1, 7], [2, 7]], [0, 1], np.array([2]))
    assert found.predictions[0] == pytest.approx(4)


def test_fields_are_composed_as_asked_or_by_their_number():
    items = pd.Series(list("abcd"))
    asked = pd.DataFrame({"p": [0, 1, 2], "q": [1, 2, 3], "r": [2, 3, 0]})
    matrix = np.array([[1.0], [2.0], [4.0], [8.0]])

    def width(fields, compose=None):
        data = Dataset("toy", items, asked[fields], np.arange(3.0), "regression", "text")
        probe = Trained(compose=compose, scale="plain", head="linear-regression")
        probe.fit(data, Vectors(matrix, np.arange(4)))
        return len(probe.head_.coef_)

    assert width(["p"]) == 1
    assert width(["p", "q"]) == 4
    assert width(["p", "q"], "concat") == 2
    assert width(["p", "q", "r"]) == 3
    with pytest.raises(DefinitionError, match="single"):
        width(["p", "q"], "single")
    with pytest.raises(DefinitionError, match='"conkat".*"concat"'):
        width(["p", "q"], "conkat")


def test_a_custom_composer_is_checked(monkeypatch):
    composers = registry.composers
    composers.get("single")
    parts = {**composers._parts, "broken": lambda *fields: fields[0][:1]}
    monkeypatch.setattr(composers, "_parts", parts)
    data, X = draw("regression")
    with pytest.raises(ContractError, match=r"broken.*\(1, 4\)"):
        run(Trained(compose="broken"), data, X, TRAIN, TEST)


def test_a_head_that_does_not_converge_is_noted():
    data, X = draw("classification")
    probe = Trained({"use": "logistic-regression", "max_iter": 1}, scale="plain")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the note takes the place of the warning
        run(probe, data, X, TRAIN, TEST)
    assert "converge" in probe.notes[0]
    calm = Trained()
    run(calm, data, X, TRAIN, TEST)
    assert calm.notes == []


class Warner:
    """A head that warns of two things."""

    def fit(self, X, y):
        from sklearn.exceptions import ConvergenceWarning

        for _ in range(3):
            warnings.warn("not yet", ConvergenceWarning, stacklevel=1)
        warnings.warn("something else", UserWarning, stacklevel=1)
        return self

    def predict(self, X):
        return np.zeros(len(X))


@pytest.fixture
def own(monkeypatch):
    """Register heads for one test."""

    def add(**parts):
        heads = registry.heads
        heads.get("ridge")
        monkeypatch.setattr(heads, "_parts", {**heads._parts, **parts})

    return add


def test_one_note_for_many_warnings_and_other_warnings_pass(own):
    own(warner=Warner)
    data, X = draw("regression")
    probe = Trained("warner")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(probe, data, X, TRAIN, TEST)
    assert "converge" in probe.notes[0]
    assert [str(warning.message) for warning in caught] == ["something else"]


def test_items_without_vectors_are_ignored_or_get_the_baseline():
    data = table([0.0, 2.0, 4.0, 6.0], "regression")
    X = np.array([[0.0], [1.0], [2.0], [NAN]])
    vectors, probe = Vectors(X, np.arange(4)), Trained("linear-regression")
    train, test = data.take(np.array([0, 1])), data.take(np.array([2, 3]))
    probe.fit(train, vectors)
    able = probe.answerable(test, vectors)
    assert able.tolist() == [True, False]
    ignored = probe.answer(test.take(np.flatnonzero(able)), vectors)
    assert ignored.predictions.tolist() == [pytest.approx(4)]
    penalized = ignored.merged(probe.unanswered(test.take(np.flatnonzero(~able))), able)
    assert penalized.predictions.tolist() == [pytest.approx(4), 1.0]  # the mean of 0 and 2
    assert score("mae", penalized)[0] == pytest.approx(5 / 2)


def test_unknown_items_of_classes_get_the_commonest_label_and_the_shares():
    data = table(list("aababc"), "classification")
    X = np.array([[0.0], [0.1], [1.0], [0.2], [1.1], [NAN]])
    vectors, probe = Vectors(X, np.arange(6)), Trained()
    probe.fit(data.take(np.arange(4)), vectors)
    lost = probe.unanswered(data.take(np.array([5])))
    assert lost.predictions.tolist() == ["a"]
    assert lost.probabilities.tolist() == [[0.75, 0.25, 0.0]]
    both = probe.answer(data.take(np.array([4])), vectors).merged(lost, np.array([True, False]))
    assert both.target.tolist() == ["b", "c"]


def blobs(unknown=()):
    rng = np.random.default_rng(0)
    truth = np.repeat(list("abc"), 15)
    X = np.repeat([[0.0, 0], [30, 0], [0, 30]], 15, axis=0) + rng.standard_normal((45, 2))
    X[list(unknown)] = NAN
    return table(truth, "classification"), X


def clustered(probe, data, X):
    vectors = Vectors(np.asarray(X), np.arange(len(X)))
    probe.fit(data.blind(), vectors)
    return probe.answer(data, vectors)


def test_clusters_are_those_of_scikit_learn_and_as_many_as_classes():
    data, X = blobs()
    found = clustered(Trained("kmeans", random_state=5), data, X)
    theirs = MiniBatchKMeans(3, batch_size=32, n_init=10, random_state=5)
    expected = theirs.fit_predict(StandardScaler().fit_transform(X))
    assert found.predictions.tolist() == expected.tolist()
    assert (found.answers, found.truths) == ("clusters", "classes")
    assert score("v_measure", found)[0] == pytest.approx(1)
    assert clustered(Trained(), data, X).answers == "clusters"  # the default for a hidden target


def test_each_item_without_a_vector_is_a_separate_cluster():
    data, X = blobs(unknown=[0, 1, 44])
    vectors, probe = Vectors(X, np.arange(45)), Trained("kmeans", random_state=0)
    able = probe.answerable(data, vectors)
    assert np.flatnonzero(~able).tolist() == [0, 1, 44]
    probe.fit(data.blind().take(np.flatnonzero(able)), vectors)
    ignored = probe.answer(data.take(np.flatnonzero(able)), vectors)
    found = ignored.merged(probe.unanswered(data.take(np.flatnonzero(~able))), able)
    sizes = np.unique(found.predictions, return_counts=True)[1]
    assert sorted(sizes.tolist()) == [1, 1, 1, 13, 14, 15]
    assert score("homogeneity", found)[0] == pytest.approx(1)
    assert score("completeness", found)[0] < score("completeness", ignored)[0]


def test_each_noise_item_is_a_separate_cluster(own):
    own(dbscan=lambda: DBSCAN(eps=3.0, min_samples=3))
    truth = list("aaabbbab")
    data = table(truth, "classification")
    X = [[0.0], [1], [2], [50], [51], [52], [100], [200]]
    probe = Trained("dbscan", scale="plain")
    found = clustered(probe, data, X)
    assert found.predictions.tolist() == [0, 0, 0, 1, 1, 1, 2, 3]
    # and never the same cluster as an item that is not known
    lost = probe.unanswered(data.take(np.array([0, 1])))
    assert not set(lost.predictions) & set(found.predictions)
    assert len(set(lost.predictions)) == 2


def test_an_item_listed_twice_is_one_separate_cluster(own):
    own(dbscan=lambda: DBSCAN(eps=3.0, min_samples=3))
    items = pd.Series(list("vwxyz"), index=list("vwxyz"))
    questions = pd.DataFrame({"item": list("vwxyyzz")})
    truth = np.array(list("aaabbbb"))
    data = Dataset("twice", items, questions, truth, "classification", "entity")
    vectors = Vectors(np.array([[0.0], [1], [2], [90], [NAN]]), np.arange(5))
    probe = Trained("dbscan", scale="plain")
    able = probe.answerable(data, vectors)
    probe.fit(data.blind().take(np.flatnonzero(able)), vectors)
    found = probe.answer(data.take(np.flatnonzero(able)), vectors)
    assert found.predictions.tolist() == [0, 0, 0, 1, 1]  # both rows of y are noise
    lost = probe.unanswered(data.take(np.flatnonzero(~able)))
    assert len(set(lost.predictions)) == 1


class Clusterer:
    def __init__(self, clusters):
        self.clusters = clusters

    def fit_predict(self, X):
        return self.clusters


@pytest.mark.parametrize("wrong", [np.zeros(3, int), np.zeros(45), np.zeros((45, 1), int)])
def test_a_custom_clusterer_is_checked(own, wrong):
    own(clusterer=lambda: Clusterer(wrong))
    with pytest.raises(ContractError, match="fit_predict"):
        clustered(Trained("clusterer"), *blobs())


def test_a_supervised_head_needs_a_visible_target():
    data, X = blobs()
    with pytest.raises(DefinitionError, match="split: all"):
        clustered(Trained("logistic-regression"), data, X)
    # nor can a clusterer be used with folds: the classes 0, 1, 2 could be numbers of clusters
    data = table(np.repeat([0, 1, 2], 15), "classification")
    with pytest.raises(DefinitionError, match="split: all"):
        run(Trained("kmeans"), data, X, np.arange(30), np.arange(30, 45))


def test_options_are_checked():
    with pytest.raises(DefinitionError, match="scale.*minmax"):
        Trained(scale="minmax")


@pytest.mark.parametrize(
    ("head", "word"),
    [
        ("logistic-regresion", '"logistic-regresion".*"logistic-regression"'),
        ({"C": 1}, "use:"),
        ({"use": "logistic-regression", "c": 1}, '"logistic-regression".*"c".*"C"'),
        ("ridge", "ridge .*classification"),
    ],
)
def test_a_wrong_head(head, word):
    data, X = draw("classification")
    with pytest.raises(DefinitionError, match=word):
        run(Trained(head), data, X, TRAIN, TEST)


def test_a_target_of_items_is_refused():
    frame = pd.DataFrame({"q": ["a", "b"], "y": ["b", "a"]})
    data = Dataset.from_columns(frame, ["q"], "y", kind="items", modality="entity")
    with pytest.raises(DefinitionError, match="probe: analogy"):
        Trained().answerable(data, Vectors(np.ones((2, 1)), np.arange(2)))


a = np.array([[1.0, -2.0], [0.0, 4.0]], dtype=np.float32)
b = np.array([[3.0, 5.0], [-1.0, 4.0]], dtype=np.float32)
c = np.array([[7.0], [8.0]], dtype=np.float32)


def test_composers_by_hand():
    assert interaction(a, b).tolist() == [[1, -2, 3, 5, 2, 7, 3, -10], [0, 4, -1, 4, 1, 0, 0, 16]]
    # any number of fields of any width
    assert concat(a, b, c).tolist() == [[1, -2, 3, 5, 7], [0, 4, -1, 4, 8]]
    assert concat(c).tolist() == [[7], [8]]
    assert {f.dtype for f in (interaction(a, b), concat(a, b))} == {np.dtype("float32")}


@pytest.mark.parametrize(("compose", "fields"), [(single, 2), (interaction, 1), (interaction, 3)])
def test_a_wrong_number_of_fields_says_what_to_write(compose, fields):
    with pytest.raises(DefinitionError, match=f"the questions have {fields}"):
        compose(*[a] * fields)


class Spoiler:
    """A head that changes the vectors it gets."""

    def fit(self, X, y):
        X[:] = 0
        return self

    def predict(self, X):
        X[:] = 0
        return np.full(len(X), "a")


@pytest.mark.parametrize("scale", ["standard", "plain"])
def test_heads_on_the_same_rows_share_scaled_vectors_and_answer_the_same(scale, clean_registry):
    registry.heads.register("spoiler", Spoiler)
    data, X = draw("classification")
    given = X.copy()
    vectors = Vectors(X, np.arange(len(X)))
    made = {}

    def share(rows, name, make):
        if (rows, name) not in made:
            made[rows, name] = make()
        return made[rows, name]

    heads = ["spoiler", {"use": "svm", "C": 1.0}, {"use": "svm", "C": 9.0}, "knn", "naive-bayes"]
    heads.append({"use": "best-of", "heads": ["knn", {"use": "svm", "C": [1.0, 9.0]}]})
    for head in heads:
        alone, shared = Trained(head, scale=scale), Trained(head, scale=scale, share=share)
        wanted = run(alone, data, X.copy(), TRAIN, TEST)
        shared.fit(data.take(TRAIN), vectors)
        found = shared.answer(data.take(TEST), vectors)
        assert found.predictions.tolist() == wanted.predictions.tolist()
        np.testing.assert_allclose(found.probabilities, wanted.probabilities, atol=1e-12)
    assert np.array_equal(X, given)
    names = [name.split("-")[0] for _, name in made]
    assert sorted(names) == ["inner", "kernel", "test", "train"]
    # other train rows, and vectors that were changed for the test, share nothing of these
    shared = Trained("knn", scale=scale, share=share)
    shared.fit(data.take(TEST), vectors)
    shared.answer(data.take(TRAIN), Vectors(X.round(1), vectors.rows))
    assert len({rows for rows, _ in made}) == 2
    assert len(made) == 5


def classes(labels, group=None):
    table = pd.DataFrame({"x": np.arange(float(len(labels))), "y": pd.Series(labels)})
    extra = {} if group is None else {"g": group}
    return Dataset.from_table(
        table.assign(**extra), "y", kind="classification", group="g" if group is not None else None
    )


def numbers(values):
    table = pd.DataFrame({"x": np.arange(float(len(values))), "y": values})
    return Dataset.from_table(table, "y", kind="regression")


class Fixed:
    """An estimator with fixed predictions."""

    def __init__(self, labels, probabilities=None, classes=None):
        self.labels = labels
        if probabilities is not None:
            self.predict_proba = lambda X: probabilities
        if classes is not None:
            self.classes_ = np.array(classes)

    def predict(self, X):
        return self.labels


ABC = classes(list("abca"), group=list("gghh"))


def test_probabilities_have_a_column_for_a_class_without_train_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 2))
    model = LogisticRegression().fit(X, np.array(["c", "a"] * 10))
    found = predict_checked(model, X[:4], ABC, "logistic")
    assert found.classes == ("a", "b", "c")
    np.testing.assert_array_equal(found.probabilities[:, [0, 2]], model.predict_proba(X[:4]))
    assert (found.probabilities[:, 1] == 0).all()
    assert found.predictions.tolist() == model.predict(X[:4]).tolist()
    assert found.target.tolist() == list("abca")
    assert found.group.tolist() == list("gghh")


def test_the_order_of_the_estimators_classes_does_not_matter():
    model = Fixed(list("aabc"), np.array([[0.2, 0.5, 0.3]] * 4), ["c", "a", "b"])
    assert predict_checked(model, None, ABC, "m").probabilities.tolist() == [[0.5, 0.3, 0.2]] * 4


@pytest.mark.parametrize("model", [RidgeClassifier(), SVC()])
def test_without_probabilities_the_label_has_probability_one(model):
    X = np.array([[0.0], [1.0], [2.0], [0.1]])
    model.fit(X, list("abca"))
    found = predict_checked(model, X, ABC, "m")
    column = {"a": 0, "b": 1, "c": 2}
    expected = np.eye(3)[[column[label] for label in found.predictions]]
    np.testing.assert_array_equal(found.probabilities, expected)


@pytest.mark.parametrize(
    ("labels", "predicted", "texts"),
    [
        ([0, 1, 1], np.array([1.0, 0.0, 1.0]), ["1", "0", "1"]),
        ([0.0, 1.0, 1.0], np.array([1, 0, 1]), ["1.0", "0.0", "1.0"]),
        ([False, True, True], np.array([1, 0, 1]), ["True", "False", "True"]),
        (["0", "1", "1"], np.array([1, 0, 1]), ["1", "0", "1"]),
        (["NA", "n a", "NA"], np.array([["n a"], ["NA"], ["NA"]]), ["n a", "NA", "NA"]),
        ([0, 1, 1], pd.Series([1, 0, 1]), ["1", "0", "1"]),
    ],
)
def test_labels_are_written_as_in_the_dataset(labels, predicted, texts):
    found = predict_checked(Fixed(predicted), None, classes(labels), "m")
    assert found.predictions.tolist() == texts
    assert set(texts) == set(found.classes)


@pytest.mark.parametrize(
    ("labels", "chances", "names", "word"),
    [
        (["a"] * 3, None, None, r"m\.predict .*\(3,\)"),
        (np.eye(4), None, None, r"m\.predict .*\(4, 4\)"),
        (list("abcd"), None, None, r'm\.predict .*"d"'),
        (np.array([0.0, 1, 2, np.nan]), None, None, r'm\.predict .*"0\.0"'),
        (list("abca"), np.ones((4, 2)) / 2, list("ad"), 'classes_ .*"d"'),
        (list("abca"), np.ones((4, 2)) / 2, None, r"predict_proba .*\(4, 2\)"),
        (list("abca"), np.ones(4), None, r"predict_proba .*\(4,\)"),
        (list("abca"), np.full((4, 3), np.nan), None, "predict_proba .*12"),
        (list("abca"), np.full((4, 3), "x"), None, "predict_proba .*numbers"),
        (list("abca"), np.ones((4, 3)), None, r"predict_proba .*\[1.0, 1.0, 1.0\] \(row 0\)"),
        (list("abca"), np.array([[1, 1, -1]] * 4), None, "predict_proba"),
    ],
)
def test_wrong_predictions_are_refused(labels, chances, names, word):
    with pytest.raises(ContractError, match=word):
        predict_checked(Fixed(labels, chances, names), None, ABC, "m")


def test_numbers_are_checked_too():
    data = numbers([1.5, 2.5])
    found = predict_checked(Fixed(np.array([[1], [2]])), None, data, "m")
    assert (found.predictions.tolist(), found.target.tolist()) == ([1, 2], [1.5, 2.5])
    assert (found.answers, found.truths, found.probabilities) == ("numbers", "numbers", None)
    for wrong in ([1.0, np.nan], [1.0, np.inf], ["a", "b"]):
        with pytest.raises(ContractError, match=r"m\.predict"):
            predict_checked(Fixed(wrong), None, data, "m")


def test_the_baseline_is_the_class_frequency_or_the_mean_of_the_train_rows():
    found = baseline(np.array(list("ccca")), ABC)
    assert found.predictions.tolist() == ["c"] * 4
    assert found.probabilities.tolist() == [[0.25, 0, 0.75]] * 4
    assert found.target.tolist() == list("abca")
    assert found.group.tolist() == list("gghh")
    assert baseline(np.array([1, 2, 6]), numbers([1.5, 2.5])).predictions.tolist() == [3, 3]


@pytest.mark.parametrize(("odd", "usual"), [("outlier", "normal"), ("a", "b")])
def test_as_many_are_flagged_as_the_rarer_class_has_members(odd, usual):
    data = classes([usual, odd, usual, usual, usual])
    got = flag_outliers(np.array([1.0, 9.0, 2.0, 2.0, 0.0]), data, data.shares())
    assert got.predictions.tolist() == [usual, odd, usual, usual, usual]
    assert score("acc", got) == (1.0, "")
    column = got.classes.index(odd)
    assert got.probabilities[:, column].tolist() == pytest.approx(
        [2 / 6, 5 / 6, 3.5 / 6, 3.5 / 6, 1 / 6]
    )
    assert score("auc", got) == (1.0, "")


def test_only_two_classes():
    data = classes(["a", "b", "c"])
    with pytest.raises(DefinitionError, match="two classes.* 3"):
        flag_outliers(np.zeros(3), data, data.shares())


def test_predictions_with_an_index_are_matched_by_it():
    table = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": [0.5, 1.5, 2.5, 3.5]})
    data = Dataset.from_table(table, "y", kind="regression")

    class Sorted:
        def predict(self, X):
            return X["x"].sort_values(ascending=False)

    found = predict_checked(Sorted(), data.frame(), data, "sorted")
    assert found.predictions.tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_labels_and_probabilities_of_logistic_regression_come_from_one_product(classes, dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5)).astype(dtype)
    truth = np.digitize(X[:, 0] + rng.standard_normal(200), [0.0, 0.8][: classes - 1])
    data = table(truth, "classification")
    head = LogisticRegression().fit(X, truth)
    answers = predict_checked(head, X, data, "head")
    assert answers.predictions.tolist() == [str(label) for label in head.predict(X)]
    assert np.array_equal(answers.probabilities, head.predict_proba(X))
