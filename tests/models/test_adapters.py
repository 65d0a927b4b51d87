"""User objects and fitted pipelines are converted to a Model, or refused with a reason."""

import functools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import karat
from karat.errors import ContractError
from karat.execution.plan import PlannedTask, decline_reason
from karat.ext.models.sentence_models import SentenceTransformerObject
from karat.models.adapters import NOTE, FittedPredictor, adapt, is_vector_file
from karat.models.model_identity import object_identity
from karat.models.vector_files import VectorFile


class Roles:
    """Records the keyword arguments of its calls."""

    def __init__(self, prompts=None):
        self.calls = []
        if prompts is not None:
            self.prompts = prompts

    def _encode(self, texts, **given):
        self.calls.append({name: value for name, value in given.items() if value is not None})
        return [[1.0] for _ in texts]


class ByName(Roles):
    def encode(self, texts, batch_size=32, prompt_name=None, prompt=None):
        return self._encode(texts, prompt_name=prompt_name, prompt=prompt)


class ByText(Roles):
    def encode(self, texts, prompt=None):
        return self._encode(texts, prompt=prompt)


class ByTask(Roles):
    def encode(self, texts, *, task=None):
        return self._encode(texts, task=task)


class ByInputType(Roles):
    def encode(self, texts, input_type=None):
        return self._encode(texts, input_type=input_type)


class Symmetric(Roles):
    def encode(self, texts, **options):
        return self._encode(texts, **options)


E5 = {"query": "query: ", "passage": "passage: "}


@pytest.mark.parametrize(
    ("thing", "query", "document", "prompts"),
    [
        (ByName(), {"prompt_name": "query"}, {"prompt_name": "document"}, "prompt_name=query"),
        (ByName(E5), {"prompt_name": "query"}, {"prompt_name": "passage"}, "query: "),
        (ByName({"query": "q", "document": ""}), {"prompt_name": "query"}, {}, "q"),
        (ByText(E5), {"prompt": "query: "}, {"prompt": "passage: "}, "query: "),
        (ByTask(), {"task": "query"}, {"task": "document"}, "task=query"),
        (ByInputType(), {"input_type": "query"}, {"input_type": "document"}, "input_type=query"),
    ],
)
def test_an_object_gets_the_role_in_a_parameter_of_encode(thing, query, document, prompts):
    encoder = adapt(thing, "m").prototype
    assert encoder.uses_roles and encoder.prompt_for("query") == prompts
    for role in ("query", "document", ""):
        encoder.encode(["a"], role=role)
    assert thing.calls == [query, document, {}]


@pytest.mark.parametrize("thing", [Symmetric(), Symmetric(E5), ByText()])
def test_an_object_without_such_a_parameter_gets_no_role(thing):
    encoder = adapt(thing, "m").prototype
    assert not encoder.uses_roles
    encoder.encode(["a"])
    assert thing.calls == [{}]
    assert encoder.declared_prompts == list(getattr(thing, "prompts", ()))


ENTITIES = pd.Series(["Rome", "Oslo", "Ur"], index=["rome", "oslo", "ur"])
TWO = np.array([[1.0, 2.0], [3.0, 4.0]])


def looked_up(thing):
    model = adapt(thing)
    assert (model.role, model.takes, model.stateless) == ("encoder", ("entity", "text"), True)
    return model.prototype.transform(ENTITIES)


class Gensim:
    """As gensim's KeyedVectors, with the keys in another order than the rows."""

    key_to_index = {"oslo": 1, "rome": 0}
    vectors = TWO


@pytest.mark.parametrize(
    "thing",
    [
        {"rome": [1, 2], "oslo": [3, 4]},
        {"rome": np.array([1.0, 2.0]), "oslo": np.array([3.0, 4.0])},
        pd.DataFrame(TWO, index=["rome", "oslo"]),
        pd.DataFrame([[3.0, 4.0], [1.0, 2.0]], index=["oslo", "rome"]),
        Gensim(),
    ],
    ids=["dict of lists", "dict of arrays", "frame", "frame in another order", "gensim"],
)
def test_tables_of_vectors_are_looked_up_by_id(thing):
    np.testing.assert_array_equal(looked_up(thing), [[1, 2], [3, 4], [np.nan, np.nan]])


def test_the_words_of_a_text_are_averaged_whatever_holds_their_vectors():
    class Word2Vec:
        wv = Gensim()

    for thing in (Gensim(), Word2Vec()):
        found = adapt(thing).prototype.encode(["Rome, OSLO and Rome!", "rome", "Ur", ""])
        third = [(1 + 3 + 1) / 3, (2 + 4 + 2) / 3]
        nan = [np.nan, np.nan]
        np.testing.assert_allclose(found, [third, [1, 2], nan, nan], rtol=1e-6)


class Sentences:
    """As a SentenceTransformer."""

    def encode(self, sentences):
        assert isinstance(sentences, list)
        return np.array([[len(s), s.count("a")] for s in sentences])


def test_an_object_with_encode_is_a_sentence_encoder():
    model = adapt(Sentences())
    assert (model.name, model.role, model.takes) == ("Sentences", "encoder", ("text", "entity"))
    assert model.stateless
    assert model.prototype.transform(pd.Series(["aab", 7])).tolist() == [[3, 2], [1, 0]]


def test_a_sentence_transformer_is_identified_by_its_weights():
    kind = type("SentenceTransformer", (Sentences,), {"__module__": "sentence_transformers.model"})
    kind.encode = lambda self, texts, prompt, show_progress_bar: [[len(text)] for text in texts]
    kind.__iter__ = lambda self: iter([object()])  # its modules
    model = adapt(kind())
    assert isinstance(model.prototype, SentenceTransformerObject)
    assert model.prototype.transform(["aab"]) == [[3]]
    assert object_identity(model.prototype) is None  # a module of another library
    assert not isinstance(adapt(Sentences()).prototype, SentenceTransformerObject)


@pytest.mark.parametrize(
    "thing, role, texts",
    [
        (TfidfVectorizer(), "encoder", True),
        (CountVectorizer, "encoder", True),
        (HashingVectorizer(), "encoder", True),
        (make_pipeline(TfidfVectorizer(), TruncatedSVD()), "encoder", True),
        (make_pipeline(TfidfVectorizer(), LogisticRegression()), "predictor", True),
        (PCA(), "encoder", False),
        (OneHotEncoder(), "encoder", False),
        (make_pipeline(PCA()), "encoder", False),
        (KMeans(), "encoder", False),
        (Ridge, "predictor", False),
    ],
)
def test_scikit_learn_tags_decide_role_and_modality(thing, role, texts):
    assert adapt(thing).role == role
    assert adapt(thing).takes == (("text", "entity") if texts else None)


def lengths(items):
    return [[len(str(item))] for item in items]


def test_a_function_is_an_encoder_of_anything():
    model = adapt(lengths)
    assert (model.name, model.role, model.takes) == ("lengths", "encoder", None)
    assert model.stateless
    assert model.prototype.transform(["abc"]) == [[3]]


class Own(BaseEstimator):
    takes = "text"

    def __init__(self, size=3, path=Path("x"), empty=None):
        self.size = size
        self.path = path
        self.empty = empty

    def fit(self, items, y=None):
        return self

    def transform(self, items):
        return np.zeros((len(items), self.size))


def test_a_class_is_made_and_an_instance_kept():
    assert adapt(Own).prototype.size == 3
    own = Own(5)
    model = adapt(own)
    assert model.prototype is own
    assert (model.name, model.takes, model.params) == ("Own", ("text",), {"size": 5})


def test_the_given_name_and_role_win():
    both = LinearDiscriminantAnalysis()
    assert adapt(both).role == "predictor"
    named = adapt(both, "lda", "encoder")
    assert (named.name, named.role) == ("lda", "encoder")


def test_a_path_is_a_vector_file(tmp_path):
    file = tmp_path / "rdf2vec.v1.txt"
    file.write_text("rome 1 2\noslo 3 4\n")
    for given in (file, str(file)):
        model = adapt(given)
        assert model.name == "rdf2vec"
        assert isinstance(model.prototype, VectorFile)
    np.testing.assert_array_equal(looked_up(file), [[1, 2], [3, 4], [np.nan, np.nan]])


def test_what_looks_like_a_vector_file():
    assert all(map(is_vector_file, ("a.txt", "A.TXT", "a.vec.gz", "a.npz")))
    assert not any(map(is_vector_file, ("onehot", "a.txt.zip", "txt")))


class Picky:
    def __init__(self, size):
        self.size = size

    def transform(self, items):
        return items


class Explodes:
    def __init__(self):
        raise RuntimeError("no license")

    def transform(self, items):
        return items


@pytest.mark.parametrize(
    "thing, match",
    [
        (Picky, "Picky.*size"),
        (Explodes, "RuntimeError: no license"),
        (5, "int is not a model"),
        (pd.Series([1.0]), "Series is not a model"),
        ({"a": [1, 2], "b": [1]}, r"\(1,\), \(2,\)"),
        ({}, "none"),
        ({"a": 1.0, "b": 2.0}, r"\(\)"),
    ],
)
def test_other_objects_raise(thing, match):
    with pytest.raises(ContractError, match=match):
        adapt(thing)


def test_an_unknown_modality_raises():
    class Odd:
        takes = ("texts",)

        def transform(self, items):
            return items

    with pytest.raises(ContractError, match='"texts".*Did you mean "text"'):
        adapt(Odd())


def test_names_of_things_without_one():
    assert adapt(lambda items: items).name == "function"
    assert adapt(functools.partial(lengths)).name == "partial"
    assert adapt({"a": [1.0]}).name == "dict"


def test_the_version_is_that_of_the_package():
    assert adapt(Ridge()).version == sklearn.__version__
    assert adapt(lengths).version == ""


TABLE = pd.DataFrame({"x": range(20), "z": [1, 2] * 10})
CLASSES = np.repeat(["low", "high"], 10)


def pipeline():
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(TABLE[["x"]], CLASSES)


def weights(of):
    return [*of[-1].coef_.ravel(), *of[-1].intercept_, *of[0].mean_, *of[0].scale_]


def test_it_learns_nothing():
    given = pipeline()
    before = weights(given)
    fitted = adapt(FittedPredictor(given), "mine").fresh(7, "classification")
    fitted.fit(TABLE[["x"]], CLASSES[::-1])
    assert weights(given) == before
    assert fitted.pipeline is given
    assert np.array_equal(fitted.predict_proba(TABLE[["x"]]), given.predict_proba(TABLE[["x"]]))


def test_every_fold_asks_the_one_pipeline(two_classes, tmp_path):
    given = pipeline()
    task = two_classes(corruptions={"noise_gaussian": [0.5]})
    (run,) = karat.evaluate({"mine": FittedPredictor(given)}, task, output=tmp_path)
    table = run.results()
    assert set(table["status"]) == {"ok"}
    assert set(table["notes"]) == {NOTE}
    expected = {tuple(row) for row in given.predict_proba(TABLE[["x"]]).tolist()}
    assert given.classes_.tolist() == list(task.dataset.classes)
    for fold in (0, 1):
        found = [tuple(row) for row in run.predictions("halves", fold).probabilities.tolist()]
        assert len(set(found)) == 10 and set(found) <= expected


def test_what_is_not_fitted_is_refused():
    with pytest.raises(ContractError, match="Pipeline"):
        FittedPredictor(make_pipeline(StandardScaler(), LogisticRegression()))
    with pytest.raises(ContractError, match="StandardScaler"):
        FittedPredictor(StandardScaler().fit([[1.0]]))


def test_unknown_classes_raise():
    with pytest.raises(ContractError, match='"middle".*high, low'):
        FittedPredictor(pipeline()).fit(TABLE[["x"]], np.array([*CLASSES[:-1], "middle"]))


def test_labels_may_be_written_otherwise():
    known = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    for y in (["0", "1"], [0.0, 1.0], [1, 1]):
        FittedPredictor(known).fit([[0.0], [1.0]], np.array(y))


def test_missing_columns_raise():
    with pytest.raises(ContractError, match='"x"'):
        FittedPredictor(pipeline()).fit(TABLE[["z"]], CLASSES)
    FittedPredictor(pipeline()).fit(TABLE, CLASSES)


def test_it_declines_the_other_kind(line, two_classes):
    numbers = FittedPredictor(LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0]))
    assert numbers.declines("classification") == "it is for regression, not classification"
    reason = "it is for classification, not regression"
    assert FittedPredictor(pipeline()).declines("regression") == reason
    for task, why in ((line(), ""), (two_classes(), numbers.declines("classification"))):
        assert decline_reason(adapt(numbers), PlannedTask(task, task.dataset)) == why


def test_numbers_and_strangers_objects_work():
    numbers = FittedPredictor(LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0]))
    assert numbers.fit([[5.0]], [9.0]).predict([[3.0]]) == pytest.approx([6.0])
    assert not hasattr(numbers, "predict_proba")

    class Own:
        def predict(self, X):
            return np.full(len(X), 4.0)

    own = FittedPredictor(Own())
    assert own.declines("classification") == own.declines("regression") == ""
    assert own.fit([[1.0]], [1.0]).predict([[1.0]]).tolist() == [4.0]
