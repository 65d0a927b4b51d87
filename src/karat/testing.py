"""Check whether a model, a metric or a corruption meets the requirements of its kind.

A component is run on small synthetic data. After a fatal failure, the requirements that could not
be tested are left out; they do not count as passed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd

from karat.core import registry
from karat.core.columns import ITEM_TYPES, column_items, frame_items
from karat.core.dataset import MODALITIES, PLURAL, Dataset
from karat.core.files import cell_text, fingerprint
from karat.core.predictions import Predictions, as_text
from karat.corruptions.corrupted_data import corrupt as see
from karat.corruptions.view import VECTORS, View
from karat.errors import DefinitionError, MissingExtra, did_you_mean
from karat.execution.workers import one_thread
from karat.metrics.metric import NEEDS, Metric, get_metric, score
from karat.models.adapters import adapt
from karat.models.model import Model, sklearn_tags

__all__ = ["Check", "check_corruption", "check_metric", "check_model"]

SEED = 42
#: how much a vector may change when its item is encoded with other rows
TOLERANCE = 1e-5
_FIX_RUN = 'Fix the error, encode such columns in an earlier step, or set takes = ("text",).'
_TYPES = {"classifier": "classification", "regressor": "regression"}


@dataclass(frozen=True)
class Check:
    """The outcome of one requirement.

    Attributes
    ----------
    requirement
        The data it was checked on and what is required, as "on texts: returns one row per item".
    passed
        Whether the component meets it.
    reason
        Why it does not: what was found, or the exception. Empty if it does.
    fix
        What to change. Empty if it does.
    """

    requirement: str
    passed: bool
    reason: str = ""
    fix: str = ""


def check_model(model: object, modality: str | None = None) -> list[Check]:
    """Return one check per requirement of an encoder or a predictor, for each modality it takes.

    Parameters
    ----------
    model
        A class or an object with ``transform`` (encoder) or ``predict`` (predictor), a function of
        texts, the path of a vector file, or a ``karat.models.model.Model``.
    modality
        "table", "text", "entity", "column" or "frame": check on this modality only. By default on
        all that the model declares in ``takes``; if it declares none, on all, and only those that
        work are reported.

    Returns
    -------
    list of Check
        Each with ``requirement``, ``passed`` and, if it failed, ``reason`` and ``fix``. Exceptions
        of the model become failed checks; a model that cannot run here (a missing library or file)
        is one failed check.

    Raises
    ------
    DefinitionError
        If ``modality`` is not a modality.
    ContractError
        If the object is not a model.

    >>> checks = check_model(lambda texts: [[len(t)] for t in texts[1:]], "text")
    >>> [check.reason for check in checks if not check.passed]
    ['149 rows for 150 items.']
    """
    if modality not in (None, *MODALITIES):
        near = did_you_mean(str(modality), MODALITIES)
        allowed = ", ".join(MODALITIES)
        raise DefinitionError(f'modality must be one of {allowed}, got "{modality}".{near}')
    model = adapt(model)
    if model.unavailable:
        reason, lacking, extra = model.unavailable.partition(": pip install ")
        fix = f"pip install {extra}" if lacking else "Provide what is missing, then check again."
        return [Check("can run here", False, reason, fix)]
    if model.role == "searcher":
        return run_trials({"on texts": partial(_try_searcher, model)}, lambda trial: trial.ended)
    takes = (modality,) if modality else model.takes
    if not modality and "entity" in (takes or ()) and _looks_up(model):
        takes = ("entity",)  # a lookup by id and a lookup by text are the same: check one
    kinds = ("classification",) if model.role == "encoder" else _kinds(model.prototype)
    checks: list[Check] = []
    for modalities, answers in product(
        [[choice] for choice in takes] if takes else [MODALITIES],
        [[choice] for choice in kinds] if kinds else [("classification", "regression")],
    ):
        trials = {}
        for taken, kind in product(modalities, answers):
            where = f"on {PLURAL[taken]}" + (f", {kind}" if model.role == "predictor" else "")
            trials[where] = partial(_try_model, model, _sample(taken, kind))
        checks += run_trials(trials, lambda trial: trial.ended)
    return checks


def _try_searcher(model: Model, trial: _Trial) -> None:
    """Check that a search model returns one finite score per query and document, twice the same."""
    documents, queries = ["a cat on a mat", "dogs bark", "the price of rice"], ["cat", "rice"]

    def search() -> np.ndarray:
        searcher = model.fresh(0, "items")
        searcher.index(documents)
        return np.asarray(searcher.scores(queries), dtype=float)

    with trial.check(
        "returns scores", "Implement index(documents) and scores(queries).", fatal=True
    ):
        scores = search()
    with trial.check("one score per query and document", "Return queries × documents."):
        require(scores.shape == (2, 3), f"got {scores.shape} for 2 queries and 3 documents.")
    with trial.check("scores are finite", "Return numbers."):
        require(bool(np.isfinite(scores).all()), "some scores are not finite.")
    with trial.check("the same scores again", "Do not change when used, or set random_state."):
        require(np.array_equal(scores, search()), "the second copy has other scores.")


def check_metric(name: str) -> list[Check]:
    """Return one check per requirement of a registered metric.

    It is computed on every kind of predictions that meets its ``needs``. A metric without needs
    must pass on at least one kind.

    Parameters
    ----------
    name
        The registered name; ``"hits@k"`` is checked as ``hits@10``.

    Returns
    -------
    list of Check
        As of ``check_model``. Exceptions of the metric become failed checks.

    Raises
    ------
    DefinitionError
        If no metric has this name.

    >>> all(check.passed for check in check_metric("acc"))
    True
    """
    metric = get_metric(f"{name[:-1]}10" if name.endswith("@k") else name)
    trials = {
        f"on {what}": partial(_try_metric, metric, pair[0], pair[1])
        for what, pair in _sample_predictions().items()
        if all(NEEDS[need][1](pair[0]) for need in metric.needs)
    }
    if not trials:
        reason = f"no kind of predictions meets all its needs: {', '.join(metric.needs)}."
        return [Check("has needs that some data meet", False, reason, "Remove a need.")]
    return run_trials(trials, lambda trial: metric.needs or all(c.passed for c in trial.checks))


def check_corruption(name: str) -> list[Check]:
    """Return one check per requirement of a registered corruption.

    It is applied to a table, to texts or, if it takes these, to columns, to whole tables or to a
    matrix. One that works on tables only, or on texts only, is reported on these only.

    Parameters
    ----------
    name
        The registered name.

    Returns
    -------
    list of Check
        As of ``check_model``. Exceptions of the corruption become failed checks.

    Raises
    ------
    DefinitionError
        If no corruption has this name.

    >>> all(check.passed for check in check_corruption("typos"))
    True
    """
    if VECTORS in getattr(registry.corruptions.get(name), "takes", ()):
        return run_trials({"on vectors": partial(_try_on_vectors, name)}, lambda trial: trial.ended)
    takes = getattr(registry.corruptions.get(name), "takes", ())
    others = [taken for taken in ITEM_TYPES if taken in takes]
    plain = [taken for taken in ("table", "text") if taken in takes or not others]
    trials = {
        f"on {PLURAL[taken]}": partial(_try_corruption, name, _sample(taken, "classification"))
        for taken in (*plain, *others)
    }
    return run_trials(trials, lambda trial: trial.ended)


# -- trials ---------------------------------------------------------------------------------


class _Broken(Exception):
    """A requirement is not met; the message is the reason."""


def require(condition: object, reason: str) -> None:
    """Raise Broken with a reason unless the condition holds."""
    if not condition:
        raise _Broken(reason)


class _Trial:
    """The requirements tested on one kind of data."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.checks: list[Check] = []
        self.ended = self.changed = self.drew = False

    @contextmanager
    def check(self, text: str, fix: str, *, fatal: bool = False) -> Iterator[None]:
        """Record whether the block meets a requirement; a fatal failure ends the trial."""
        reason = ""
        try:
            yield
        except _Broken as broken:
            reason = str(broken)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # includes sys.exit and panics of Rust libraries
            reason = f"{type(error).__name__}: {error}"
            fix = str(error).partition(": ")[2] if isinstance(error, MissingExtra) else fix
        check = Check(f"{self.where}: {text}", not reason, reason, fix if reason else "")
        self.checks.append(check)
        if reason and fatal:
            raise _Broken

    @contextmanager
    def watched(self, *data: object) -> Iterator[None]:
        """Record whether the block changes the data or numpy's global random state."""
        marks, state = [_mark(part) for part in data], np.random.get_state()
        yield
        self.changed = marks != [_mark(part) for part in data]
        self.drew = repr(state) != repr(np.random.get_state())
        np.random.set_state(state)

    def check_watched(self) -> None:
        """Add the checks of what was watched."""
        with self.check("does not modify its input", "Modify a copy."):
            require(not self.changed, "its input was modified in place.")
        with self.check("does not use np.random globally", "Use np.random.default_rng(seed)."):
            require(not self.drew, "the state changed.")


def run_trials(
    trials: Mapping[str, Callable[[_Trial], None]], good: Callable[[_Trial], object]
) -> list[Check]:
    """Return the checks of all good trials, or of the one that passed most if none is good."""
    tried, state = [_Trial(where) for where in trials], np.random.get_state()
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for trial, steps in zip(tried, trials.values(), strict=True):
            with suppress(_Broken):
                steps(trial)
                trial.ended = True
    np.random.set_state(state)
    best = max(tried, key=lambda trial: sum(check.passed for check in trial.checks))
    return [check for trial in filter(good, tried) for check in trial.checks] or best.checks


def _mark(data: object) -> str:
    return str(data.tolist()) if isinstance(data, np.ndarray) else fingerprint(data)


def require_equal(
    first: Sequence[np.ndarray], second: Sequence[np.ndarray], close: float = 0.0
) -> None:
    """Raise Broken unless two lists of arrays are equal."""
    for a, b in zip(first, second, strict=True):
        require(a.shape == b.shape, f"the shapes are {a.shape} and {b.shape}.")
        floats = a.dtype.kind == b.dtype.kind == "f"
        equal = np.isclose(a, b, close, close, equal_nan=True) if floats else a == b
        require(equal.all(), f"{np.sum(~equal)} of {equal.size} values differ.")


def _sample(modality: str, kind: str) -> Dataset:
    """Return a dataset of 200 items, edge cases included."""
    rng, i = np.random.default_rng(7), np.arange(200)
    weight = rng.normal(50.0, 10.0, 200)
    words = [a + b for a in ("so", "mi", "ka", "re", "tu") for b in ("lar", "nde", "pi", "mó")]
    texts = [" ".join(rng.choice(words, size=3 + n % 5)) + f" w{n % 150}" for n in i]
    color = rng.choice(["red", "green", "blue"], size=200).astype(object)
    color[0], color[5::11] = "violet", None  # row 0 is a test row: a value not seen in training
    columns = {
        "count": i % 9,
        "weight": np.where(i % 7 == 3, np.nan, weight),
        "color": color,
        "size": pd.Categorical(rng.choice(["S", "M", "L"], size=200)),
        "bought": pd.Timestamp("2024-01-30") + pd.to_timedelta(i * 11, unit="D"),
        "fresh": i % 2 == 0,
        "name": texts,
    }
    texts[:6] = ["", " ", "?!", "Größe 数 🙂", "a\tb\nc", "long " * 300]
    table, ids = pd.DataFrame(columns), [f"http://example.org/entity/Q{n}" for n in i]
    makers: dict[str, Callable[[], pd.DataFrame | pd.Series]] = {
        "table": lambda: table,
        "text": lambda: pd.Series(texts, dtype=object),
        "entity": lambda: pd.Series(texts, index=ids),
        "column": lambda: _sample_columns(table),
        "frame": lambda: _sample_frames(table),
    }
    items = makers[modality]()
    truth = weight + i % 9 if kind == "regression" else np.where(weight > 50, "high", "low")
    return Dataset("sample", items, pd.DataFrame({"item": items.index}), truth, kind, modality)


def _sample_columns(table: pd.DataFrame) -> pd.Series:
    """Return 200 columns of tables, with empty, missing and repeated headers."""
    tables = {f"table {n}": table.iloc[n : n + 1 + n % 5] for n in range(0, 200, 7)}
    tables["table 7"] = tables["table 7"].set_axis(["", None, "a", "a", 5, "Größe 数", "x"], axis=1)
    tables["table 14"] = tables["table 14"].assign(color=None)
    return column_items(tables).iloc[:200]


def _sample_frames(table: pd.DataFrame) -> pd.Series:
    """Return 200 tables of different shapes."""
    tables = {f"table {n}": table.iloc[n : n + 1 + n % 5, : 1 + n % 7] for n in range(200)}
    tables["table 1"] = tables["table 1"].set_axis(["", None], axis=1)
    tables["table 2"] = tables["table 2"].iloc[:0]
    return frame_items(tables)


def _looks_up(model: Model) -> bool:
    return callable(getattr(model.prototype, "vocabulary", None))


def _kinds(prototype: object) -> list[str]:
    """Return the kinds of target that a predictor declares; empty if it declares none."""
    if hasattr(prototype, "declines"):
        return [kind for kind in ("classification", "regression") if not prototype.declines(kind)]
    declared = getattr(sklearn_tags(prototype), "estimator_type", None)
    return [kind for name, kind in _TYPES.items() if name == declared]


def _try_model(model: Model, data: Dataset, trial: _Trial) -> None:
    act, judge = (_embed, _try_vectors) if model.role == "encoder" else (_predict, _try_answers)
    if data.modality == "entity" and _looks_up(model):
        with trial.check("lists its ids", "Return (ids, matrix), each id once.", fatal=True):
            data = _lookup_sample(model.prototype)
    items, truth, held = data.items, np.asarray(data.target), np.arange(len(data)) % 4 == 0
    parts = items[~held], truth[~held], items[held]
    with trial.check("can be cloned unfitted", "Only store parameters in __init__.", fatal=True):
        model.fresh(SEED, data.kind)
    with trial.check("runs", _FIX_RUN, fatal=True):
        with trial.watched(*parts):
            fitted, first = act(model, data.kind, *parts)
    judge(trial, fitted, first, *parts)
    trial.check_watched()
    tags = sklearn_tags(model.prototype)
    if act is _embed and not model.stateless and not (tags and tags.target_tags.required):
        with trial.check("fits without a target", "Accept y=None in fit: some tasks hide y."):
            _embed(model, data.kind, parts[0], None, parts[2])
    with trial.check("is reproducible with a fixed seed", "Use random_state for all randomness."):
        other = slice(-len(parts[1]), None)  # this copy must not affect the next one
        act(model, data.kind, items[other], truth[other], parts[2])
        require_equal(first, act(model, data.kind, *parts)[1])
    if not trial.checks[-1].passed:
        return  # not reproducible: further comparisons are meaningless
    with trial.check("can be pickled", "Drop what cannot be pickled in __getstate__."):
        require_equal(first, act(cloudpickle.loads(cloudpickle.dumps(model)), data.kind, *parts)[1])
    if act is _embed:
        with trial.check("encodes each row independently", "Do not fit in transform."):
            for rows in (slice(None, None, -2), slice(0, 1)):
                alone = _array(fitted.transform(parts[2].iloc[rows])).astype(float)
                require_equal([first[1][rows].astype(float)], [alone], TOLERANCE)


def _lookup_sample(prototype: Any) -> Dataset:
    ids, matrix = prototype.vocabulary()
    require(len(set(ids)) == len(matrix), f"{len(set(ids))} ids for {len(matrix)} vectors.")
    items = pd.Series("known", index=[*ids[:199], "an entity without a vector"])
    truth, questions = np.resize(["high", "low"], len(items)), pd.DataFrame({"item": items.index})
    return Dataset("sample", items, questions, truth, "classification", "entity")


def _array(values: np.ndarray) -> np.ndarray:
    values = values.detach().cpu() if hasattr(values, "detach") else values
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def _embed(
    model: Model,
    kind: str,
    X: pd.DataFrame | pd.Series,
    y: np.ndarray | None,
    test: pd.DataFrame | pd.Series,
) -> tuple[Any, list[np.ndarray]]:
    encoder, train = model.fresh(SEED, kind), (X,) if y is None else (X, y)
    if hasattr(encoder, "fit_transform") and not model.stateless:
        vectors = encoder.fit_transform(*train)
    else:
        if not model.stateless:
            encoder.fit(*train)
        vectors = encoder.transform(X)
    return encoder, [_array(vectors), _array(encoder.transform(test))]


def _try_vectors(
    trial: _Trial,
    fitted: object,
    outputs: list[np.ndarray],
    X: pd.DataFrame | pd.Series,
    y: np.ndarray,
    test: pd.DataFrame | pd.Series,
) -> None:
    with trial.check("returns a 2-D array of finite numbers", "Return a 2-D array.", fatal=True):
        vectors = [values.astype(float) for values in outputs]
        shapes = [values.shape for values in vectors]
        require(all(len(shape) == 2 and shape[1] for shape in shapes), f"the shapes are {shapes}.")
        require(not any(np.isinf(values).any() for values in vectors), "some are infinite.")
    with trial.check("returns one row per item", "Keep the order of items.", fatal=True):
        for values, items in zip(vectors, (X, test), strict=True):
            require(len(values) == len(items), f"{len(values)} rows for {len(items)} items.")
    with trial.check("returns NaN only in whole rows", "Fill NaN; a NaN row means no vector."):
        shares = np.concatenate([np.isnan(values).mean(axis=1) for values in vectors])
        require(np.isin(shares, (0, 1)).all(), f"{np.sum(shares % 1 > 0)} rows are partly NaN.")
    with trial.check("has one width for train and test items", "Set the width in fit."):
        (_, train), (_, tested) = (values.shape for values in vectors)
        require(train == tested, f"{train} for train items, {tested} for test items.")


def _predict(
    model: Model,
    kind: str,
    X: pd.DataFrame | pd.Series,
    y: np.ndarray | None,
    test: pd.DataFrame | pd.Series,
) -> tuple[Any, list[np.ndarray]]:
    predictor = model.fresh(SEED, kind)
    predictor.fit(X, y)
    chances = kind == "classification" and hasattr(predictor, "predict_proba")
    methods = [predictor.predict, *([predictor.predict_proba] if chances else [])]
    return predictor, [_array(method(test)) for method in methods]


def _try_answers(
    trial: _Trial, fitted: Any, outputs: list[np.ndarray], X: Any, y: np.ndarray, test: Any
) -> None:
    rows, labels = len(test), as_text(y)
    with trial.check("returns one prediction per row", "Return a 1-D array.", fatal=True):
        require(outputs[0].size == rows == len(outputs[0]), f"{outputs[0].shape} for {rows} rows.")
    with trial.check("predicts training labels or finite numbers", "Fix predict."):
        if y.dtype.kind == "f":
            require(np.isfinite(outputs[0].astype(float)).all(), "some are NaN or infinite.")
        else:
            unseen = sorted(set(as_text(outputs[0].ravel())) - set(labels))
            require(not unseen, f"{unseen[:3]} are not training labels.")
    for chances in outputs[1:]:
        with trial.check("returns one probability per class of classes_", "Set classes_ in fit."):
            classes = as_text(getattr(fitted, "classes_", np.unique(labels)))
            require(set(classes) <= set(labels), f"{list(classes)} are not all labels.")
            require(chances.shape == (rows, len(classes)), f"the shape is {chances.shape}.")
        with trial.check("returns probabilities that sum to 1", "Divide each row by its sum."):
            require(np.allclose(chances.sum(axis=1), 1, atol=1e-3), f"{chances.sum(axis=1)[:3]}")
            require(chances.min() >= 0, "some are negative.")
    with trial.check("predicts a single row", "Predict each row independently."):
        require(
            len(fitted.predict(test.iloc[:1])) == 1, "it did not return exactly one prediction."
        )


def _sample_predictions() -> dict[str, list[Predictions]]:
    """Return perfect and shuffled predictions, by their kind."""
    rng, pairs = np.random.default_rng(3), {}
    for names in (("no", "yes"), ("a", "b", "c")):
        codes = np.arange(60) % len(names)
        both = np.array([codes, rng.permutation(codes)])
        labels_with_chances = zip(np.array(names)[both], np.eye(len(names))[both], strict=True)
        with_truth = partial(
            Predictions, target=np.array(names)[codes], truths="classes", classes=names
        )
        pairs[f"{len(names)} classes"] = [
            with_truth(labels, answers="classes", probabilities=chances)
            for labels, chances in labels_with_chances
        ]
        clusters = [with_truth(codes_or_order, answers="clusters") for codes_or_order in both]
        pairs[f"clusters of {len(names)} classes"] = clusters
    truth = rng.uniform(1, 9, 10)
    pairs["numbers"] = [Predictions(truth, truth), Predictions(rng.permutation(truth), truth)]
    chosen, lists = np.tile(np.arange(20) % 7 == 3, 3), np.repeat(["x", "y", "z"], 20)
    with_truth = partial(Predictions, target=chosen * 2.0, group=lists)
    pairs["ranked lists"] = [with_truth(chosen * 2.0), with_truth(rng.random(60))]
    with_truth = partial(Predictions, target=lists, answers="items", truths="items")
    pairs["ranks"] = [
        with_truth(lists, rank=np.ones(60)),
        with_truth(lists[::-1], rank=np.arange(60) + 1),
    ]
    return pairs


def _try_metric(metric: Metric, perfect: Predictions, other: Predictions, trial: _Trial) -> None:
    (low, high), sign = metric.range, 1 if metric.higher_is_better else -1
    with trial.check("returns a value", "Declare what it needs: needs=(...).", fatal=True):
        with trial.watched(perfect.predictions, perfect.target):
            best, value = (float(metric.compute(predictions)) for predictions in (perfect, other))
    with trial.check("stays in its range", "Declare its range=(low, high)."):
        require(low <= min(best, value) and max(best, value) <= high, f"{best:g} and {value:g}.")
    with trial.check("is best for perfect predictions", "Fix the metric or its range."):
        end = high if sign > 0 else low
        require(np.isclose(best, end) or np.isinf(end), f"it is {best:g}, not {end:g}.")
    with trial.check("declares the right direction", "Invert higher_is_better."):
        require(sign * best >= sign * value, f"perfect predictions: {best:g}, others: {value:g}.")
    with trial.check("does not depend on the order of rows", "Align by value, not position."):
        turned = metric.compute(other.take(np.random.default_rng(1).permutation(len(other))))
        require(np.isclose(turned, value), f"{value:g}, in another order {turned:g}.")
    with trial.check("raises only Undefined", "Raise karat's Undefined with a reason."):
        for rows in ([], [0], [0, 1]):
            value_of_few, why = score(metric.name, other.take(np.array(rows, dtype=int)))
            require(
                (value_of_few is None) == bool(why),
                f"{value_of_few} and {why!r} for {len(rows)} rows.",
            )
    trial.check_watched()


def _try_corruption(name: str, data: Dataset, trial: _Trial) -> None:
    corrupt, X, y = registry.corruptions.get(name), data.items, pd.Series(data.target)
    with trial.check("returns X and y in kind", "Return (X, y), X of the same type.", fatal=True):
        with trial.watched(X, y):
            seen = {s: corrupt(X, y, s, np.random.default_rng(5)) for s in (0.0, 0.1, 0.4)}
        require(all(type(items) is type(X) for items, _ in seen.values()), "X has another type.")
    with trial.check("returns one target per row", "Drop the same rows of X and y.", fatal=True):
        for items, truth in seen.values():
            require(len(items) == len(truth) > 0, f"{len(items)} rows and {len(truth)} targets.")
    none, low, high = (_cells(*corrupted) for corrupted in seen.values())
    with trial.check("changes nothing at severity 0", "Return X and y unchanged for severity 0."):
        require_equal([_cells(X, y)], [none])
        require(see(data, View(name, 0.0), SEED, 0) is data, "the view is not the original data.")
    with trial.check("changes the data", "Use severity."):
        require(
            high.shape != none.shape or (high != none).any(), "nothing changes at severity 0.4."
        )
    if none.shape == low.shape == high.shape:
        with trial.check("changes more at a higher severity", "Draw alike for every severity."):
            reverted = (low != none) & (high == none)
            require(not reverted.any(), f"{reverted.sum()} cells changed at 0.1 are not at 0.4.")
    with trial.check("is reproducible with the same generator", "Use rng for all randomness."):
        one, two = (see(data, View(name, 0.4), SEED, 0) for _ in range(2))
        require_equal([_cells(one.items, one.target)], [_cells(two.items, two.target)])
    if not {"classes", "target"} & set(getattr(corrupt, "needs", ())):
        with trial.check("works without y", "Return y=None as it is: some tasks have no y."):
            require(corrupt(X, None, 0.4, np.random.default_rng(5))[1] is None, "y is not None.")
    trial.check_watched()


def _cells(items: Any, target: Any) -> np.ndarray:
    """Return cells and targets as objects; missing cells are None, which equals itself."""
    if isinstance(items, pd.Series) and isinstance(items.iloc[0], tuple(ITEM_TYPES.values())):
        items = items.map(cell_text)
    return np.column_stack([items.astype(object).where(items.notna(), None), target])


def _try_on_vectors(name: str, trial: _Trial) -> None:
    corrupt, X = registry.corruptions.get(name), np.random.default_rng(7).normal(size=(60, 8))
    X[4] = np.nan  # an item without a vector
    with trial.check("returns vectors in shape", "Return (X, y), X a matrix.", fatal=True):
        with trial.watched():
            low, high, again = (
                np.asarray(corrupt(X.copy(), None, s, np.random.default_rng(5))[0])
                for s in (0.1, 0.4, 0.4)
            )
        require(low.shape == high.shape == X.shape, f"the shape is {low.shape}, not {X.shape}.")
    with trial.check("changes the data", "Use severity."):
        require((high[5:] != X[5:]).any(), "nothing changes at severity 0.4.")
    with trial.check("changes more at a higher severity", "Draw alike for every severity."):
        require(not ((low != X) & (high == X)).any(), "values changed at 0.1 are unchanged at 0.4.")
    with trial.check("is reproducible with the same generator", "Use rng for all randomness."):
        require_equal([high], [again])
    with trial.check("keeps rows of NaN", "Leave rows of NaN unchanged."):
        require(np.isnan(high[4]).all(), "a row of NaN became numbers.")
    trial.check_watched()
