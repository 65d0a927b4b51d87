"""Slices of items on which a model is worse: proposed on some folds, tested on the others.

A slice is a set of items with something in common: a class, a group, a length, a number of missing
cells, or the value of a column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import scipy

from karat.analysis import slices_wording
from karat.analysis.items import TOP, Runs, TaskItems, items_of_one, items_of_two, without_texts
from karat.errors import DataError, DefinitionError, KaratError, did_you_mean
from karat.output.result import Result
from karat.output.table import Table
from karat.results.clusters import (
    FEWEST_CLUSTERS,
    INDEPENDENT,
    check_labels,
    cluster_unit,
    column_labels,
    known_clusters,
)
from karat.results.item_tables import ANSWER, GROUP, LENGTH
from karat.results.run import Run
from karat.stats.paired_tests import ALPHA, CONFIDENCE, benjamini_hochberg

#: features that are not columns of the data
AUTO, CLASS, LENGTHS, MISSING = "auto", "class", "length", "missing"
#: the feature of numeric targets
TARGET = "target"
#: fewest items inside and outside a slice, where it is proposed and where it is tested
FEWEST_PROPOSED, FEWEST_TESTED = 10, 20
#: slices that are tested per task, and how far from the rest they must be where they are proposed
MOST_TESTED, MIN_SCORE = 10, 1.0
#: a column of numbers with more values is cut at its quartiles
MOST_NUMBERS = 6
#: values of a column, the most frequent first
MOST_VALUES = 50
#: a column whose texts have more characters on average is cut by their length
LONG_TEXT = 30
SEED = 0
SLICE_COLUMNS = (
    "task",
    "slice",
    "feature",
    "worse",
    "items",
    "of",
    "first",
    "second",
    "difference",
    "difference_low",
    "difference_high",
    "elsewhere",
    "p",
    "p_adjusted",
    "loss",
)


@dataclass(frozen=True)
class Slice:
    """A set of items: ``feature`` is what it is made of, ``inside`` which items are in it."""

    name: str
    feature: str
    inside: np.ndarray


def slices_of(feature: str, values: Sequence[str] | np.ndarray, names: bool = False) -> list[Slice]:
    """Return the slices of a feature: its values, or the quartiles of numbers; "" is missing.

    With ``names``, numbers are not cut at their quartiles.

    >>> [each.name for each in slices_of("plan", ["basic", "plus", "", "plus"])]
    ['plan = plus', 'plan = basic', 'plan is missing']
    >>> [each.name for each in slices_of("age", [str(age) for age in range(20, 28)])]
    ['age <= 21.75', 'age 21.75 to 23.5', 'age 23.5 to 25.25', 'age > 25.25']
    """
    texts = np.asarray(values, dtype=object)
    there = texts != ""
    numbers = pd.to_numeric(pd.Series(texts).where(there), errors="coerce").to_numpy(dtype=float)
    numeric = bool(there.any()) and bool(np.isfinite(numbers[there]).all())
    if numeric and not names and len(np.unique(numbers[there])) > MOST_NUMBERS:
        slices = _quartiles(feature, numbers)
    else:
        counts = sorted(
            Counter(texts[there]).items(), key=lambda value_count: (-value_count[1], value_count[0])
        )
        frequent = [value for value, _ in counts[:MOST_VALUES]]
        slices = [Slice(f"{feature} = {value}", feature, texts == value) for value in frequent]
    if not there.all():
        slices.append(Slice(f"{feature} is missing", feature, ~there))
    return slices


def _quartiles(feature: str, numbers: np.ndarray) -> list[Slice]:
    cuts = np.unique(np.nanquantile(numbers, [0.25, 0.5, 0.75]))
    with np.errstate(invalid="ignore"):
        part = np.where(np.isnan(numbers), -1, np.searchsorted(cuts, numbers, side="left"))
    texts = [f"{cut:.6g}" for cut in cuts]
    middle = [f"{feature} {a} to {b}" for a, b in zip(texts[:-1], texts[1:], strict=True)]
    names = [f"{feature} <= {texts[0]}", *middle, f"{feature} > {texts[-1]}"]
    return [Slice(name, feature, part == i) for i, name in enumerate(names) if (part == i).any()]


def make_slices(task_items: TaskItems, by: str) -> list[Slice]:
    """Return the slices of a task's items by a feature, or by all of them.

    Raises ``DataError`` if it needs items that are not stored, and ``DefinitionError`` for an
    unknown feature.
    """
    features = dict(_features(task_items))
    if by == AUTO:
        return _distinct(piece for name, values in features.items() for piece in _cut(name, values))
    if by in features:
        return _cut(by, features[by])
    if task_items.texts is None and by != CLASS:
        raise DataError(f"the items of {task_items.task} are not stored: {task_items.why}.")
    words = {LENGTHS: "texts", MISSING: "missing cells", GROUP: "groups", CLASS: "classes"}
    if by in words:
        raise DefinitionError(f"the data of {task_items.task} have no {words[by]}.")
    names = ", ".join(features)
    hint = did_you_mean(by, features)
    raise DefinitionError(f'{task_items.task} has no column "{by}".{hint} There are: {names}.')


def _cut(name: str, values: np.ndarray) -> list[Slice]:
    """Return the slices of a feature; those of a long text are its lengths."""
    if name in (CLASS, GROUP):
        return slices_of(name, values, names=True)
    filled = [len(text) for text in values if text != ""]
    if filled and np.mean(filled) > LONG_TEXT:
        lengths = np.array([str(len(text)) for text in values], dtype=object)
        return slices_of(f"length of {name}", lengths)
    return slices_of("missing cells" if name == MISSING else name, values)


def _features(task_items: TaskItems) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the features of items as texts: class, group, length, columns, missing cells."""
    table, texts = task_items.table, task_items.texts
    if task_items.loss in ("error", "absolute error", "rank distance"):
        name = CLASS if task_items.loss == "error" else TARGET
        yield name, table["target"].astype(str).to_numpy(dtype=object)
    if texts is None:
        if GROUP in table:
            yield GROUP, table[GROUP].to_numpy(dtype=object)
        return
    rows = texts.loc[table["key"]]
    columns = rows.columns.difference([GROUP, LENGTH, ANSWER], sort=False)
    cells = rows[columns].to_numpy(dtype=object)
    if GROUP in rows:
        yield GROUP, rows[GROUP].to_numpy(dtype=object)
    if LENGTH in rows:
        yield LENGTHS, rows[LENGTH].to_numpy(dtype=object)
    yield from ((str(name), rows[name].to_numpy(dtype=object)) for name in columns)
    missing = (cells == "").sum(axis=1)
    if missing.any():
        yield MISSING, missing.astype(str).astype(object)


def _distinct(slices: Iterable[Slice]) -> list[Slice]:
    """Return slices without those that hold the same items as an earlier one."""
    return list({piece.inside.tobytes(): piece for piece in reversed([*slices])}.values())[::-1]


@dataclass(frozen=True)
class SliceTest:
    """A slice, the direction in which it was tested, p, and the estimates."""

    slice: Slice
    sign: int
    p: float
    values: Mapping[str, float]


def held_out(folds: np.ndarray, groups: np.ndarray | None = None, seed: int = SEED) -> np.ndarray:
    """Return which items are for testing: those of the later folds, or a random half of one fold.

    Groups are not divided: if folds divide them, they are drawn at random too.

    >>> held_out(np.array([0, 0, 1, 1, 2, 2])).tolist()
    [False, False, True, True, True, True]
    """
    numbers = np.unique(folds)
    units = np.arange(len(folds)) if groups is None else pd.factorize(groups)[0]
    if len(numbers) > 1:
        later = np.isin(folds, numbers[len(numbers) // 2 :])
        if not np.isin(units[later], units[~later]).any():
            return later
    count = int(units.max(initial=-1)) + 1
    chosen = np.random.default_rng(seed).permutation(count)[: (count + 1) // 2]
    return np.isin(units, chosen)


def propose(
    values: np.ndarray, slices: Sequence[Slice], among: np.ndarray, paired: bool
) -> list[tuple[Slice, int]]:
    """Return the slices that are farthest from the other items, each with its direction.

    Only the items that ``among`` selects are looked at. With ``paired``, values are differences in
    loss, and the direction is 1 if the first model loses, -1 if the second does. Without, they are
    losses, and only slices with a larger loss are returned.
    """
    scored: list[tuple[float, int, Slice, int]] = []
    values = values[among]
    spread = float(values.std()) or 1.0
    for piece in slices:
        inside = piece.inside[among]
        sizes = int(inside.sum()), int((~inside).sum())
        if min(sizes) < FEWEST_PROPOSED:
            continue
        mean, rest = float(values[inside].mean()), float(values[~inside].mean())
        sign = -1 if paired and mean < 0 else 1
        score = sign * (mean - rest) / (spread * np.sqrt(1 / sizes[0] + 1 / sizes[1]))
        if score >= MIN_SCORE:
            scored.append((-score, len(scored), piece, sign))
    scored.sort(key=lambda entry: entry[:2])
    return [(piece, sign) for _, _, piece, sign in scored[:MOST_TESTED]]


def worse_inside(
    values: np.ndarray, inside: np.ndarray, paired: bool, clusters: np.ndarray | None = None
) -> float:
    """Return the one-sided p that values are larger inside a slice than outside.

    It is the larger p of Welch's test and of the test with a common variance: the first is wrong
    if all values inside are the same, the second if the variances differ. With ``paired`` the mean
    inside must also be above 0, by a t-test. With ``clusters``, the labels of items that belong
    together, both must hold over clusters too.

    >>> values = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    >>> worse_inside(values, values == 1, paired=False) < 0.05
    True
    """
    x, rest = values[inside], values[~inside]
    difference = float(x.mean() - rest.mean())
    if difference <= 0 or (paired and x.mean() <= 0):
        return 1.0
    error, freedom = _welch(x, rest)
    common = float(values.std(ddof=1)) * np.sqrt(1 / len(x) + 1 / len(rest))
    p = [float(scipy.special.ndtr(-difference / common)), _upper(difference, error, freedom)]
    if paired:
        p.append(_upper(float(x.mean()), float(x.std(ddof=1) / np.sqrt(len(x))), len(x) - 1))
    if clusters is not None:
        p.append(_upper(difference, *cluster_error(values, inside, clusters)))
        of_slice = (x, np.ones(len(x), dtype=bool), clusters[inside])
        p += [_upper(float(x.mean()), *cluster_error(*of_slice))] if paired else []
    return max(p)


def cluster_error(
    values: np.ndarray, inside: np.ndarray, clusters: np.ndarray
) -> tuple[float, float]:
    """Return the standard error of a difference of means over clusters, and its freedom.

    The difference is that of the items inside and outside a slice; of the mean alone, if all are
    inside. The error is that of the sums of residuals of clusters, which may be on both sides.

    >>> values, clusters = np.array([1.0, 1.0, 3.0, 3.0]), np.array(["a", "a", "b", "b"])
    >>> cluster_error(values, np.ones(4, bool), clusters)  # of the means 1 and 3: √2 / √2
    (1.0, 1.0)
    """
    codes, sums, fewest = pd.factorize(clusters)[0], np.zeros(len(values)), len(values)
    for side, sign in ((inside, 1.0), (~inside, -1.0)):
        if side.any():
            rest = (values[side] - values[side].mean()) * (sign / int(side.sum()))
            sums += np.bincount(codes[side], rest, len(sums))
            fewest = min(fewest, len(np.unique(codes[side])))
    if fewest < 2:
        return np.inf, 1.0
    error = np.sqrt(fewest / (fewest - 1) * float((sums**2).sum()))
    return float(error), float(fewest - 1)


def _welch(x: np.ndarray, rest: np.ndarray) -> tuple[float, float]:
    """Return the standard error of the difference of two means, and its degrees of freedom."""
    parts = [float(values.var(ddof=1)) / len(values) for values in (x, rest)]
    total = sum(parts)
    below = sum(part**2 / (len(values) - 1) for part, values in zip(parts, (x, rest), strict=True))
    return float(np.sqrt(total)), total**2 / below if below else float(len(x) - 1)


def _upper(mean: float, error: float, freedom: float) -> float:
    return float(scipy.special.stdtr(freedom, -mean / error)) if error > 0 else 0.0


def estimate_slices(
    values: np.ndarray,
    proposed: Sequence[tuple[Slice, int]],
    test: np.ndarray,
    paired: bool,
    clusters: np.ndarray | None = None,
) -> list[SliceTest]:
    """Return the tests of proposed slices on the items that ``test`` selects.

    With ``clusters``, slices of the items of few clusters are not tested.
    """
    estimates = []
    units = None if clusters is None else clusters[test]
    for piece, sign in proposed:
        inside, chosen = piece.inside[test], values[test]
        if min(int(inside.sum()), int((~inside).sum())) < FEWEST_TESTED:
            continue
        if units is not None and fewest_clusters(units, inside) < FEWEST_CLUSTERS:
            continue
        p = worse_inside(sign * chosen, inside, paired, units)
        # a direction found on the same items is tested in both
        p = min(1.0, 2 * p) if paired and test.all() else p
        estimates.append(SliceTest(piece, sign, p, _estimates(chosen, inside, paired, units)))
    return estimates


def fewest_clusters(clusters: np.ndarray, inside: np.ndarray) -> int:
    """Return the number of clusters with items inside a slice, or outside if these are fewer.

    >>> fewest_clusters(np.array(["a", "a", "b", "c"]), np.array([True, False, False, False]))
    1
    """
    return min(len(set(clusters[side].tolist())) for side in (inside, ~inside))


def _estimates(
    values: np.ndarray, inside: np.ndarray, paired: bool, clusters: np.ndarray | None
) -> dict[str, float]:
    """Return the difference of a slice with its interval, and the value elsewhere."""
    widths = [_half_width(values, inside, paired)]
    if clusters is not None:
        which = (values[inside], np.ones(int(inside.sum()), dtype=bool), clusters[inside])
        error_and_freedom = (
            cluster_error(*which) if paired else cluster_error(values, inside, clusters)
        )
        widths.append(
            float(scipy.special.stdtrit(error_and_freedom[1], (1 + CONFIDENCE) / 2))
            * error_and_freedom[0]
        )
    elsewhere = float(values[~inside].mean())
    mean = float(values[inside].mean())
    difference, half = mean if paired else mean - elsewhere, max(widths)
    bounds = {"difference_low": difference - half, "difference_high": difference + half}
    sizes = {"items": int(inside.sum()), "of": len(values)}
    return {"difference": difference, **bounds, "elsewhere": elsewhere, **sizes}


def _half_width(values: np.ndarray, inside: np.ndarray, paired: bool) -> float:
    """Return half of the 95 % interval of a slice's difference, over items."""
    # one more item with the mean of all, so that equal values have an interval too
    x, rest = (np.append(values[side], values.mean()) for side in (inside, ~inside))
    error, freedom = _welch(x, rest)
    if paired:
        error, freedom = float(x.std(ddof=1) / np.sqrt(len(x))), len(x) - 1
    return float(scipy.special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error


@dataclass(frozen=True, eq=False, repr=False)
class SliceComparison(Result):
    """Slices of items on which a model is worse than another, or than elsewhere.

    Attributes
    ----------
    first, second
        The names of a and b; ``second`` is empty for one model.
    slices
        One row per tested slice, the smallest p first: ``worse`` is the model that is worse there
        (empty if ``p_adjusted`` is above 0.05), ``items`` of the ``of`` tested items are in it,
        ``first`` and ``second`` are the mean losses inside, ``difference`` with its 95 % interval,
        ``elsewhere`` the difference (of one model: the loss) of the other items, p, and p after
        Benjamini and Hochberg over all slices.
    notes
        How slices were chosen, and what was left out.
    top
        Number of slices in the table, and of claims in the text; the other outputs have all.
    """

    first: str
    second: str
    slices: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    top: int = TOP

    csv_prefix: ClassVar[str] = "comparison"
    frames: ClassVar[tuple[str, ...]] = ("slices",)
    hidden: ClassVar[tuple[str, ...]] = ("top",)

    @property
    def claims(self) -> pd.DataFrame:
        """The slices on which a model is worse."""
        return self.slices[self.slices["worse"] != ""]

    @property
    def sentence(self) -> str:
        """The claim, the number of claims, or that there is none."""
        return slices_wording.slices_sentence(self)

    @property
    def sentences(self) -> list[str]:
        """One sentence per claim, or one that there is none."""
        rows = [slices_wording.slice_sentence(self, row) for _, row in self.claims.iterrows()]
        return rows or [self.sentence]

    @property
    def details(self) -> list[str]:
        """The first claims, if there are several."""
        return self.sentences[: self.top] if len(self.claims) > 1 else []

    def tables(self) -> list[Table]:
        """Return the slices with the smallest p."""
        return [slices_wording.slices_table(self)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {**super().to_dict(), "verdict": self.sentences}


def compare_slices(
    runs: Runs,
    a: Run | str | Path,
    b: Run | str | Path | None = None,
    *,
    by: str = AUTO,
    tasks: str | Sequence[str] = (),
    pool: str = "variant",
    cluster: str | None = None,
) -> SliceComparison:
    """Find slices of the items on which model ``a`` or ``b`` loses against the other.

    Without ``b``, find slices on which ``a`` is worse than elsewhere. With ``by="auto"``, slices
    are proposed on the first half of the folds and tested on the others (with one fold: on random
    halves of its items); slices of one feature are all tested on all items. p is corrected after
    Benjamini and Hochberg.

    Parameters
    ----------
    runs
        Runs, run folders or folders of runs, in which the models are looked up.
    a, b
        Names of models, runs, or run folders.
    by
        ``"auto"``, ``"group"``, ``"class"``, ``"length"``, ``"missing"`` (number of missing
        cells), or a column of the data. Numbers are cut at their quartiles.
    tasks
        Names of the tasks. Default: all.
    pool
        Which runs are one model: ``"variant"``, ``"model"`` or ``"none"``, as in ``compare``.
    cluster
        A column kept with the items, such as an author: items with the same value belong together,
        and a slice must be worse over these clusters. Default: the declared groups of the data.

    Returns
    -------
    SliceComparison
        The tested slices, and a sentence for each on which a model is worse.

    Raises
    ------
    DataError
        If no task has predictions, or items are needed that the runs do not keep.
    DefinitionError
        If a model, task or column is unknown.

    Examples
    --------
    >>> found = karat.compare_slices("results", "skrub", "onehot")  # doctest: +SKIP
    >>> found.claims[["slice", "worse", "difference", "p_adjusted"]]  # doctest: +SKIP
    """
    if b is None:
        first, task_items, notes = items_of_one(runs, a, tasks, pool)
        second = ""
    else:
        first, second, task_items, notes = items_of_two(runs, a, b, tasks, pool)
    rows: list[dict[str, Any]] = []
    problems: list[KaratError] = []
    notes += check_labels(cluster, {items.task: items.texts for items in task_items})
    for items in task_items:
        try:
            rows += _sliced(items, by, bool(second), cluster or "", notes)
        except DataError as error:
            problems.append(error)
            notes.append(f"{items.task}: no slices, {str(error).rstrip('.')}.")
        except DefinitionError as error:
            problems.append(error)
            notes.append(f"{items.task}: left out, its data have no {by}.")
    if len(problems) == len(task_items):
        raise next((error for error in problems if "Did you mean" in str(error)), problems[0])
    table = pd.DataFrame(rows, columns=[*SLICE_COLUMNS, "sign"])
    table["p_adjusted"] = benjamini_hochberg(table["p"].to_numpy(dtype=float))
    names = np.where(table["sign"] > 0, first, second)
    table["worse"] = np.where(table["p_adjusted"] < ALPHA, names, "")
    table = table.sort_values(["p", "items"], ascending=[True, False], kind="stable")
    table = table[list(SLICE_COLUMNS)].reset_index(drop=True)
    return SliceComparison(first, second, table, list(dict.fromkeys(notes)))


def _sliced(
    task_items: TaskItems, by: str, paired: bool, cluster: str, notes: list[str]
) -> list[dict[str, Any]]:
    """Return the tested slices of a task as rows, and note how they were chosen."""
    if task_items.texts is None and by == AUTO:
        notes += without_texts([task_items])
    task_items = _stored_items(task_items, notes)
    table = task_items.table
    values = table["first_loss"].to_numpy(dtype=float)
    values = values - table["second_loss"].to_numpy(dtype=float) if paired else values
    if not np.isfinite(values).all():
        raise DataError("some losses are not finite numbers.")
    slices, test = make_slices(task_items, by), np.ones(len(table), dtype=bool)
    clusters = _clusters(task_items, cluster, notes)
    if by == AUTO:
        groups = table.get(GROUP) if clusters is None else clusters
        test = held_out(table["fold"].to_numpy(), groups)
        proposed = propose(values, slices, ~test, paired)
        notes.append(
            f"{task_items.task}: {len(slices)} slices, {len(proposed)} proposed on "
            f"{int((~test).sum()):,} items and tested on the other {int(test.sum()):,}."
        )
    else:
        signs = [-1 if paired and values[piece.inside].mean() < 0 else 1 for piece in slices]
        proposed = list(zip(slices, signs, strict=True))
    tested = []
    for pair in proposed:
        # a slice that is a cluster is about this cluster, whose items are the unit
        units = None if pair[0].feature == (cluster or GROUP) else clusters
        tested += estimate_slices(values, [pair], test, paired, units)
    return [_row(task_items, piece, table[test & piece.slice.inside], paired) for piece in tested]


def _stored_items(task_items: TaskItems, notes: list[str]) -> TaskItems:
    """Return the items whose texts are stored, and note how many; without any texts, all."""
    table, texts = task_items.table, task_items.texts
    if texts is None:
        return task_items
    has_text = table["key"].isin(texts.index)
    if not has_text.all():
        stored = f"{has_text.sum():,} of {len(has_text):,} items are stored."
        notes.append(f"{task_items.task}: {stored}")
    return replace(task_items, table=table[has_text])


def _clusters(task_items: TaskItems, cluster: str, notes: list[str]) -> np.ndarray | None:
    """Return the cluster of each item, None if they are independent, and note which it is."""
    table, labels = task_items.table, None
    if cluster and task_items.texts is not None and cluster in known_clusters(task_items.texts):
        labels = column_labels(task_items.texts, cluster).loc[table["key"]].to_numpy(dtype=object)
    elif GROUP in table:
        labels = table[GROUP].to_numpy(dtype=object)
    number = 0 if labels is None else len(set(labels.tolist()))
    if not FEWEST_CLUSTERS <= number < len(table):
        notes.append(INDEPENDENT)
        return None
    notes.append(f"{task_items.task}: {cluster_unit(number, len(table), cluster)}")
    return labels


def _row(
    task_items: TaskItems, tested: SliceTest, inside: pd.DataFrame, paired: bool
) -> dict[str, Any]:
    second = float(inside["second_loss"].mean()) if paired else np.nan
    bounds = np.array([tested.values["difference_low"], tested.values["difference_high"]])
    if task_items.loss != "absolute error":  # other losses are from 0 to 1
        bounds = np.clip(bounds, -1.0, 1.0)
    return {
        "task": task_items.task,
        "slice": tested.slice.name,
        "feature": tested.slice.feature,
        "first": float(inside["first_loss"].mean()),
        "second": second,
        "p": tested.p,
        "loss": task_items.loss,
        "sign": tested.sign,
        **tested.values,
        "difference_low": float(bounds[0]),
        "difference_high": float(bounds[1]),
    }
