"""Checks: which promises a stranger's model, metric or corruption breaks, and what to do about it.

A part is tried on small data of our own. What cannot be tried because an earlier promise is broken
is left out, never counted as kept.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd

from karat import registry
from karat.corruptions.view import VECTORS, View, see
from karat.dataset import MODALITIES, Dataset
from karat.metrics.base import NEEDS, Metric, get_metric, score
from karat.models.base import Model, tags_of
from karat.predictions import Predictions, as_text
from karat.trials import Check, Trial, need, report, same

SEED = 42
#: how far a vector may move when other rows stand beside its item
TOLERANCE = 1e-5
_MEND = 'Mend it, put a step before it that makes numbers of them, or set takes = ("text",).'
_TYPES = {"classifier": "classes", "regressor": "numbers"}
_PLURAL = {"table": "tables", "text": "texts", "entity": "entities"}


def check_model(model: Model, modality: str | None = None) -> list[Check]:
    """Return which promises an encoder or a predictor keeps, on each modality it takes.

    Where it does not say what it takes, it is tried on everything and what works is reported.

    >>> from karat.models.adapters import adapt
    >>> checks = check_model(adapt(lambda texts: [[len(t)] for t in texts[1:]]), "text")
    >>> [check.why for check in checks if not check.kept]
    ['149 rows for 150 items.']
    """
    if model.unavailable:
        why, lacking, extra = model.unavailable.partition(": pip install ")
        cure = f"pip install {extra}" if lacking else "Provide what is missing and check again."
        return [Check("can run here", False, why, cure)]
    takes = (modality,) if modality else _tried(model)
    kinds = ("classes",) if model.role == "encoder" else _kinds(model.prototype)
    checks: list[Check] = []
    for modalities, answers in product(
        [[each] for each in takes] if takes else [MODALITIES],
        [[each] for each in kinds] if kinds else [("classes", "numbers")],
    ):
        trials = {}
        for taken, kind in product(modalities, answers):
            where = f"on {_PLURAL[taken]}" + (f", {kind}" if model.role == "predictor" else "")
            trials[where] = partial(_try_model, model, _sample(taken, kind))
        checks += report(trials, lambda trial: trial.ended)
    return checks


def check_metric(name: str) -> list[Check]:
    """Return which promises a metric keeps, on all predictions that meet its needs.

    One without needs must keep them on one kind of predictions. ``"hits@k"`` is tried as hits@10.
    """
    metric = get_metric(f"{name[:-1]}10" if name.endswith("@k") else name)
    trials = {
        f"on {what}": partial(_try_metric, metric, pair[0], pair[1])
        for what, pair in _graded().items()
        if all(NEEDS[need][1](pair[0]) for need in metric.needs)
    }
    if not trials:
        why = f"nothing meets all its needs: {', '.join(metric.needs)}."
        return [Check("can be met", False, why, "Take a need away.")]
    return report(trials, lambda trial: metric.needs or all(c.kept for c in trial.checks))


def check_corruption(name: str) -> list[Check]:
    """Return which promises a corruption keeps, on tables, texts or vectors."""
    if VECTORS in getattr(registry.corruptions.get(name), "takes", ()):
        return report({"on vectors": partial(_try_blur, name)}, lambda trial: trial.ended)
    trials = {
        f"on {_PLURAL[taken]}": partial(_try_corruption, name, _sample(taken, "classes"))
        for taken in ("table", "text")
    }
    return report(trials, lambda trial: trial.ended)


def _sample(modality: str, kind: str) -> Dataset:
    """Return questions about 200 items, odd ones among them."""
    rng, i = np.random.default_rng(7), np.arange(200)
    weight = rng.normal(50.0, 10.0, 200)
    words = [a + b for a in ("so", "mi", "ka", "re", "tu") for b in ("lar", "nde", "pi", "mó")]
    texts = [" ".join(rng.choice(words, size=3 + n % 5)) + f" w{n % 150}" for n in i]
    colour = rng.choice(["red", "green", "blue"], size=200).astype(object)
    colour[0], colour[5::11] = "violet", None  # row 0 tests: a value never seen in training
    columns = {
        "count": i % 9,
        "weight": np.where(i % 7 == 3, np.nan, weight),
        "colour": colour,
        "size": pd.Categorical(rng.choice(["S", "M", "L"], size=200)),
        "bought": pd.Timestamp("2024-01-30") + pd.to_timedelta(i * 11, unit="D"),
        "fresh": i % 2 == 0,
        "name": texts,
    }
    texts[:6] = ["", " ", "?!", "Größe 数 🙂", "a\tb\nc", "long " * 300]
    items = {
        "table": pd.DataFrame(columns),
        "text": pd.Series(texts, dtype=object),
        "entity": pd.Series(texts, index=[f"http://example.org/entity/Q{n}" for n in i]),
    }[modality]
    truth = weight + i % 9 if kind == "numbers" else np.where(weight > 50, "high", "low")
    return Dataset("sample", items, pd.DataFrame({"item": items.index}), truth, kind, modality)


def _tried(model: Model) -> tuple[str, ...] | None:
    # what is looked up is looked up alike, by an id or by a text
    looks_up = callable(getattr(model.prototype, "vocabulary", None))
    return ("entity",) if looks_up and "entity" in (model.takes or ()) else model.takes


def _kinds(prototype: Any) -> list[str]:
    """Return the kinds of truth a predictor says it answers; none if it does not say."""
    if hasattr(prototype, "declines"):
        return [kind for kind in ("classes", "numbers") if not prototype.declines(kind)]
    says = getattr(tags_of(prototype), "estimator_type", None)
    return [kind for name, kind in _TYPES.items() if name == says]


def _try_model(model: Model, data: Dataset, trial: Trial) -> None:
    act, judge = (_embed, _try_vectors) if model.role == "encoder" else (_predict, _try_answers)
    if data.modality == "entity" and callable(getattr(model.prototype, "vocabulary", None)):
        with trial.promise("lists its ids", "Return (ids, matrix), each id once.", fatal=True):
            data = _known(model.prototype)
    items, truth, held = data.items, np.asarray(data.truth), np.arange(len(data)) % 4 == 0
    given = items[~held], truth[~held], items[held]
    with trial.promise("can be copied unfitted", "Only store things in __init__.", fatal=True):
        model.fresh(SEED, data.kind)
    with trial.promise("runs", _MEND, fatal=True):
        with trial.watched(*given):
            fitted, first = act(model, data.kind, *given)
    judge(trial, fitted, first, *given)
    trial.check_watched()
    told = tags_of(model.prototype)
    if act is _embed and not model.stateless and not (told and told.target_tags.required):
        with trial.promise("can do without the truth", "Let y=None in fit: some tasks hide it."):
            _embed(model, data.kind, given[0], None, given[2])
    with trial.promise("gives the same for the same seed", "Draw from random_state alone."):
        other = slice(-len(given[1]), None)  # what a copy learns here must not reach the next one
        act(model, data.kind, items[other], truth[other], given[2])
        same(first, act(model, data.kind, *given)[1])
    if not trial.checks[-1].kept:
        return  # what varies by itself cannot be compared any further
    with trial.promise("can be sent to a worker", "Let __getstate__ leave out what cannot."):
        same(first, act(cloudpickle.loads(cloudpickle.dumps(model)), data.kind, *given)[1])
    if act is _embed:
        with trial.promise("looks at each row alone", "Learn in fit, not in transform."):
            for rows in (slice(None, None, -2), slice(0, 1)):
                alone = _array(fitted.transform(given[2].iloc[rows])).astype(float)
                same([first[1][rows].astype(float)], [alone], TOLERANCE)


def _known(prototype: Any) -> Dataset:
    ids, matrix = prototype.vocabulary()
    need(len(set(ids)) == len(matrix), f"{len(set(ids))} ids for {len(matrix)} vectors.")
    items = pd.Series("known", index=[*ids[:199], "an entity that nobody knows"])
    truth, asked = np.resize(["high", "low"], len(items)), pd.DataFrame({"item": items.index})
    return Dataset("sample", items, asked, truth, "classes", "entity")


def _array(values: Any) -> np.ndarray:
    values = values.detach().cpu() if hasattr(values, "detach") else values
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def _embed(model: Model, kind: str, X: Any, y: Any, test: Any) -> tuple[Any, list[np.ndarray]]:
    encoder, given = model.fresh(SEED, kind), (X,) if y is None else (X, y)
    if hasattr(encoder, "fit_transform") and not model.stateless:
        vectors = encoder.fit_transform(*given)
    else:
        if not model.stateless:
            encoder.fit(*given)
        vectors = encoder.transform(X)
    return encoder, [_array(vectors), _array(encoder.transform(test))]


def _try_vectors(
    trial: Trial, fitted: Any, found: list[np.ndarray], X: Any, y: np.ndarray, test: Any
) -> None:
    with trial.promise("gives a matrix of finite numbers", "Return a 2-D array.", fatal=True):
        vectors = [values.astype(float) for values in found]
        shapes = [values.shape for values in vectors]
        need(all(len(shape) == 2 and shape[1] for shape in shapes), f"the shapes are {shapes}.")
        need(not any(np.isinf(values).any() for values in vectors), "some are infinite.")
    with trial.promise("gives one row per item", "Return them in the order given.", fatal=True):
        for values, part in zip(vectors, (X, test), strict=True):
            need(len(values) == len(part), f"{len(values)} rows for {len(part)} items.")
    with trial.promise("gives NaN in whole rows only", "Fill NaN; a whole row means unknown."):
        shares = np.concatenate([np.isnan(values).mean(axis=1) for values in vectors])
        need(np.isin(shares, (0, 1)).all(), f"{np.sum(shares % 1 > 0)} rows are NaN in part.")
    with trial.promise("gives train and test items the same dimensions", "Fix them in fit."):
        (_, ours), (_, theirs) = (values.shape for values in vectors)
        need(ours == theirs, f"{ours} for train items, {theirs} for test items.")


def _predict(model: Model, kind: str, X: Any, y: Any, test: Any) -> tuple[Any, list[np.ndarray]]:
    predictor = model.fresh(SEED, kind)
    predictor.fit(X, y)
    chances = kind == "classes" and hasattr(predictor, "predict_proba")
    methods = [predictor.predict, *([predictor.predict_proba] if chances else [])]
    return predictor, [_array(method(test)) for method in methods]


def _try_answers(
    trial: Trial, fitted: Any, found: list[np.ndarray], X: Any, y: np.ndarray, test: Any
) -> None:
    rows, labels = len(test), as_text(y)
    with trial.promise("gives one answer per row", "Return a 1-D array.", fatal=True):
        need(found[0].size == rows == len(found[0]), f"{found[0].shape} for {rows} rows.")
    with trial.promise("answers with labels it was taught, or finite numbers", "Mend predict."):
        if y.dtype.kind == "f":
            need(np.isfinite(found[0].astype(float)).all(), "some are NaN or infinite.")
        else:
            strange = sorted(set(as_text(found[0].ravel())) - set(labels))
            need(not strange, f"{strange[:3]} are none of them.")
    for chances in found[1:]:
        with trial.promise("gives a probability per class of classes_", "Set classes_ in fit."):
            classes = as_text(getattr(fitted, "classes_", np.unique(labels)))
            need(set(classes) <= set(labels), f"{list(classes)} are not all labels.")
            need(chances.shape == (rows, len(classes)), f"the shape is {chances.shape}.")
        with trial.promise("gives probabilities that sum to 1", "Divide each row by its sum."):
            need(np.allclose(chances.sum(axis=1), 1, atol=1e-3), f"{chances.sum(axis=1)[:3]}")
            need(chances.min() >= 0, "some are negative.")
    with trial.promise("answers a single row", "Do not rely on other rows in predict."):
        need(len(fitted.predict(test.iloc[:1])) == 1, "there is not one answer.")


def _graded() -> dict[str, list[Predictions]]:
    """Return perfect answers and careless ones, by what they are about."""
    rng, pairs = np.random.default_rng(3), {}
    for names in (("no", "yes"), ("a", "b", "c")):
        codes = np.arange(60) % len(names)
        both = np.array([codes, rng.permutation(codes)])
        given = zip(np.array(names)[both], np.eye(len(names))[both], strict=True)
        about = partial(Predictions, truth=np.array(names)[codes], truths="classes", classes=names)
        pairs[f"{len(names)} classes"] = [
            about(labels, answers="classes", probabilities=chances) for labels, chances in given
        ]
        clusters = [about(each, answers="clusters") for each in both]
        pairs[f"clusters of {len(names)} classes"] = clusters
    truth = rng.uniform(1, 9, 10)
    pairs["numbers"] = [Predictions(truth, truth), Predictions(rng.permutation(truth), truth)]
    chosen, lists = np.tile(np.arange(20) % 7 == 3, 3), np.repeat(["x", "y", "z"], 20)
    about = partial(Predictions, truth=chosen * 2.0, group=lists)
    pairs["ranked lists"] = [about(chosen * 2.0), about(rng.random(60))]
    about = partial(Predictions, truth=lists, answers="items", truths="items")
    pairs["ranks"] = [about(lists, rank=np.ones(60)), about(lists[::-1], rank=np.arange(60) + 1)]
    return pairs


def _try_metric(metric: Metric, perfect: Predictions, other: Predictions, trial: Trial) -> None:
    (low, high), sign = metric.range, 1 if metric.higher_is_better else -1
    with trial.promise("has a value", "Say what it needs: needs=(...).", fatal=True):
        with trial.watched(perfect.predictions, perfect.truth):
            best, value = (float(metric.compute(each)) for each in (perfect, other))
    with trial.promise("stays in its range", "Declare its range=(low, high)."):
        need(low <= min(best, value) and max(best, value) <= high, f"{best:g} and {value:g}.")
    with trial.promise("is best for perfect answers", "Mend it or its range."):
        end = high if sign > 0 else low
        need(np.isclose(best, end) or np.isinf(end), f"it is {best:g}, not {end:g}.")
    with trial.promise("says which way is better", "Set higher_is_better the other way."):
        need(sign * best >= sign * value, f"perfect answers: {best:g}, others: {value:g}.")
    with trial.promise("does not depend on the order of rows", "Align by value, not position."):
        turned = metric.compute(other.take(np.random.default_rng(1).permutation(len(other))))
        need(np.isclose(turned, value), f"{value:g}, in another order {turned:g}.")
    with trial.promise("never stops a run", "Raise karat's Undefined with a reason."):
        for rows in ([], [0], [0, 1]):
            found, why = score(metric.name, other.take(np.array(rows, dtype=int)))
            need((found is None) == bool(why), f"{found} and {why!r} for {len(rows)} rows.")
    trial.check_watched()


def _try_corruption(name: str, data: Dataset, trial: Trial) -> None:
    corrupt, X, y = registry.corruptions.get(name), data.items, pd.Series(data.truth)
    with trial.promise("returns X and y as they came", "Return (X, y), X of its type.", fatal=True):
        with trial.watched(X, y):
            seen = {s: corrupt(X, y, s, np.random.default_rng(5)) for s in (0.0, 0.1, 0.4)}
        need(all(type(items) is type(X) for items, _ in seen.values()), "X is of another type.")
    with trial.promise("keeps an answer per row", "Drop rows of X and y alike.", fatal=True):
        for items, truth in seen.values():
            need(len(items) == len(truth) > 0, f"{len(items)} rows and {len(truth)} answers.")
    none, low, high = (_cells(*each) for each in seen.values())
    with trial.promise("changes nothing at severity 0", "Return X and y for severity 0."):
        same([_cells(X, y)], [none])
        need(see(data, View(name, 0.0), SEED, 0) is data, "the view is another.")
    with trial.promise("changes what it is for", "Make severity count."):
        need(high.shape != none.shape or (high != none).any(), "nothing changes at severity 0.4.")
    if none.shape == low.shape == high.shape:
        with trial.promise("changes more and more", "Draw the same for every severity."):
            lost = (low != none) & (high == none)
            need(not lost.any(), f"{lost.sum()} cells changed at 0.1 are not at 0.4.")
    with trial.promise("gives the same for the same generator", "Draw from rng alone."):
        one, two = (see(data, View(name, 0.4), SEED, 0) for _ in range(2))
        same([_cells(one.items, one.truth)], [_cells(two.items, two.truth)])
    if not {"classes", "truth"} & set(getattr(corrupt, "needs", ())):
        with trial.promise("can do without y", "Pass a y of None through: some tasks have none."):
            need(corrupt(X, None, 0.4, np.random.default_rng(5))[1] is None, "y is not None.")
    trial.check_watched()


def _cells(items: Any, truth: Any) -> np.ndarray:
    """Return cells and answers as objects; an empty one is None, which equals itself."""
    return np.column_stack([items.astype(object).where(items.notna(), None), truth])


def _try_blur(name: str, trial: Trial) -> None:
    corrupt, X = registry.corruptions.get(name), np.random.default_rng(7).normal(size=(60, 8))
    X[4] = np.nan  # an item nobody knows
    with trial.promise("returns vectors as they came", "Return (X, y), X a matrix.", fatal=True):
        with trial.watched():
            low, high, again = (
                np.asarray(corrupt(X.copy(), None, s, np.random.default_rng(5))[0])
                for s in (0.1, 0.4, 0.4)
            )
        need(low.shape == high.shape == X.shape, f"the shape is {low.shape}, not {X.shape}.")
    with trial.promise("changes what it is for", "Make severity count."):
        need((high[5:] != X[5:]).any(), "nothing changes at severity 0.4.")
    with trial.promise("changes more and more", "Draw the same for every severity."):
        need(not ((low != X) & (high == X)).any(), "what changed at 0.1 is as it was at 0.4.")
    with trial.promise("gives the same for the same generator", "Draw from rng alone."):
        same([high], [again])
    with trial.promise("leaves unknown items unknown", "Keep a row of NaN as it is."):
        need(np.isnan(high[4]).all(), "a row of NaN became numbers.")
    trial.check_watched()
