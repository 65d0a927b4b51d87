"""The analogy probe on vectors in the plane."""

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.errors import ContractError, DefinitionError
from karat.metrics import score
from karat.models.vector_files import VectorLookup
from karat.probes.analogy import Analogy

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
    from karat.probes.analogy import _find

    ids = pd.Index(["http://x/a", "http://x/b"])
    wanted = pd.Index(["<http://x/b>", "http://x/a", "<http://x/c>", ""])
    assert _find(ids, wanted).tolist() == [1, 0, -1, -1]
