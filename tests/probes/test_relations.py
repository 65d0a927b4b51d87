"""The analogy probe on vectors in the plane."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.errors import ContractError, DefinitionError
from karat.metrics import score
from karat.models.vector_files import VectorLookup
from karat.probes import relations
from karat.probes.relations import Analogy, Links

#: b − a + c = (−2, 1); the cosines to it are d 1, e 0.949, c 0.894, b 0.447, f −0.316, a −0.894
PLANE = {
    "a": [1.0, 0.0],
    "b": [0.0, 1.0],
    "c": [-1.0, 0.0],
    "d": [-2.0, 1.0],
    "e": [-1.0, 1.0],
    "f": [1.0, 1.0],
}


def questions(rows, items="abcdef", **given):
    frame = pd.DataFrame([list(row) for row in rows], columns=["a", "b", "c", "answer"])
    truth = frame.pop("answer").to_numpy()
    series = pd.Series(list(items), index=list(items))
    made = {"target": truth, "kind": "items", "modality": "entity", **given}
    return Dataset("toy", series, frame, **made)


def vectors(plane=PLANE, vocabulary=None, dtype=np.float32):
    matrix = np.array(list(plane.values()), dtype=dtype)
    stock = None
    if vocabulary is not None:
        stock = (pd.Index(list(vocabulary)), np.array(list(vocabulary.values()), dtype=dtype))
    return Vectors(matrix, np.arange(len(matrix)), stock)


def test_the_nearest_item_is_the_answer_and_a_b_c_are_left_out():
    found = Analogy().answer(questions(["abcd", "abce", "abcf"]), vectors())
    assert found.predictions.tolist() == ["d", "d", "d"]
    assert found.rank.tolist() == [1, 2, 3]  # with a, b, c among them f would be fifth
    assert found.candidates.tolist() == [3, 3, 3]
    assert found.target.tolist() == ["d", "e", "f"]
    assert score("hits@1", found)[0] == pytest.approx(1 / 3)
    assert score("mrr", found)[0] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


@pytest.mark.parametrize("row", ["abca", "abcb", "abcc"])
def test_a_target_that_is_not_a_candidate_cannot_be_found(row):
    found = Analogy().answer(questions([row]), vectors())
    assert found.rank.tolist() == [np.inf]
    assert score("hits@10", found) == (0.0, "")


def test_a_question_may_name_an_item_twice():
    found = Analogy().answer(questions(["aacd", "abad"]), vectors())
    assert found.candidates.tolist() == [4, 4]


def test_equal_vectors_rank_as_the_worst_of_them():
    plane = {**PLANE, "g": PLANE["d"], "h": PLANE["d"]}
    found = Analogy().answer(questions(["abcd", "abce"], "abcdefgh"), vectors(plane))
    assert found.rank.tolist() == [3, 4]


def test_a_vocabulary_of_text_serves_ids_of_any_type():
    data = Dataset(
        "toy",
        pd.Series(list("abcdef"), index=range(6)),
        pd.DataFrame({"a": [0], "b": [1], "c": [2]}),
        np.array([3]),
        "items",
        "entity",
    )
    stock = {str(i): v for i, v in enumerate(PLANE.values())}
    probe, known = Analogy(), vectors(vocabulary=stock)
    assert probe.answerable(data, known).tolist() == [True]
    assert probe.answer(data, known).predictions.tolist() == ["3"]


def test_words_without_vectors_are_not_candidates():
    stock = {**PLANE, "x": [np.nan, np.nan]}
    found = Analogy().answer(questions(["abcd"]), vectors(vocabulary=stock))
    assert found.predictions.tolist() == ["d"]
    assert found.candidates.tolist() == [3]


def test_answerable_questions_have_four_vectors():
    plane = {**PLANE, "e": [np.nan, np.nan]}
    data = questions(["abcd", "abce", "ebcd", "aecd", "abed"])
    for known in (vectors(plane), vectors(plane, {k: v for k, v in PLANE.items() if k != "e"})):
        assert Analogy().answerable(data, known).tolist() == [True, False, False, False, False]
    blind = questions(["abce"]).blind()
    assert Analogy().answerable(blind, vectors(plane)).tolist() == [True]


def test_an_item_without_a_vector_raises():
    stock = {k: v for k, v in PLANE.items() if k != "c"}
    with pytest.raises(KeyError, match="c "):
        Analogy().answer(questions(["abcd"]), vectors(vocabulary=stock))
    plane = {**PLANE, "f": [np.nan, np.nan]}
    with pytest.raises(KeyError, match="f "):
        Analogy().answer(questions(["abcf"]), vectors(plane))


def test_missing_answers_are_ignored_or_misses():
    plane = {**PLANE, "e": [np.nan, np.nan]}
    data, probe, known = questions(["abcd", "abce"]), Analogy(), vectors(plane)
    able = probe.answerable(data, known)
    ignored = probe.answer(data.take(np.flatnonzero(able)), known)
    assert score("hits@1", ignored) == (1.0, "")
    penalized = ignored.merged(probe.unanswered(data.take(np.flatnonzero(~able))), able)
    assert score("hits@1", penalized) == (0.5, "")
    assert score("mrr", penalized) == (0.5, "")
    assert penalized.predictions.tolist() == ["d", ""]
    assert penalized.candidates.tolist() == [2, 2]


def many(seed, count=60, asked=200, dimensions=5):
    rng = np.random.default_rng(seed)
    names = [f"n{i}" for i in range(count)]
    frame = pd.DataFrame(rng.choice(names, (asked, 4)), columns=list("abcd"))
    truth = frame.pop("d").to_numpy()
    data = Dataset("toy", pd.Series(names, index=names), frame, truth, "items", "entity")
    return data, Vectors(rng.standard_normal((count, dimensions)), np.arange(count))


def plainly(data, known):
    """The ranks, one question at a time in 64 bits."""
    lengths = np.linalg.norm(known.matrix, axis=1, keepdims=True)
    unit = dict(zip(data.items.index, known.matrix / lengths, strict=True))
    for a, b, c, d in np.column_stack([data.questions.to_numpy(), data.target]):
        scores = {name: v @ (unit[b] - unit[a] + unit[c]) for name, v in unit.items()}
        others = set(unit) - {a, b, c}
        best = max(scores[name] for name in others)
        first = next(name for name in unit if name in others and scores[name] >= best - 2e-6)
        ahead = sum(scores[name] >= scores[d] - 2e-6 for name in others)
        yield first, ahead if d in others else np.inf, len(others)


@pytest.mark.parametrize("seed", range(4))
def test_the_ranks_are_those_of_a_plain_loop(seed):
    data, known = many(seed, dimensions=3 + seed)
    found = Analogy().answer(data, known)
    best, ranks, others = zip(*plainly(data, known), strict=True)
    assert found.predictions.tolist() == list(best)
    assert found.rank.tolist() == list(ranks)
    assert found.candidates.tolist() == list(others)


def test_candidates_are_cached_per_vectors():
    probe, one, two = Analogy(), vectors(), vectors({**PLANE, "d": [1.0, 0.5]})
    data = questions(["abcd"])
    assert probe.answer(data, one).rank.tolist() == [1]
    assert probe.answer(data, two).rank.tolist() == [3]
    assert probe.answer(data, one).rank.tolist() == [1]
    stock = probe._candidates(data, one)
    assert probe._candidates(data.take(np.array([0])), one) is stock


def test_other_questions_are_refused():
    items, two = pd.Series(list("ab"), index=list("ab")), pd.DataFrame({"a": ["a"], "b": ["b"]})
    fields = (two, two.assign(c=[{"a": 1, "b": 2}]))
    wrong = [Dataset("wrong", items, each, np.array(["a"]), "items", "entity") for each in fields]
    for data in (questions(["abcd"], target=np.array([1.0]), kind="regression"), *wrong):
        with pytest.raises(DefinitionError, match="analogy"):
            Analogy().answerable(data, vectors())


#: x and y are nearer to (−2, 1) than e, and z is not
MORE = {"x": [-2.0, 0.9], **PLANE, "y": [-2.0, 1.1], "z": [5.0, 0.0]}


@pytest.mark.parametrize(
    ("candidates", "count", "places"),
    [
        ("vocabulary", 6, [1, 4]),
        ("dataset", 3, [1, 2]),
        (1, 4, [1, 3]),  # x, and the six of the data set
        (7, 4, [1, 3]),
        (8, 5, [1, 4]),
        (100, 6, [1, 4]),
    ],
)
def test_candidates_may_be_fewer(candidates, count, places):
    found = Analogy(candidates=candidates).answer(
        questions(["abcd", "abce"]), vectors(vocabulary=MORE)
    )
    assert found.rank.tolist() == places
    assert found.candidates.tolist() == [count, count]


def test_without_a_vocabulary_the_candidates_are_those_of_the_data_set():
    for candidates in ("vocabulary", "dataset", 2):
        found = Analogy(candidates=candidates).answer(questions(["abce"]), vectors())
        assert (found.rank.tolist(), found.candidates.tolist()) == ([2], [3])


def test_the_data_set_decides_the_candidates_of_each_data_set():
    probe, known = Analogy(candidates=1), vectors(vocabulary=MORE)
    assert probe.answer(questions(["abcd"]), known).candidates.tolist() == [4]
    wider = questions(["abcd"], "abcdefyz")
    known = vectors({**PLANE, "y": MORE["y"], "z": MORE["z"]}, MORE)
    assert probe.answer(wider, known).candidates.tolist() == [6]
    assert probe.answer(questions(["abcd"]), known).candidates.tolist() == [4]


@pytest.mark.parametrize("candidates", ["all", 0, -1, True, 2.5, None])
def test_other_candidates_are_refused(candidates):
    with pytest.raises(DefinitionError, match="candidates"):
        Analogy(candidates=candidates)


def last(a, b, c):
    """Look for c again."""
    return 1e9 * c


def test_a_custom_function():
    # c is (−1, 0): d has the cosine 0.894 to it, e 0.707 and f −0.707
    for function in (last, f"{__name__}:last"):
        found = Analogy(function=function).answer(questions(["abcd", "abce", "abcf"]), vectors())
        assert found.rank.tolist() == [1, 2, 3]
    found = Analogy(function=lambda a, b, c: -c).answer(questions(["abcd", "abcf"]), vectors())
    assert found.rank.tolist() == [3, 1]


def test_a_function_gets_unit_vectors_one_question_at_a_time():
    seen = []

    def watch(a, b, c):
        seen.append([a.tolist(), b.tolist(), c.tolist()])
        return b - a + c

    long = {name: 7 * np.array(vector) for name, vector in PLANE.items()}
    found = Analogy(function=watch).answer(questions(["abcd", "cabf"]), vectors(long))
    assert seen == [[[1, 0], [0, 1], [-1, 0]], [[-1, 0], [1, 0], [0, 1]]]
    usual = Analogy().answer(questions(["abcd", "cabf"]), vectors(long))
    assert found.to_csv() == usual.to_csv()


def test_a_function_that_finds_nothing_ties_with_all():
    found = Analogy(function=lambda a, b, c: 0 * c).answer(questions(["abcd"]), vectors())
    assert found.rank.tolist() == found.candidates.tolist() == [3]


@pytest.mark.parametrize(
    ("function", "word"),
    [
        (lambda a, b, c: c[:1], r"\(1,\)"),
        (lambda a, b, c: np.stack([a, b]), r"\(2, 2\)"),
        (lambda a, b, c: c * np.nan, "NaN"),
        (lambda a, b, c: c / 0.0, "infinity"),
        (lambda a, b, c: "d", "numbers"),
        (lambda a, b, c: None, "shape"),
    ],
)
@pytest.mark.filterwarnings("ignore:(divide|invalid)")
def test_wrong_results_of_a_custom_function(function, word):
    with pytest.raises(ContractError, match=word):
        Analogy(function=function).answer(questions(["abcd"]), vectors())


@pytest.mark.parametrize("function", [3, "math:pi", "math:nothing"])
def test_function_must_be_callable(function):
    with pytest.raises(DefinitionError, match=str(function)):
        Analogy(function=function)


def test_a_task_takes_both_options(tmp_path):
    known = VectorLookup(list(MORE), np.array(list(MORE.values()), dtype=np.float32))
    used = {"use": "analogy", "function": last, "candidates": "dataset"}
    task = karat.Task("own", questions(["abcd", "abce"]), probe=used, split="all")
    (run,) = karat.evaluate({"known": known}, task, output=tmp_path)
    assert run.predictions("own").rank.tolist() == [1, 2]
    assert run.predictions("own").candidates.tolist() == [3, 3]


def test_groups_do_not_join_questions_to_one_list():
    data = questions(["abcd", "abce"], group=np.array(["g", "g"]))
    assert score("mrr", Analogy().answer(data, vectors())) == (0.75, "")


def test_an_iri_may_be_written_in_brackets():
    from karat.probes.relations import _find

    ids = pd.Index(["http://x/a", "http://x/b"])
    wanted = pd.Index(["<http://x/b>", "http://x/a", "<http://x/c>", ""])
    assert _find(ids, wanted).tolist() == [1, 0, -1, -1]


#: unit plane_vectors at these angles, in degrees
ANGLES = {"a": 0, "b": 40, "c": 60, "d": 90, "e": 100, "f": 180}


def plane_vectors(angles=ANGLES, unknown=""):
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
    found, probe = answers(train, test, plane_vectors(), relation="translation")
    assert found.predictions.tolist() == ["b"]
    assert (found.rank.tolist(), found.candidates.tolist()) == ([place], [6])
    assert found.target.tolist() == [tail]
    assert probe.notes == []


def test_other_answers_in_test_are_not_candidates():
    train, test = graph(["fra"], ["dre", "drb", "dra"])
    found, _ = answers(train, test, plane_vectors(), relation="translation")
    assert found.predictions.tolist() == ["c", "b", "a"]
    assert found.rank.tolist() == [3, 1, 1]  # with b and a, e would be fifth
    assert found.candidates.tolist() == [4, 4, 4]
    assert score("mrr", found) == (pytest.approx((1 / 3 + 1 + 1) / 3), "")
    assert score("hits@1", found) == (pytest.approx(2 / 3), "")
    assert score("hits@100", found) == (1.0, "")


def test_other_answers_in_train_are_not_candidates():
    # the mean of f → a and d → b leads from d to (1.38, 0.82): b, c, a, d, e, f
    train, test = graph(["fra", "drb"], ["dra"])
    found, _ = answers(train, test, plane_vectors(), relation="translation")
    assert (found.rank.tolist(), found.candidates.tolist()) == ([2], [5])
    assert found.predictions.tolist() == ["c"]


def test_a_ridge_by_hand():
    # a (1, 0) → d (0, 1) and f (−1, 0) → g (0, −1), with the mean 0: the map takes (x, y) to
    # (0, 2x / (2 + alpha)). From b it leads to 90 degrees: d, e, c, b, a with f, g
    angles = {**ANGLES, "g": 270}
    train, test = graph(["ard", "frg"], ["brc"], "abcdefg")
    for alpha in (0.01, 1.0, 100.0):
        found, probe = answers(train, test, plane_vectors(angles), alpha=alpha)
        assert (found.rank.tolist(), found.predictions.tolist()) == ([3], ["d"])
        led = probe.ways_["r"].follow(np.array([[0.5, 0.7]]))
        assert led[0] == pytest.approx([0, 1 / (2 + alpha)], abs=1e-7)


def test_a_relation_without_train_links_uses_the_map_of_all_links():
    train, test = graph(["fra"], ["dsa", "drc"])
    found, probe = answers(train, test, plane_vectors(), relation="translation")
    assert found.rank.tolist() == [2, 3]
    assert "1 of 2" in probe.notes[0]


def test_without_groups_there_is_one_relation():
    train, test = graph(["fra"], ["drc"])
    for part in (train, test):
        object.__setattr__(part, "group", None)
    found, _ = answers(train, test, plane_vectors(), relation="translation")
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


def plain_ranks(matrix, rows, cut):
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
def test_link_ranks_are_those_of_a_plain_loop(seed, block):
    (train, test), known, rows, cut = random_graph(seed)
    if cut == len(rows):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relations, "BLOCK", block)
        found, _ = answers(train, test, known, relation="translation")
    ranks, candidates = zip(*plain_ranks(known.matrix, rows, cut), strict=True)
    assert found.rank.tolist() == list(ranks)
    assert found.candidates.tolist() == list(candidates)


@pytest.mark.parametrize(("count", "size"), [(40, 4), (8, 30), (10, 20), (1, 3)])
@pytest.mark.parametrize("block", [7, 10_000])
def test_a_ridge_is_that_of_scikit_learn(monkeypatch, count, size, block):
    from sklearn.linear_model import Ridge

    monkeypatch.setattr(relations, "BLOCK", max(block, size // 2))
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
    found, _ = answers(train, test, plane_vectors(unknown="b"), relation="translation")
    assert (found.rank.tolist(), found.candidates.tolist()) == ([2], [5])
    assert found.predictions.tolist() == ["a"]


def test_an_answer_in_train_may_lack_a_vector_in_test():
    # as in the test by hand of taught answers; b is then no candidate that could be left out
    train, test = graph(["fra", "drb"], ["dra"])
    probe = Links(relation="translation")
    probe.fit(train, plane_vectors())
    found = probe.answer(test, plane_vectors(unknown="b"))
    assert (found.rank.tolist(), found.candidates.tolist()) == ([2], [5])


def test_only_questions_between_known_items_can_be_answered():
    _, test = graph(["fra"], ["drc", "brc", "drb"])
    known = plane_vectors(unknown="b")
    assert Links().answerable(test, known).tolist() == [True, False, False]
    assert Links().answerable(test.blind(), known).tolist() == [True, False, True]


def test_unanswerable_questions_are_misses():
    train, test = graph(["fra"], ["drc", "drb"])
    known = plane_vectors(unknown="b")
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
    encoder = VectorLookup(list("acdef"), plane_vectors().matrix[[0, 2, 3, 4, 5]])
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
        Links().fit(train.blind(), plane_vectors())


def test_links_refuse_other_questions():
    items, asked = pd.Series(list("ab"), index=list("ab")), pd.DataFrame({"a": ["a"], "b": ["b"]})
    two = Dataset("two", items, asked, np.array(["a"]), "items", "entity")
    with pytest.raises(DefinitionError, match="links"):
        Links().answerable(two, plane_vectors())
