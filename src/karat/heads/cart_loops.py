"""The loops that grow a decision tree, compiled where numba is installed.

All features are sorted once, and a node keeps its part of every order, where scikit-learn sorts
again. What is drawn, and what is summed in which order, is as in scikit-learn 1.9, to the bit. The
loops stay in one file: what was compiled is kept until it changes. ``cart`` has their records.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from types import FunctionType
from typing import Any

import numpy as np

#: values of a feature that are no further apart count as equal
NEAR = np.float32(1e-7)
EPSILON, LN2 = np.finfo(np.float64).eps, np.log(2.0)
#: so many steps make a bit where whole steps will do
STEPS = 2**30
ENTROPY, GINI, SQUARES = range(3)
#: columns of ``Grown.links``
LEFT, RIGHT, FEATURE, ROWS, MOST_LEFT = range(5)
#: in place of the feature whose order ``samples`` would have: they are in order themselves
HERE = -1


@cache
def grower() -> Callable[..., tuple[int, int]] | None:
    """Return the compiled ``_grow``, or nothing without numba or a place to keep what it makes."""
    if find_spec("numba") is None:
        return None
    from numba import njit

    # copies that see each other compiled, while the module's own stay plain
    scope: dict[str, Any] = dict(globals())
    inner: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    for name, loop in globals().items():
        if name.startswith("_") and isinstance(loop, FunctionType):
            copied = FunctionType(loop.__code__, scope)
            scope[name] = njit(error_model="numpy", **inner)(copied)
    try:
        return njit(cache=True, error_model="numpy")(FunctionType(_grow.__code__, scope))
    except RuntimeError:  # compiling anew in each process would cost more than it brings
        return None


def _draw(state):
    """Return the next number of scikit-learn's generator, a 32-bit xorshift."""
    seed = state[0] if state[0] else 1
    seed ^= (seed << 13) & 0xFFFFFFFF
    seed ^= seed >> 17
    seed ^= (seed << 5) & 0xFFFFFFFF
    state[0] = seed
    return seed & 0x7FFFFFFF


def _swap(array, i, j):
    array[i], array[j] = array[j], array[i]


def _visits(problem, work, known, start, end):
    """Draw the features in a random order; return how many come, and how many are constant.

    Those ``known`` to be constant in a larger node are drawn, but do not come.
    """
    features, constants = work.features, work.constants
    values, order = problem.values, problem.order
    ahead, found, drawn, count = len(features), 0, 0, 0
    while ahead > known + found:
        at = drawn + _draw(work.state) % (ahead - found - drawn)
        if at < known:
            _swap(features, drawn, at)
            drawn += 1
            continue
        at += found
        feature = work.visits[count] = features[at]
        count += 1
        lowest, highest = order[feature, start], order[feature, end - 1]
        if values[feature, highest] <= values[feature, lowest] + NEAR:
            _swap(features, at, known + found)
            found += 1
        else:
            ahead -= 1
            _swap(features, ahead, at)
    for at in range(known):
        features[at] = constants[at]
    for at in range(known, known + found):
        constants[at] = features[at]
    return count, known + found


def _sift(value, row, begin, root, size):
    """Move a value down the heap that stands from ``begin`` on."""
    while True:
        child, largest = 2 * root + 1, root
        if child < size and value[begin + largest] < value[begin + child]:
            largest = child
        if child + 1 < size and value[begin + largest] < value[begin + child + 1]:
            largest = child + 1
        if largest == root:
            return
        _swap(value, begin + root, begin + largest)
        _swap(row, begin + root, begin + largest)
        root = largest


def _heap(value, row, begin, end):
    """Sort by a heap, which scikit-learn takes to after many bad pivots."""
    size = end - begin
    for root in range((size - 2) // 2, -1, -1):
        _sift(value, row, begin, root, size)
    for last in range(size - 1, 0, -1):
        _swap(value, begin, begin + last)
        _swap(row, begin, begin + last)
        _sift(value, row, begin, 0, last)


def _sort(value, row, stack, size):
    """Sort as scikit-learn does, which decides the order of equals."""
    # not by calling itself: numba would lose the way when it loads what it has kept
    stack[0, 0], stack[0, 1], stack[0, 2], held = 0, size, 2 * int(np.log2(size)), 1
    while held:
        held -= 1
        begin, end, depth = stack[held, 0], stack[held, 1], stack[held, 2]
        if end - begin <= 15:
            for i in range(begin + 1, end):
                while i > begin and value[i - 1] > value[i]:
                    _swap(value, i, i - 1)
                    _swap(row, i, i - 1)
                    i -= 1
        elif depth <= 0:
            _heap(value, row, begin, end)
        else:
            first, middle, last = value[begin], value[begin + (end - begin) // 2], value[end - 1]
            pivot = max(min(first, middle), min(max(first, middle), last))
            at, low, high = begin, begin, end
            while at < high:
                if value[at] > pivot:
                    high -= 1
                    _swap(value, at, high)
                    _swap(row, at, high)
                    continue
                if value[at] < pivot:
                    _swap(value, at, low)
                    _swap(row, at, low)
                    low += 1
                at += 1
            stack[held, 0], stack[held, 1], stack[held, 2] = begin, low, depth - 1
            stack[held + 1, 0], stack[held + 1, 1], stack[held + 1, 2] = high, end, depth - 1
            held += 2


def _tied(problem, work, feature, last, start, end):
    """Put rows with equal values in scikit-learn's order, which begins with that of ``last``."""
    samples, value = work.samples[start:end], work.value
    for p in range(len(samples)):
        if last >= 0:
            samples[p] = problem.order[last, start + p]
        value[p] = problem.values[feature, samples[p]]
    _sort(value, samples, work.stack, len(samples))
    for p in range(len(samples)):
        work.target[p] = problem.y[samples[p]]


def _laid_out(problem, work, feature, start, end):
    """Lay out values and targets in the order of a feature; say whether values are equal."""
    values, y, value, target = problem.values, problem.y, work.value, work.target
    ties, before = False, np.float32(np.inf)
    for p in range(end - start):
        i = problem.order[feature, start + p]
        here = values[feature, i]
        ties |= here == before
        value[p], target[p], before = here, y[i], here
    return ties


def _cut_numbers(problem, work, count, start, end):
    """Return the best cut by the variance of both sides: place, feature, and the last order.

    A product with 1 / k tells which cuts deserve the divisions that scikit-learn makes.
    """
    shares, leaf, total, size = problem.shares, problem.smallest_leaf, work.sums[0], end - start
    value, target, gain, best, chosen, last = work.value, work.target, -np.inf, size, 0, HERE
    for feature in work.visits[:count]:
        if _laid_out(problem, work, feature, start, end) and not problem.exact:
            _tied(problem, work, feature, last, start, end)
            last = HERE
        else:
            last = feature
        done, left = 0, 0.0
        for p in range(leaf, size - leaf + 1):
            if value[p] <= value[p - 1] + NEAR:
                continue
            if p - done <= size - p:
                for i in range(done, p):
                    left += target[i]
            else:
                left = total
                for i in range(size - 1, p - 1, -1):
                    left -= target[i]
            done, first, second = p, left * left, (total - left) * (total - left)
            if first * shares[p] + second * shares[size - p] >= gain * (1 - 1e-14) - 1e-300:
                better = first / p + second / (size - p)
                if better > gain:
                    gain, best, chosen = better, p, feature
    return start + best, chosen, last


def _cut_classes(problem, work, count, start, end):
    """Return the best cut by the mixture of both sides: place, feature, and the last order.

    Sums of k², or of k log₂ k in whole steps, tell which cuts deserve the divisions and logarithms
    that scikit-learn makes.
    """
    codes, scores, leaf, order = problem.codes, problem.scores, problem.smallest_leaf, problem.order
    values, counts, shares, size = problem.values, work.counts, problem.shares, end - start
    gain, best, chosen, feature, is_gini = -np.inf, end, 0, HERE, problem.criterion == GINI
    wanted, slack = -np.inf, 4 * (counts.shape[1] + 4) + size * (counts.shape[1] + 5) * 1e-5
    for feature in work.visits[:count]:
        left, right, value = 0, 0, values[feature, order[feature, start]]
        for code in range(counts.shape[1]):
            counts[1, code], counts[2, code] = 0, counts[0, code]
            right += scores[counts[0, code]]
        for p in range(1, size):
            code = codes[order[feature, start + p - 1]]
            counts[1, code], counts[2, code] = counts[1, code] + 1, counts[2, code] - 1
            left += scores[counts[1, code]] - scores[counts[1, code] - 1]
            right += scores[counts[2, code]] - scores[counts[2, code] + 1]
            below, value = value, values[feature, order[feature, start + p]]
            if value <= below + NEAR or p < leaf or size - p < leaf:
                continue
            if is_gini:
                score = (left * shares[p] + right * shares[size - p] - size) * STEPS
            else:
                score = float(left + right - scores[p] - scores[size - p])
            if score >= wanted:
                better = _gain(problem, counts, p, size - p)
                if better > gain:
                    gain, best, chosen, wanted = better, start + p, feature, better * STEPS - slack
    return best, chosen, feature


def _gain(problem, counts, left, right):
    """Return what scikit-learn compares cuts between classes by."""
    after = _impurity(problem, counts[2], 0.0, 0.0, right)
    return -right * after - left * _impurity(problem, counts[1], 0.0, 0.0, left)


def _search(problem, work, known, start, end):
    """Return the best cut of a node: place, feature, threshold, constants, the last order."""
    count, constants = _visits(problem, work, known, start, end)
    if problem.criterion == SQUARES:
        place, feature, last = _cut_numbers(problem, work, count, start, end)
    else:
        place, feature, last = _cut_classes(problem, work, count, start, end)
    below, above = problem.order[feature, place - 1], problem.order[feature, min(place, end - 1)]
    threshold = problem.values[feature, below] / 2.0 + problem.values[feature, above] / 2.0
    return place, feature, threshold, constants, last


def _add_up(problem, work, start, end):
    """Sum what lies in a node, in the order of ``samples``."""
    y, codes, counts, total, squares = problem.y, problem.codes, work.counts, 0.0, 0.0
    for code in range(counts.shape[1]):
        counts[0, code] = 0
    for p in range(start, end):
        i = work.samples[p]
        total, squares = total + y[i], squares + y[i] * y[i]
        counts[0, codes[i]] += 1
    work.sums[0], work.sums[1] = total, squares


def _impurity(problem, counts, total, squares, size):
    """Return the variance, the Gini index or the entropy of a node."""
    if problem.criterion == SQUARES:
        return squares / size - (total / size) * (total / size)
    if problem.criterion == GINI:
        pairs = 0
        for count in counts:
            pairs += count * count
        return 1.0 - pairs / (size * size)
    entropy = 0.0
    for count in counts:
        if count > 0:
            share = count / size
            entropy -= share * (np.log(share) / LN2)
    return entropy


def _impurities(problem, work, start, place, end):
    """Return the impurities of both sides of a cut, ``samples`` being parted already."""
    y, codes, counts, left, squares = problem.y, problem.codes, work.counts, 0.0, 0.0
    for code in range(counts.shape[1]):
        counts[1, code], counts[2, code] = 0, counts[0, code]
    for p in range(start, place):
        i = work.samples[p]
        left, squares = left + y[i], squares + y[i] * y[i]
        counts[1, codes[i]] += 1
        counts[2, codes[i]] -= 1
    if place - start > end - place:
        left = work.sums[0]
        for p in range(end - 1, place - 1, -1):
            left -= y[work.samples[p]]
    right, rest = work.sums[0] - left, work.sums[1] - squares
    before = _impurity(problem, counts[1], left, squares, place - start)
    return before, _impurity(problem, counts[2], right, rest, end - place)


def _parted(problem, work, cut, start, end):
    """Part ``samples`` at a cut, in scikit-learn's way, and note who is left."""
    _, feature, threshold, _, last = cut
    samples, is_left = work.samples, work.is_left
    if last >= 0:
        for p in range(start, end):
            samples[p] = problem.order[last, p]
    at, stop = start, end
    while at < stop:
        i = samples[at]
        is_left[i] = problem.values[feature, i] <= threshold
        if is_left[i]:
            at += 1
        else:
            stop -= 1
            _swap(samples, at, stop)


def _handed_on(problem, work, constants, start, end):
    """Part the orders of the features that are not constant; who was first stays first."""
    is_left, spare, order = work.is_left, work.spare, problem.order
    for feature in work.features[constants:]:
        part, at = order[feature, start:end], 0
        for p in range(len(part)):
            i = part[p]
            part[at] = spare[p - at] = i
            at += is_left[i]
        for p in range(at, len(part)):
            part[p] = spare[p - at]


def _node(problem, work, grown, waiting, impurity):
    """Write down a node, as a leaf; return its impurity, and whether it may be cut."""
    start, end, depth, parent, side, count = waiting
    _add_up(problem, work, start, end)
    if parent < 0:
        impurity = _impurity(problem, work.counts[0], work.sums[0], work.sums[1], end - start)
    else:
        grown.links[parent, side] = count
    grown.links[count, ROWS], grown.reals[count, 1] = end - start, impurity
    for code in range(grown.totals.shape[1]):
        grown.totals[count, code] = work.counts[0, code]
    if problem.criterion == SQUARES:
        grown.totals[count, 0] = work.sums[0]
    large = end - start >= 2 * problem.smallest_leaf and depth < problem.deepest
    return impurity, large and impurity > EPSILON


def _halved(problem, work, cut, impurity, start, end):
    """Part a node at a cut; return the impurities of both sides, and whether the cut is a gain."""
    place, rows = cut[0], end - start
    _parted(problem, work, cut, start, end)
    left, right = _impurities(problem, work, start, place, end)
    gain = impurity - (end - place) / rows * right - (place - start) / rows * left
    if max(left, right) > EPSILON and rows > 2:
        _handed_on(problem, work, cut[3], start, end)
    return left, right, rows / len(problem.y) * gain + EPSILON >= 0


def _grow(problem, work, grown):
    """Grow a tree, left sides first; return the number of its nodes and its depth."""
    size = len(problem.y)
    waiting, impurities = np.zeros((size + 2, 6), np.int64), np.empty(size + 2)
    waiting[0, 1], waiting[0, 3] = size, -1
    held, count, deepest = 1, 0, 0
    while held:
        held -= 1
        start, end, depth = waiting[held, 0], waiting[held, 1], waiting[held, 2]
        parent, side, known = waiting[held, 3], waiting[held, 4], waiting[held, 5]
        place = (start, end, depth, parent, side, count)
        impurity, may_be_cut = _node(problem, work, grown, place, impurities[held])
        node, count, deepest = count, count + 1, max(deepest, depth)
        if not may_be_cut:
            continue
        cut = _search(problem, work, known, start, end)
        if cut[0] == end:
            continue
        left, right, gains = _halved(problem, work, cut, impurity, start, end)
        if not gains:
            continue
        middle, grown.links[node, FEATURE], grown.reals[node, 0] = cut[0], cut[1], cut[2]
        grown.links[node, MOST_LEFT] = middle - start > end - middle
        for side, begin, stop in ((RIGHT, middle, end), (LEFT, start, middle)):
            waiting[held, 0], waiting[held, 1], waiting[held, 2] = begin, stop, depth + 1
            waiting[held, 3], waiting[held, 4], waiting[held, 5] = node, side, cut[3]
            impurities[held] = right if side == RIGHT else left
            held += 1
    return count, deepest
