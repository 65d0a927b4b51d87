"""Convert user objects to a Model; no base class is required.

Supported: a class or an instance with ``transform`` or ``predict``, a scikit-learn pipeline or
vectorizer, an object with ``encode`` (a SentenceTransformer), a function from items to a matrix, a
mapping or data frame of vectors, gensim ``KeyedVectors``, a PyKEEN pipeline result, the path of a
vector file, and an already fitted predictor (``FittedPredictor``).
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from karat.core import registry
from karat.core.dataset import MODALITIES
from karat.core.files import encodable
from karat.errors import (
    ContractError,
    Declined,
    DefinitionError,
    KaratError,
    MissingExtra,
    did_you_mean,
)
from karat.models.model import Items, Model, StatelessEncoder, TextEncoder, sklearn_tags
from karat.models.model_identity import model_identity
from karat.models.pickled_files import refuse_pickle
from karat.models.prompts import ROLE_PROMPTS, Prompts
from karat.models.vector_files import VectorFile, VectorLookup
from karat.models.vectors.decompression import plain_suffix
from karat.models.vectors.vector_formats import VECTOR_FILE_SUFFIXES

#: a note in every result, since Karat cannot check the training rows
NOTE = "fitted in advance, not on this training fold"


@dataclass(eq=False, repr=False)
class FunctionEncoder(TextEncoder):
    """Encoder that calls a function from items to a matrix; texts are passed as a series."""

    takes = None
    by_text = ("text",)
    #: None: the function gets all texts in one call
    chunk: ClassVar[int | None] = None

    function: Callable[[Any], Any]

    def transform(self, items: Items) -> Any:
        """Call the function with the items."""
        return self.function(items)

    def encode(self, texts: list[str]) -> Any:
        """Call the function with the texts."""
        return self.function(pd.Series(texts, dtype=object))


#: parameters of a method ``encode`` that take the role of the texts
ROLE_PARAMETERS = ("prompt_name", "prompt", "task", "input_type")


@dataclass(eq=False, repr=False)
class EncodeEncoder(TextEncoder):
    """Encoder that calls the ``encode`` method of an object.

    It takes what the object declares in ``takes``, otherwise texts and entities. Columns and whole
    tables are passed as a list, like texts. The role of texts is passed to the first parameter of
    ``ROLE_PARAMETERS`` that the method has: the name of the prompt, its text, or the role itself.
    """

    model: Any

    def __post_init__(self) -> None:
        self.takes = getattr(self.model, "takes", None) or TextEncoder.takes
        prompts = getattr(self.model, "prompts", None)
        self.prompts_ = dict(prompts) if isinstance(prompts, Mapping) else None
        accepted = _parameters(self.model.encode)
        usable = [name for name in ROLE_PARAMETERS if name in accepted]
        if self.prompts_ is None:  # the text of a prompt is unknown
            usable = [name for name in usable if name != "prompt"]
        self.role_parameter_ = usable[0] if usable else ""

    @property
    def uses_roles(self) -> bool:
        """Whether the object's method takes the role."""
        return bool(self.role_parameter_)

    @property
    def declared_prompts(self) -> list[str]:
        """The names of the object's own prompts."""
        return [name for name, text in (self.prompts_ or {}).items() if text]

    def prompt_for(self, role: str) -> str:
        """Return the prompt of a role, or the argument that replaces it."""
        arguments = self._role_argument(role)
        if self.prompts_ is not None and self.role_parameter_.startswith("prompt"):
            return Prompts(self.prompts_).of(role)
        return " ".join(f"{name}={value}" for name, value in arguments.items())

    def _role_argument(self, role: str) -> dict[str, str]:
        """Return the keyword argument of a role; empty if the object has no prompt for it."""
        name = self.role_parameter_
        if not role or not name:
            return {}
        if self.prompts_ is None or not name.startswith("prompt"):
            return {name: role}
        prompt_names = [key for key in ROLE_PROMPTS.get(role, (role,)) if self.prompts_.get(key)]
        return (
            {name: prompt_names[0] if name == "prompt_name" else self.prompts_[prompt_names[0]]}
            if prompt_names
            else {}
        )

    def encode(self, texts: list[Any], role: str = "") -> Any:
        """Return the vectors of texts, columns or tables."""
        return self.model.encode(texts, **self._role_argument(role))

    def transform(self, items: Items) -> Any:
        """Return one row per item."""
        tables = (pd.Series, pd.DataFrame)
        return self.encode([i if isinstance(i, tables) else str(i) for i in items])


def _parameters(method: Any) -> set[str]:
    """Return the names of a method's parameters; empty if they are unknown."""
    try:
        return set(inspect.signature(method).parameters)
    except (TypeError, ValueError):
        return set()


def adapt(thing: object, name: str | None = None, role: str | None = None) -> Model:
    """Return a Model; raise ContractError if the object is not a model.

    >>> adapt(lambda texts: [[len(t)] for t in texts], "length").role
    'encoder'
    """
    if isinstance(thing, Model):
        return thing
    if isinstance(thing, str | os.PathLike):
        refuse_pickle(Path(thing))
        thing = VectorFile(str(thing), format=_registered_format(Path(thing)))
    if inspect.isclass(thing):
        thing = _instance(thing)
    prototype = _wrapped(thing)
    return Model(
        name=name or _name(thing),
        prototype=prototype,
        role=role or _role(prototype),
        takes=_takes(prototype),
        params=_params(prototype),
        version=_version(thing),
        unavailable=_unavailable(prototype),
        depends_on=dependencies(name or _name(thing), getattr(thing, "depends_on", ())),
    )


def keeps_vectors(model: Model) -> bool:
    """Return whether vectors of earlier runs can be used: what they depend on is known.

    It is for models of Karat. A model of a user has to say so: it is a ``StatelessEncoder``, has
    ``cache = True`` or a ``fingerprint``, or declares what it reads in ``depends_on``. Any other
    class or function may read files, globals or the environment.

    >>> keeps_vectors(adapt(lambda texts: [[len(t)] for t in texts]))
    False
    """
    return bool(model.depends_on) or _says_so(model.prototype)


def _says_so(thing: object) -> bool:
    """Return whether an object is a model of Karat, or says that its vectors can be kept."""
    if isinstance(declared := getattr(thing, "cache", None), bool):
        return declared
    if isinstance(thing, FunctionEncoder | EncodeEncoder):
        inner = thing.function if isinstance(thing, FunctionEncoder) else thing.model
        return _says_so(inner)
    if (inner := getattr(thing, "encoder", None)) is not None and is_of_karat(thing):
        return _says_so(registry.models.get(inner) if isinstance(inner, str) else inner)
    class_of = thing if inspect.isclass(thing) else type(thing)
    return (
        is_of_karat(thing)
        or issubclass(class_of, StatelessEncoder)
        or callable(getattr(thing, "fingerprint", None))
    )


def is_of_karat(thing: object) -> bool:
    """Return whether an object or class is of Karat itself."""
    class_of = thing if inspect.isclass(thing) else type(thing)
    return class_of.__module__.partition(".")[0] == "karat"


def dependencies(model: str, declared: object, folder: Path | None = None) -> tuple[str, ...]:
    """Return what a model depends on, with absolute paths; relative ones are below ``folder``.

    >>> dependencies("m", ["env:HOME", "version:2"])
    ('env:HOME', 'version:2')
    """
    several = [declared] if isinstance(declared, str | os.PathLike) else declared
    if not isinstance(several, list | tuple) or not all(
        isinstance(path, str | os.PathLike) for path in several
    ):
        raise ContractError(
            f'{model}: depends_on must be a list of paths and "env:NAME", got {declared!r}.'
        )
    return tuple(
        text
        if (text := os.fspath(path)).startswith(("env:", "version:"))
        else str(((folder or Path()) / Path(text).expanduser()).absolute())
        for path in several
    )


def _unavailable(prototype: object) -> str:
    """Return why a model cannot run; an error of its own method is a reason too."""
    method = getattr(prototype, "unavailable", None)
    try:
        return str(method() or "") if callable(method) else ""
    except (Declined, MissingExtra) as error:
        return str(error)
    except KaratError:
        raise
    except Exception as error:
        return encodable(f"its unavailable() raised {type(error).__name__}: {error}")


def is_vector_file(text: str) -> bool:
    """Return whether a name looks like the path of a vector file.

    >>> is_vector_file("rdf2vec.txt"), is_vector_file("onehot")
    (True, False)
    """
    lowered = text.lower().removesuffix(".gz").removesuffix(".zst")
    return lowered.endswith(VECTOR_FILE_SUFFIXES)


def _registered_format(path: Path) -> str | None:
    """Return the registered vector format whose name is the ending of a file, if there is one.

    Built-in readers come first, and other files are read as text.
    """
    ending = plain_suffix(path)
    if ending in VECTOR_FILE_SUFFIXES or ending[1:] not in registry.vector_formats:
        return None
    return ending[1:]


def is_address(name: str) -> bool:
    """Return whether the name of a model is an address on the web, as of an endpoint.

    >>> is_address("http://localhost:8080/v1#bge-small"), is_address("onehot")
    (True, False)
    """
    return name.lower().startswith(("http://", "https://"))


def _instance(cls: type) -> Any:
    try:
        return cls()
    except KaratError:
        raise
    except Exception as error:
        raise ContractError(
            f"{cls.__name__}() without arguments fails ({type(error).__name__}: {error}); pass an "
            f"instance, for -m as a name of the module: encoder = {cls.__name__}(…), "
            f"-m {cls.__module__}:encoder."
        ) from error


def _wrapped(thing: object) -> Any:
    # vectors first: a data frame also has a method transform
    if (lookup := _known_vectors(thing)) is not None:
        return lookup
    if not is_of_karat(thing):
        for name in registry.adapters:
            if (adapted := registry.adapters.get(name)(thing)) is not None:
                return adapted
    if is_searcher(thing):
        return thing
    encodes = hasattr(thing, "transform") and not isinstance(thing, pd.Series)
    if encodes or (hasattr(thing, "predict") and hasattr(thing, "fit")):
        return thing
    if callable(getattr(thing, "encode", None)):
        return EncodeEncoder(thing)
    if callable(thing):
        return FunctionEncoder(thing)
    raise ContractError(
        f"{type(thing).__name__} is not a model: expected transform, predict and fit, encode, or "
        f"a callable. Run karat check for details."
    )


def _known_vectors(thing: object) -> VectorLookup | None:
    if isinstance(thing, pd.DataFrame):
        return VectorLookup(list(thing.index), thing.to_numpy())
    if isinstance(thing, Mapping):
        rows = [np.asarray(vector) for vector in thing.values()]
        shapes = {row.shape for row in rows}
        if len(shapes) != 1 or rows[0].ndim != 1:
            shape_list = ", ".join(sorted(str(shape) for shape in shapes)) or "none"
            raise ContractError(
                f"all vectors of a mapping must have the same length, got shapes: {shape_list}."
            )
        return VectorLookup(list(thing), np.stack(rows))
    return None


def is_searcher(thing: object) -> bool:
    """Return whether an object is a search model: it has ``index`` and ``scores``."""
    return all(callable(getattr(thing, name, None)) for name in ("index", "scores"))


def _role(prototype: object) -> str:
    if is_searcher(prototype):
        return "searcher"
    if getattr(sklearn_tags(prototype), "estimator_type", None) in ("classifier", "regressor"):
        return "predictor"
    return "encoder" if hasattr(prototype, "transform") else "predictor"


def _name(thing: object) -> str:
    if isinstance(thing, VectorFile):
        return Path(thing.path).name.split(".")[0] or Path(thing.path).name
    name = getattr(thing, "__name__", None) or getattr(thing, "name", None)
    return name if isinstance(name, str) and name != "<lambda>" else type(thing).__name__


def _takes(prototype: object) -> tuple[str, ...] | None:
    takes = getattr(prototype, "takes", None)
    if takes is None:
        steps = getattr(prototype, "steps", None)
        first = sklearn_tags(steps[0][1] if steps else prototype)
        inputs = getattr(first, "input_tags", None)
        texts = inputs is not None and inputs.string and not inputs.two_d_array
        return TextEncoder.takes if texts else None
    modalities = tuple([takes] if isinstance(takes, str) else takes)
    for modality in modalities:
        if modality not in MODALITIES:
            raise ContractError(
                f'{type(prototype).__name__}.takes: unknown modality "{modality}", expected '
                f"{', '.join(MODALITIES)}.{did_you_mean(str(modality), MODALITIES)}"
            )
    return modalities


def _params(prototype: object) -> dict[str, Any]:
    if not hasattr(prototype, "get_params"):
        return {}
    plain = (str, int, float, bool)
    parameters = prototype.get_params(deep=False)

    def is_plain(value: object) -> bool:
        if isinstance(value, dict):  # such as prompts by role
            return all(isinstance(part, plain) for part in [*value, *value.values()])
        return isinstance(value, plain)

    return {name: value for name, value in parameters.items() if is_plain(value)}


def _version(thing: object) -> str:
    from importlib import metadata

    root = getattr(thing, "package", None) or type(thing).__module__.partition(".")[0]
    try:
        return metadata.version({"sklearn": "scikit-learn"}.get(root, root))
    except (metadata.PackageNotFoundError, ValueError):
        return ""


class FittedPredictor:
    """Evaluate an already fitted pipeline or estimator.

    ``fit`` only checks that columns and classes match. The same pipeline is used for all folds, so
    it must not have been fitted on their test rows. Karat cannot check this; scores would be
    invalid.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier().fit([[0], [1]], ["no", "yes"])
    >>> FittedPredictor(tree).fit([[5]], ["yes"]).predict([[1], [0]]).tolist()
    ['yes', 'no']
    """

    def __init__(self, pipeline: Any) -> None:
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted

        name = type(pipeline).__name__
        if isinstance(pipeline, type) or not hasattr(pipeline, "predict"):
            raise ContractError(f"FittedPredictor needs a fitted object with predict, got {name}.")
        try:
            check_is_fitted(pipeline)
        except NotFittedError as error:
            raise ContractError(
                f"{name} is not fitted; pass it as it is, and Karat fits it in each fold."
            ) from error
        except TypeError:  # not a scikit-learn estimator
            pass
        self.pipeline = pipeline
        self.notes_ = [NOTE]
        self.takes = getattr(pipeline, "takes", None)

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedPredictor:
        # nothing in it changes, so all folds share it
        return self

    @property
    def classes_(self) -> Any:
        """The classes of the pipeline, if it has them."""
        return self.pipeline.classes_

    def declines(self, kind: str) -> str:
        """Return why it cannot predict this kind of target, or an empty string."""
        from sklearn.base import is_classifier, is_regressor

        if kind == "classification" and _passes(is_regressor, self.pipeline):
            return "it is for regression, not classification"
        if kind == "regression" and _passes(is_classifier, self.pipeline):
            return "it is for classification, not regression"
        return ""

    def fit(
        self, X: pd.DataFrame | pd.Series | np.ndarray, y: pd.DataFrame | pd.Series | np.ndarray
    ) -> FittedPredictor:
        """Check columns and classes."""
        columns = getattr(self.pipeline, "feature_names_in_", None)
        if columns is not None and isinstance(X, pd.DataFrame):
            missing = [str(name) for name in columns if name not in set(X.columns)]
            if missing:
                raise ContractError(
                    f'the data lack the column "{missing[0]}", which the pipeline was fitted on.'
                )
        if hasattr(self, "classes_"):
            classes = np.asarray(self.classes_).tolist()
            accepted = {*classes, *map(str, classes)}
            new = [label for label in np.unique(y).tolist() if not {label, str(label)} & accepted]
            if new:
                raise ContractError(
                    f'unknown class "{new[0]}": the pipeline was fitted on the classes '
                    f"{', '.join(map(str, classes[:10]))}."
                )
        return self

    def predict(self, X: pd.DataFrame | pd.Series | np.ndarray) -> Any:
        """Return the pipeline's predictions."""
        return self.pipeline.predict(X)

    @property
    def predict_proba(self) -> Any:
        """The pipeline's function of class probabilities, if it has one."""
        return self.pipeline.predict_proba


def _passes(check: Any, pipeline: Any) -> bool:
    try:
        return bool(check(pipeline))
    except Exception:  # not a scikit-learn estimator
        return False


def wrapped_model(encoder: object, options: dict[str, Any] | None) -> Model:
    """Return the Model for ``"package.module:Name"``, a class or an object.

    >>> wrapped_model("karat.models.text_encoders:TfIdf", {"ngrams": 2}).prototype
    TfIdf(ngrams=2)
    """
    thing = registry.models.get(encoder) if isinstance(encoder, str) else encoder
    name = encoder if isinstance(encoder, str) else type(encoder).__name__
    if inspect.isclass(thing):
        thing = registry.build(f'the encoder "{name}"', thing, options or {}, {})
    elif options:
        raise DefinitionError(f'options require a class, but "{name}" is an instance.')
    model = adapt(thing)
    if model.role != "encoder":
        raise ContractError(f'"{name}" is a {model.role}; expected an encoder with transform.')
    return model


def wrapped_fingerprint(model: Model, *others: object) -> str:
    """Return the identity of a wrapped model and other parameters.

    The code of a class given by name is not part of a pickle, so it is hashed here.
    """
    identity = model_identity(model)
    if identity is None:
        raise TypeError(f"{model.name} has no identity: it cannot be pickled.")
    return " ".join([identity, *map(repr, others)])
