"""The links probe on graphs whose filtered ranks can be counted by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.errors import DefinitionError
from karat.metrics import score
from karat.models.vector_files import VectorLookup
from karat.probes import links
from karat.probes.links import Links

#: unit vectors at these angles, in degrees
ANGLES = {"a": 0, "b": 40, "c": 60, "d": 90, "e": 100, "f": 180}


def vectors(angles=ANGLES, unknown=""):
    turned = np.deg2rad([float(angle) for angle in angles.values()])
    matrix = np.column_stack([np.cos(turned), np.sin(turned)]).astype(np.float32)
    matrix[[list(angles).index(name) for name in unknown]] = np.nan
    return Vectors(matrix, np.arange(len(matrix)))


def whole_graph(train, test, items="abcdef"):
    """Return a graph whose links are written as "head relation tail" without blanks."""
    rows = [list(row) for row in (*train, *test)]
    frame = pd.DataFrame(rows, columns=["head", "relation", "tail"])
    return Dataset(
        "graph",
        pd.Series(list(items), index=list(items)),
        frame[["head"]],
        frame["tail"].to_numpy(),
        "items",
        "entity",
        group=frame["relation"].to_numpy(),
        part=np.array(["train"] * len(train) + ["test"] * len(test)),
    )


def graph(train, test, items="abcdef"):
    """Return both parts of a graph."""
    data = whole_graph(train, test, items)
    return tuple(data.take(np.flatnonzero(data.part == part)) for part in ("train", "test"))


def answers(train, test, known, **options):
    probe = Links(**options)
    probe.fit(train, known)
    return probe.answer(test, known), probe


# r leads from f (−1, 0) to a (1, 0): it adds (2, 0), so that from d (0, 1) it leads to (2, 1), at
# 26.6 degrees. Nearest to that are b, a, c, d, e and f, in this order.


@pytest.mark.parametrize(("tail", "place"), list(zip("bacdef", range(1, 7), strict=True)))
def test_a_translation_is_followed_from_other_heads(tail, place):
    train, test = graph(["fra"], [f"dr{tail}"])
    found, probe = answers(train, test, vectors(), relation="translation")
    assert found.predictions.tolist() == ["b"]
    assert (found.rank.tolist(), found.candidates.tolist()) == ([place], [6])
    assert found.target.tolist() == [tail]
    assert probe.notes == []


def test_other_answers_in_test_are_not_candidates():
    train, test = graph(["fra"], ["dre", "drb", "dra"])
    found, _ = answers(train, test, vectors(), relation="translation")
    assert found.predictions.tolist() == ["c", "b", "a"]
    assert found.rank.tolist() == [3, 1, 1]  # with b and a, e would be fifth
    assert found.candidates.tolist() == [4, 4, 4]
    assert score("mrr", found) == (pytest.approx((1 / 3 + 1 + 1) / 3), "")
    assert score("hits@1", found) == (pytest.approx(2 / 3), "")
    assert score("hits@100", found) == (1.0, "")


def test_other_answers_in_train_are_not_candidates():
    # the mean of f → a and d → b leads from d to (1.38, 0.82): b, c, a, d, e, f
    train, test = graph(["fra", "drb"], ["dra"])
    found, _ = answers(train, test, vectors(), relation="translation")
    assert (found.rank.tolist(), found.candidates.tolist()) == ([2], [5])
    assert found.predictions.tolist() == ["c"]


def test_a_ridge_by_hand():
    # a (1, 0) → d (0, 1) and f (−1, 0) → g (0, −1), with the mean 0: the map takes (x, y) to
    # (0, 2x / (2 + alpha)). From b it leads to 90 degrees: d, e, c, b, a with f, g
    angles = {**ANGLES, "g": 270}
    train, test = graph(["ard", "frg"], ["brc"], "abcdefg")
    for alpha in (0.01, 1.0, 100.0):
        found, probe = answers(train, test, vectors(angles), alpha=alpha)
        assert (found.rank.tolist(), found.predictions.tolist()) == ([3], ["d"])
        led = probe.ways_["r"].follow(np.array([[0.5, 0.7]]))
        assert led[0] == pytest.approx([0, 1 / (2 + alpha)], abs=1e-7)


def test_a_relation_without_train_links_uses_the_map_of_all_links():
    train, test = graph(["fra"], ["dsa", "drc"])
    found, probe = answers(train, test, vectors(), relation="translation")
    assert found.rank.tolist() == [2, 3]
    assert "1 of 2" in probe.notes[0]


def test_without_groups_there_is_one_relation():
    train, test = graph(["fra"], ["drc"])
    for part in (train, test):
        object.__setattr__(part, "group", None)
    found, _ = answers(train, test, vectors(), relation="translation")
    assert found.rank.tolist() == [3]


def random_graph(seed, twins=True):
    """Return a graph of random links between random vectors, some of them equal."""
    rng = np.random.default_rng(seed)
    count, size = int(rng.integers(4, 25)), int(rng.integers(2, 7))
    matrix = rng.standard_normal((count, size)).astype(np.float32)
    if twins:
        matrix[rng.integers(count, size=3)] = matrix[rng.integers(count)]
    rows = rng.integers([0, 0, 0], [count, 3, count], size=(int(rng.integers(8, 60)), 3))
    rows = np.unique(rows, axis=0)[rng.permutation(len(np.unique(rows, axis=0)))]
    letters = np.array([chr(0x4E00 + i) for i in range(count)])
    texts = [letters[h] + "rst"[r] + letters[t] for h, r, t in rows]
    cut = max(1, len(texts) // 2)
    return graph(texts[:cut], texts[cut:], letters), Vectors(matrix, np.arange(count)), rows, cut


def plainly(matrix, rows, cut):
    """The filtered ranks of translations, one link at a time."""
    scaled = matrix.astype(np.float64)
    unit = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    for head, relation, tail in rows[cut:]:
        taught = [(h, t) for h, r, t in rows[:cut] if r == relation]
        taught = taught or [(h, t) for h, r, t in rows[:cut]]
        target = scaled[head] + np.mean([scaled[t] - scaled[h] for h, t in taught], axis=0)
        scores = unit @ target / np.linalg.norm(target)
        others = {t for h, r, t in rows if (h, r) == (head, relation) and t != tail}
        fine = [i for i in range(len(unit)) if i not in others]
        yield sum(scores[i] >= scores[tail] - 2e-6 for i in fine), len(fine)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 20))
def test_the_ranks_are_those_of_a_plain_loop(seed, block):
    (train, test), known, rows, cut = random_graph(seed)
    if cut == len(rows):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(links, "BLOCK", block)
        found, _ = answers(train, test, known, relation="translation")
    ranks, candidates = zip(*plainly(known.matrix, rows, cut), strict=True)
    assert found.rank.tolist() == list(ranks)
    assert found.candidates.tolist() == list(candidates)


@pytest.mark.parametrize(("count", "size"), [(40, 4), (8, 30), (10, 20), (1, 3)])
@pytest.mark.parametrize("block", [7, 10_000])
def test_a_ridge_is_that_of_scikit_learn(monkeypatch, count, size, block):
    from sklearn.linear_model import Ridge

    monkeypatch.setattr(links, "BLOCK", max(block, size // 2))
    rng = np.random.default_rng(count)
    matrix = 5 * rng.standard_normal((2 * count, size))
    names = [chr(0x4E00 + i) for i in range(2 * count)]
    train, _ = graph([f"{names[i]}r{names[count + i]}" for i in range(count)], ["一r一"], names)
    probe = Links(alpha=0.7)
    probe.fit(train, Vectors(matrix, np.arange(2 * count)))
    scaled = matrix / np.sqrt(np.mean(np.sum(matrix**2, axis=1)))
    known = Ridge(alpha=0.7).fit(scaled[:count], scaled[count:])
    asked = rng.standard_normal((5, size))
    np.testing.assert_allclose(probe.ways_["r"].follow(asked), known.predict(asked), atol=1e-9)


def grid():
    """Return a grid of which every step is the same vector, and all its links."""
    rng = np.random.default_rng(0)
    origin, right, up = rng.standard_normal((3, 8))
    names = {(i, j): chr(0x4E00 + 10 * i + j) for i in range(6) for j in range(6)}
    matrix = np.array([origin + i * right + j * up for i, j in names])
    steps = {"r": (1, 0), "R": (-1, 0), "u": (0, 1), "U": (0, -1)}
    rows = [
        names[i, j] + step + names[i + x, j + y]
        for i, j in names
        for step, (x, y) in steps.items()
        if (i + x, j + y) in names
    ]
    order = rng.permutation(len(rows))
    rows = [rows[i] for i in order]
    known = Vectors(matrix.astype(np.float32), np.arange(len(matrix)))
    return graph(rows[:60], rows[60:], list(names.values())), known


@pytest.mark.parametrize("options", [{"relation": "translation"}, {"alpha": 1e-6}])
def test_perfect_translations_are_all_found(options):
    (train, test), known = grid()
    found, _ = answers(train, test, known, **options)
    assert score("mrr", found) == (1.0, "")
    assert found.predictions.tolist() == list(test.target)


def test_the_size_of_all_vectors_does_not_matter():
    (train, test), known, _, _ = random_graph(3, twins=False)
    large = Vectors(known.matrix * np.float32(1024), known.rows)
    one, two = (answers(train, test, each)[0] for each in (known, large))
    assert one.to_csv() == two.to_csv()


@pytest.mark.parametrize("way", ["ridge", "translation"])
def test_a_constant_encoder_is_always_last(way):
    (train, test), known, _, _ = random_graph(5)
    constant = Vectors(np.tile(known.matrix[:1], (len(known.matrix), 1)), known.rows)
    found, _ = answers(train, test, constant, relation=way)
    assert found.rank.tolist() == found.candidates.tolist()


def test_unknown_items_are_no_candidates():
    train, test = graph(["fra"], ["drc"])
    found, _ = answers(train, test, vectors(unknown="b"), relation="translation")
    assert (found.rank.tolist(), found.candidates.tolist()) == ([2], [5])
    assert found.predictions.tolist() == ["a"]


def test_an_answer_in_train_may_lack_a_vector_in_test():
    # as in the test by hand of taught answers; b is then no candidate that could be left out
    train, test = graph(["fra", "drb"], ["dra"])
    probe = Links(relation="translation")
    probe.fit(train, vectors())
    found = probe.answer(test, vectors(unknown="b"))
    assert (found.rank.tolist(), found.candidates.tolist()) == ([2], [5])


def test_only_questions_between_known_items_can_be_answered():
    _, test = graph(["fra"], ["drc", "brc", "drb"])
    known = vectors(unknown="b")
    assert Links().answerable(test, known).tolist() == [True, False, False]
    assert Links().answerable(test.blind(), known).tolist() == [True, False, True]


def test_unanswerable_questions_are_misses():
    train, test = graph(["fra"], ["drc", "drb"])
    known = vectors(unknown="b")
    answered, probe = answers(train, test.take(np.array([0])), known, relation="translation")
    lost = probe.unanswered(test.take(np.array([1])))
    both = answered.merged(lost, np.array([True, False]))
    assert both.rank.tolist() == [2, np.inf]
    assert both.candidates.tolist() == [5, 5]
    assert score("mrr", both) == (0.25, "")
    assert Links().unanswered(test).candidates.tolist() == [6, 6]


@pytest.mark.parametrize(("missing", "mrr"), [("ignore", 1 / 2), ("penalize", 1 / 4)])
def test_a_run_on_a_given_split(tmp_path, missing, mrr):
    whole = whole_graph(["fra", "frb"], ["drc", "drb"])
    encoder = VectorLookup(list("acdef"), vectors().matrix[[0, 2, 3, 4, 5]])
    used = {"use": "links", "relation": "translation"}
    task = karat.Task("graph", whole, probe=used, split="fixed", missing=missing)
    (run,) = karat.evaluate({"known": encoder}, task, output=tmp_path)
    (row,) = run.records()
    (view,) = row["views"]
    assert view["coverage"] == 0.5
    assert view["scores"]["mrr"] == pytest.approx(mrr)
    assert set(view["scores"]) == {"hits@1", "hits@10", "mrr"}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"relation": "ridged"}, '"ridge"'),
        ({"alpha": 0}, "alpha.*0"),
        ({"alpha": "one"}, "alpha.*one"),
        ({"alpha": np.inf}, "alpha.*inf"),
    ],
)
def test_wrong_options_are_refused(options, word):
    with pytest.raises(DefinitionError, match=word):
        Links(**options)


def test_a_hidden_target_is_refused():
    train, _ = graph(["fra"], ["drc"])
    with pytest.raises(DefinitionError, match="split: all"):
        Links().fit(train.blind(), vectors())


def test_other_questions_are_refused():
    items, asked = pd.Series(list("ab"), index=list("ab")), pd.DataFrame({"a": ["a"], "b": ["b"]})
    two = Dataset("two", items, asked, np.array(["a"]), "items", "entity")
    with pytest.raises(DefinitionError, match="links"):
        Links().answerable(two, vectors())
