"""Numba loops for the training of heads (``pip install "karat[fast]"``).

Decision trees are those of scikit-learn, with the same order of features, thresholds and tie
breaks. It sorts every feature in every node; here each feature is sorted once, and divided with
the rows.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from karat.probes.compiled_numba import as_numpy, compiled, inlined

F = np.float32


# -- decision trees -----------------------------------------------------------------------------

#: values that are closer are not separated; a node with a smaller impurity is a leaf
NEAR, PURE = np.float32(1e-7), np.finfo(np.float64).eps
#: generous bound of the relative rounding error of an estimated gain
ROUNDING = 1e-9
GINI, ENTROPY, SQUARES = 0, 1, 2
#: largest number of rows of which all gains are computed, without an estimate
FEW = 16
#: unsigned indices compile to faster lookups
ONE = np.uint32(1)
LOG_2 = np.log(2.0)


def _estimating(function: Callable[..., object]) -> Any:
    """Compile a function whose result may be off by rounding errors, but never NaN."""
    return compiled(function, {"reassoc", "contract", "nnan", "ninf", "nsz"})


@as_numpy
def _add(sums, rows, begin, end, y):
    """Set the counts of classes, or the sum and the sum of squares, of some rows."""
    numbers, codes, rule = y
    sums[:] = 0.0
    for p in range(begin, end):
        if rule == SQUARES:
            sums[0] += numbers[rows[p]]
            sums[1] += numbers[rows[p]] * numbers[rows[p]]
        else:
            sums[codes[rows[p]]] += 1.0


@as_numpy
def _impurity(sums, count, rule):
    if rule == SQUARES:
        mean = sums[0] / count
        return sums[1] / count - mean * mean
    found = 0.0
    for each in sums:
        if rule == GINI:
            found += each * each
        elif each > 0:
            share = each / count
            found -= share * (np.log(share) / LOG_2)
    return 1.0 - found / (count * count) if rule == GINI else found


@inlined
def _are_apart(X, order, feature, p):
    """Return whether the value at a position is above the one before."""
    return X[feature, order[feature, p]] > X[feature, order[feature, p - 1]] + NEAR


@_estimating
def _highest_of_numbers(sums, total, scale, size):
    """Return the largest estimated gain of all positions, given the sums of the rows before."""
    highest = -np.inf
    for p in range(size - 1):
        left, right = sums[p], total - sums[p]
        highest = max(highest, left * left * scale[p + 1] + right * right * scale[size - 1 - p])
    return highest


@inlined
def _best_of_numbers(column, span, y, tables, best, total):
    """Return the best position in the order of a feature and its gain, if above ``best``."""
    (X, order, feature), (begin, end, leaf) = column, span
    numbers, scale, sums, total = y[0], tables[2], tables[4], total[0]
    left, position, size = 0.0, 0, end - begin
    for p in range(size - 1):
        left += numbers[order[feature, begin + p]]
        sums[p] = left
    if size > FEW:  # estimated without a division first
        highest = _highest_of_numbers(sums, total, scale, size)
        if highest + ROUNDING * highest <= best:
            return position, best
    for p in range(leaf, size - leaf + 1):
        left, right = sums[p - 1], total - sums[p - 1]
        gain = left * left / p + right * right / (size - p)
        if gain > best and _are_apart(X, order, feature, begin + p):
            best, position = gain, p
    return position, best


@_estimating
def _highest_of_classes(own, other, scale, shift, size):
    """Return the same, given the sums over the classes of the rows before and after."""
    highest = -np.inf
    for p in range(size - 1):
        guess = own[p] * scale[p + 1] + other[p] * scale[size - 1 - p]
        highest = max(highest, guess - shift[p + 1] - shift[size - 1 - p])
    return highest


@as_numpy
def _best_of_classes(column, span, y, tables, best, counts):
    """Return the same from the counts of classes: of all rows, left and right."""
    (X, order, feature), (begin, end, leaf) = column, span
    parts, steps, scale, shift, own, other = tables
    codes, rule = y[1], y[2]
    left, right, position, size = counts[1], counts[2], 0, end - begin
    before, after, slack = 0.0, 0.0, ROUNDING * size - (size if rule == GINI else 0)
    for k in range(len(left)):
        left[k], right[k] = 0, counts[0, k]
        after += parts[right[k]]
    for p in range(size - 1):
        k = codes[order[feature, begin + p]]
        before += steps[left[k]]
        left[k] += ONE
        right[k] -= ONE
        after -= steps[right[k]]
        own[p], other[p] = before, after
    # estimated without divisions and logarithms first
    if _highest_of_classes(own, other, scale, shift, size) + slack <= best:
        return position, best
    left[:], right[:] = 0, counts[0]
    for p in range(1, size):
        k = codes[order[feature, begin + p - 1]]
        left[k] += ONE
        right[k] -= ONE
        guess = own[p - 1] * scale[p] + other[p - 1] * scale[size - p] - shift[p] - shift[size - p]
        if guess + slack > best and p >= leaf and size - p >= leaf:
            if _are_apart(X, order, feature, begin + p):
                gain = -(size - p) * _impurity(right, size - p, rule) - p * _impurity(left, p, rule)
                if gain > best:
                    best, position = gain, p
    return position, best


@as_numpy
def _random(state, low, high):
    """Advance the 32-bit xorshift generator, and return an integer below ``high``."""
    drawn = state[0]
    drawn = (drawn ^ (drawn << 13)) & 0xFFFFFFFF
    drawn ^= drawn >> 17
    state[0] = drawn = (drawn ^ (drawn << 5)) & 0xFFFFFFFF
    return low + (drawn & 0x7FFFFFFF) % (high - low)


@as_numpy
def _best_split(columns, span, y, tables, drawn, total):
    """Return feature, position and the number of constant features; draw features at random.

    ``drawn`` are all features in their present order, those known to be constant and how many.
    """
    (begin, end, _), (features, constant, known, state) = span, drawn
    X, order = columns
    counts = np.zeros((3, len(total)), dtype=np.uint32)
    counts[0] = total
    chosen, position, best, left, found, passed = -1, 0, -np.inf, len(features), 0, 0
    while left > known + found:
        j = _random(state, passed, left - found)
        if j < known:
            features[passed], features[j] = features[j], features[passed]
            passed += 1
            continue
        j += found
        feature = features[j]
        if X[feature, order[feature, end - 1]] <= X[feature, order[feature, begin]] + NEAR:
            features[j], features[known + found] = features[known + found], feature
            found += 1
            continue
        left -= 1
        features[left], features[j] = feature, features[left]
        if chosen >= 0 and (end - begin == 2 or (y[2] != SQUARES and best == 0.0)):
            continue  # no split can be better
        if y[2] == SQUARES:
            at, best = _best_of_numbers((X, order, feature), span, y, tables, best, total)
        else:
            at, best = _best_of_classes((X, order, feature), span, y, tables, best, counts)
        if at:
            chosen, position = feature, at
    features[:known] = constant[:known]
    constant[known : known + found] = features[known : known + found]
    return chosen, position, known + found


@as_numpy
def _is_worse(total, left, n, n_left, count, rule):
    """Return whether a split increases the impurity, which rounding errors can do."""
    n_right = n - n_left
    change = _impurity(total, n, rule) - n_right / n * _impurity(total - left, n_right, rule)
    return n / count * (change - n_left / n * _impurity(left, n_left, rule)) + PURE < 0.0


@as_numpy
def _divide(order, span, feature, count, is_left, spare):
    """Move the rows left of a split to the front of the orders of the first features."""
    begin, middle, end = span
    for p in range(begin, end):
        is_left[order[feature, p]] = p < middle
    for each in range(count):
        at = begin
        for p in range(begin, end):
            row = order[each, p]
            order[each, at] = row
            spare[p - at] = row
            at += is_left[row]
        for p in range(at, end):
            order[each, p] = spare[p - at]


@as_numpy
def grow(X, order, y, settings, tables, out):
    """Fill nodes (feature, left, right, rows), numbers (threshold, impurity) and their sums.

    ``X`` and ``order``, which is changed, have one row per feature. Returns the number of nodes.
    """
    (leaf, depth, seed), (nodes, numbers, sums) = settings, out
    width, count = order.shape
    features, constant, state = np.arange(width), np.empty(width, dtype=np.int64), np.array([seed])
    is_left, spare = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.uint32)
    left, waiting = np.empty(sums.shape[1]), np.zeros((count + 1, 5), dtype=np.int64)
    waiting[0, 1], waiting[0, 4], last, made = count, -1, 0, 0
    while last >= 0:
        begin, end, level, known, parent = waiting[last]
        last -= 1
        if parent >= 0:  # the left child comes right after its parent
            nodes[parent, 1 if parent == made - 1 else 2] = made
        size, total = end - begin, sums[made]
        _add(total, order[0], begin, end, y)
        nodes[made, 3], numbers[made, 1] = size, _impurity(total, size, y[2])
        if level < depth and size >= max(2, 2 * leaf) and numbers[made, 1] > PURE:
            drawn = (features, constant, known, state)
            feature, at, known = _best_split(
                (X, order), (begin, end, leaf), y, tables, drawn, total
            )
            middle, rows, values = begin + at, order[feature], X[feature]
            _add(left, rows, begin, middle, y)
            if at and not _is_worse(total, left, size, at, count, y[2]):
                nodes[made, 0], divided = feature, width if size > 2 else 1
                numbers[made, 0] = values[rows[middle - 1]] / 2.0 + values[rows[middle]] / 2.0
                _divide(order, (begin, middle, end), feature, divided, is_left, spare)
                waiting[last + 1] = middle, end, level + 1, known, made
                waiting[last + 2] = begin, middle, level + 1, known, made
                last += 2
        made += 1
    return made
