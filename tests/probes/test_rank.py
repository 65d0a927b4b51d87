"""Contests small enough to count, and large enough that bits differ."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.probes import rank
from karat.probes.rank import TIE, Contest
from karat.vectors import unit_rows


def contest(queries, candidates, truth, out=()):
    queries, candidates = np.float32(queries), np.float32(candidates)
    pairs = np.array(list(out), dtype=np.intp).reshape(-1, 2).T
    return Contest(
        queries, np.array(truth), (pairs[0], pairs[1]), len(candidates), candidates.__getitem__
    )


def plainly(queries, candidates, truth, out):
    """The same in words: one score after the other, in 64 bits."""
    for question, wanted in enumerate(truth):
        scores = np.float64(np.float32(candidates)) @ np.float64(np.float32(queries[question]))
        fine = [i for i in range(len(scores)) if (question, i) not in out]
        line = max((scores[i] for i in fine), default=-np.inf) - TIE
        best = next((i for i in fine if scores[i] >= line), 0)
        ahead = sum(scores[i] >= scores[wanted] - TIE for i in fine if i != wanted)
        yield best, ahead + 1 if wanted in fine else np.inf


def test_by_hand():
    candidates = [[1, 0], [0.8, 0.6], [0, 1], [0.8, 0.6], [-1, 0]]
    # the scores to (1, 0) are 1, 0.8, 0, 0.8, −1
    asked = [[1, 0]] * 5
    best, ranks = contest(asked, candidates, [0, 1, 2, 3, 4]).settle()
    assert best.tolist() == [0] * 5
    assert ranks.tolist() == [1, 3, 4, 3, 5]
    out = [(0, 1), (1, 0), (2, 2), (3, 0), (3, 1), (4, 0), (4, 1), (4, 2), (4, 3)]
    best, ranks = contest(asked, candidates, [0, 1, 2, 3, 4], out).settle()
    assert best.tolist() == [0, 1, 0, 3, 4]
    assert ranks.tolist() == [1, 2, np.inf, 1, 1]


def test_without_candidates_nothing_is_found():
    best, ranks = contest([[1.0]], [[1.0], [0.5]], [0], [(0, 0), (0, 1)]).settle()
    assert (best.tolist(), ranks.tolist()) == ([0], [np.inf])


COORDINATES = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0])


@st.composite
def contests(draw):
    """Few coordinates make many ties, and sums without rounding."""
    many, asked, size = (draw(st.integers(1, top)) for top in (20, 6, 3))
    rows = st.lists(COORDINATES, min_size=size, max_size=size)
    candidates = draw(st.lists(rows, min_size=many, max_size=many))
    queries = draw(st.lists(rows, min_size=asked, max_size=asked))
    places = st.integers(0, many - 1)
    truth = draw(st.lists(places, min_size=asked, max_size=asked))
    out = draw(st.sets(st.tuples(st.integers(0, asked - 1), places), max_size=30))
    return queries, candidates, truth, out


@settings(max_examples=150, deadline=None)
@given(contests(), st.integers(1, 9), st.integers(1, 9))
def test_any_tiles_give_what_a_plain_loop_gives(given, height, width):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank, "HEIGHT", height)
        patch.setattr(rank, "WIDTH", width)
        best, ranks = contest(*given).settle()
    wanted = list(plainly(*given))
    assert best.tolist() == [first for first, _ in wanted]
    assert ranks.tolist() == [place for _, place in wanted]


def crowd(count=3000, asked=60, size=50, seed=0):
    """Return random queries, and candidates that lie close together."""
    rng = np.random.default_rng(seed)
    near = rng.standard_normal(size) + 1e-3 * rng.standard_normal((count, size))
    queries = unit_rows(rng.standard_normal((asked, size)))
    return queries, unit_rows(near), rng.integers(count, size=asked)


def test_ranks_do_not_depend_on_other_questions():
    # of several candidates of each question, 32 bits say now that they are ahead and now not
    queries, candidates, truth = crowd()
    best, ranks = contest(queries, candidates, truth).settle()
    plain = list(plainly(queries, candidates, truth, set()))
    assert ranks.tolist() == [place for _, place in plain]
    assert best.tolist() == [first for first, _ in plain]
    assert len(set(ranks)) > 50
    for rows in ([7], [3, 2, 1], list(range(59, -1, -1)), list(range(5, 41))):
        some, places = contest(queries[rows], candidates, truth[rows]).settle()
        assert places.tolist() == ranks[rows].tolist()
        assert some.tolist() == best[rows].tolist()


def test_undecided_candidates_are_compared_in_64_bits():
    # the second misses the first by just more and just less than a tie
    for gap, place in ((0.999 * TIE, 2), (1.001 * TIE, 1)):
        query = [1.0, np.float32(gap)]
        _, ranks = contest([query], [[0.5, 1.0], [0.5, 0.0]], [0]).settle()
        assert ranks.tolist() == [place]


@pytest.mark.parametrize("size", [1, 7, 200, 768])
def test_ones_tie_in_any_number_of_dimensions(size):
    # the same sum in 32 bits, again and again rounded the same way, is off by more than a tie
    ones = unit_rows(np.ones((1100, size)))
    best, ranks = contest(3 * ones[:5], ones, [0, 1, 500, 1098, 1099]).settle()
    assert best.tolist() == [0] * 5
    assert ranks.tolist() == [1100] * 5
