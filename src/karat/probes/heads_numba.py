"""Numba loops for the training of heads (``pip install "karat[fast]"``).

Those of AdamW compute the same as the NumPy code of ``adamw`` with fewer passes over memory.
Decision trees are those of scikit-learn, with the same order of features, thresholds and tie
breaks. It sorts every feature in every node; here each feature is sorted once, and divided with
the rows.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from karat.probes.adamw import BLOCK, MOMENTUM, SMALL

F = np.float32


def _compiled(
    function: Any, fast: Any = frozenset({"reassoc", "contract", "arcp"}), inline: str = "never"
) -> Any:
    options: dict[str, Any] = {"fastmath": set(fast), "error_model": "numpy", "inline": inline}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # numba finds no writable cache folder
        return njit(**options)(function)


def _as_numpy(function: Any) -> Any:
    """Compile a function so that it rounds as NumPy does."""
    return _compiled(function, ())


def _inlined(function: Any) -> Any:
    """Compile a function as a part of those that call it: passing arrays takes longer."""
    return _compiled(function, (), "always")


@_inlined
def _update(weights, moments, gradients, change, memory, scale):
    """Make an AdamW step; ``change``, ``memory`` and ``scale`` have one value per head."""
    for head in range(len(weights)):
        w, g, first, second = weights[head], gradients[head], moments[0, head], moments[1, head]
        shrink, move, small = change[0, head], change[1, head], change[2, head]
        keep1, keep2 = memory[0, head], memory[1, head]
        by = scale[head]
        add1, add2 = memory[2, head] * by, memory[3, head] * by * by
        for j in range(len(w)):
            m = first[j] * keep1 + g[j] * add1
            v = second[j] * keep2 + g[j] * g[j] * add2
            first[j] = m
            second[j] = v
            w[j] = w[j] * shrink - m / (np.sqrt(v) + small) * move


# two functions: numba's cache does not distinguish the options of one function
@_compiled
def update(weights, moments, gradients, change, memory, scale):
    """Make an AdamW step with fewer roundings."""
    _update(weights, moments, gradients, change, memory, scale)


@_as_numpy
def update_as_numpy(weights, moments, gradients, change, memory, scale):
    """Make an AdamW step with the digits of NumPy."""
    _update(weights, moments, gradients, change, memory, scale)


@_compiled
def _to_errors(wrong, wanted, at, logits):
    """Record logits, and turn them into probabilities minus targets, in place."""
    outputs, rows = wrong.shape
    for row in range(rows):
        # one output is the logit of the second class; that of the first is 0
        top = max(wrong[0, row], F(0)) if outputs == 1 else wrong[0, row]
        for k in range(outputs):
            logits[k, at + row] = wrong[k, row]
            top = max(top, wrong[k, row])
        total = np.exp(-top) if outputs == 1 else F(0)
        for k in range(outputs):
            wrong[k, row] = np.exp(wrong[k, row] - top)
            total += wrong[k, row]
        for k in range(outputs):
            wrong[k, row] = wrong[k, row] / total - wanted[k, at + row]


@_compiled
def epoch(X, wanted, order, changes, w, moments, memory, clip, logits):
    """Train one head for an epoch, four rows at a time."""
    (outputs, width), size = w.shape, len(order) // len(changes)
    g, wrong = np.empty((outputs, width), F), np.empty((outputs, BLOCK), F)
    for step in range(len(changes)):
        g[:] = 0
        for at in range(step * size, (step + 1) * size, BLOCK):
            a, b, c, d = order[at], order[at + 1], order[at + 2], order[at + 3]
            for k in range(outputs):
                za = zb = zc = zd = F(0)
                for j in range(width):
                    za, zb = za + w[k, j] * X[a, j], zb + w[k, j] * X[b, j]
                    zc, zd = zc + w[k, j] * X[c, j], zd + w[k, j] * X[d, j]
                wrong[k, 0], wrong[k, 1], wrong[k, 2], wrong[k, 3] = za, zb, zc, zd
            _to_errors(wrong, wanted, at, logits)
            for k in range(outputs):
                za, zb, zc, zd = wrong[k, 0], wrong[k, 1], wrong[k, 2], wrong[k, 3]
                for j in range(width):
                    g[k, j] += za * X[a, j] + zb * X[b, j] + zc * X[c, j] + zd * X[d, j]
        total = F(0)
        for k in range(outputs):
            for j in range(width):
                total += g[k, j] * g[k, j]
        scale = min(F(1), clip / (np.sqrt(total) / F(size) + F(1e-6))) / F(size)
        add1, add2 = memory[2] * scale, memory[3] * scale * scale
        shrink, move, small = changes[step, 0], changes[step, 1], changes[step, 2]
        for k in range(outputs):
            for j in range(width):
                m = memory[0] * moments[0, k, j] + add1 * g[k, j]
                v = memory[1] * moments[1, k, j] + add2 * g[k, j] * g[k, j]
                moments[0, k, j], moments[1, k, j] = m, v
                w[k, j] = w[k, j] * shrink - move * m / (np.sqrt(v) + small)


# explicit loops instead of slices: they take less time to compile


@_compiled
def normalize_columns(normal, out, gain_shift, statistics, running, unbiased):
    """Normalize columns in place, and scale, shift and rectify them; update the running statistics.

    The means and factors are written to ``statistics``.
    """
    rows, columns = normal.shape
    mean, scale, gain, shift = statistics[0], statistics[1], gain_shift[0], gain_shift[1]
    for j in range(columns):
        mean[j] = scale[j] = F(0)
    for i in range(rows):
        for j in range(columns):
            mean[j] += normal[i, j]
    for j in range(columns):
        mean[j] /= F(rows)
    for i in range(rows):
        for j in range(columns):
            normal[i, j] -= mean[j]
            scale[j] += normal[i, j] * normal[i, j]
    for j in range(columns):
        variance = scale[j] / F(rows)
        running[0, j] += MOMENTUM * (mean[j] - running[0, j])
        running[1, j] += MOMENTUM * (variance * unbiased - running[1, j])
        scale[j] = F(1) / np.sqrt(variance + SMALL)
    for i in range(rows):
        for j in range(columns):
            normal[i, j] *= scale[j]
            out[i, j] = max(normal[i, j] * gain[j] + shift[j], F(0))


@_compiled
def denormalize(back, normal, out, slope, to_gain, to_shift):
    """Backpropagate through a layer, in place; ``slope`` is gain times scale.

    Two rows of one array instead of the last two parameters would keep it from being vectorized.
    """
    rows, columns = back.shape
    for j in range(columns):
        to_gain[j] = to_shift[j] = F(0)
    for i in range(rows):
        for j in range(columns):
            # without a branch, so that it is vectorized
            kept = back[i, j] if out[i, j] > F(0) else F(0)
            back[i, j] = kept
            to_shift[j] += kept
            to_gain[j] += kept * normal[i, j]
    per = F(1) / F(rows)
    for i in range(rows):
        for j in range(columns):
            rest = back[i, j] - per * (to_shift[j] + normal[i, j] * to_gain[j])
            back[i, j] = rest * slope[j]


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


def _estimating(function: Any) -> Any:
    """Compile a function whose result may be off by rounding errors, but never NaN."""
    return _compiled(function, {"reassoc", "contract", "nnan", "ninf", "nsz"})


@_as_numpy
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


@_as_numpy
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


@_inlined
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


@_inlined
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


@_as_numpy
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


@_as_numpy
def _random(state, low, high):
    """Advance the 32-bit xorshift generator, and return an integer below ``high``."""
    drawn = state[0]
    drawn = (drawn ^ (drawn << 13)) & 0xFFFFFFFF
    drawn ^= drawn >> 17
    state[0] = drawn = (drawn ^ (drawn << 5)) & 0xFFFFFFFF
    return low + (drawn & 0x7FFFFFFF) % (high - low)


@_as_numpy
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


@_as_numpy
def _is_worse(total, left, n, n_left, count, rule):
    """Return whether a split increases the impurity, which rounding errors can do."""
    n_right = n - n_left
    change = _impurity(total, n, rule) - n_right / n * _impurity(total - left, n_right, rule)
    return n / count * (change - n_left / n * _impurity(left, n_left, rule)) + PURE < 0.0


@_as_numpy
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


@_as_numpy
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
