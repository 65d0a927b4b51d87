"""Tasks of mteb in Karat: main scores are those of mteb; skipped where it is not installed."""

from __future__ import annotations

import random
import sys

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.errors import DataError, DefinitionError, MissingExtra
from karat.execution.splits import split
from karat.ext.compat.mteb import Encoder
from karat.ext.compat.mteb.mteb_tasks import Bitext, Candidates, Clustering, Pairs, few_shot
from karat.metrics import score

from .mock_tasks import Hashed, noisy, ours, sentences, table, task_of, theirs

KINDS = (
    "Classification",
    "Clustering",
    "PairClassification",
    "Reranking",
    "Retrieval",
    "STS",
    "Summarization",
    "BitextMining",
)


@pytest.fixture
def mteb(monkeypatch, tmp_path):
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return pytest.importorskip("mteb")


def agree(task, tmp_path, tolerance=1e-6, lowest=0.02, highest=0.98):
    """Check that both have the same main scores, none of which is trivial."""
    one, other = ours(task(), tmp_path / "runs"), theirs(task())
    assert one.keys() == other.keys() and one
    for name, value in other.items():
        assert one[name] == pytest.approx(value, abs=tolerance), name
        assert lowest < abs(value) < highest, name
    return one


def mock_names():
    mocks = pytest.importorskip("mteb.mocks")
    return mocks.MOCK_TASK_REGISTRY


def test_mock_tasks_of_each_kind_have_the_same_main_scores(mteb, tmp_path):
    seen = set()
    for number, (name, kind) in enumerate(mock_names().items()):
        if kind.metadata.type not in KINDS:
            with pytest.raises(DefinitionError, match=kind.metadata.type):
                ours(kind(), tmp_path)
            continue
        one, other = ours(kind(), tmp_path / str(number)), theirs(kind())
        assert one.keys() == other.keys()
        # mteb rounds the scores of retrieval to five digits
        digits = 5 if kind.metadata.type in ("Retrieval", "Reranking") else 12
        for part, value in other.items():
            assert round(one[part], digits) == pytest.approx(value, abs=1e-6), part
        seen.add(kind.metadata.type)
        assert name
    assert seen == set(KINDS)


def labeled(count, classes, seed):
    rng = random.Random(seed)
    labels = [rng.randrange(classes) for _ in range(count)]
    topics = sentences(classes, 99, words=4)
    texts = [f"{topics[k]} {rest}" for k, rest in zip(labels, sentences(count, seed), strict=True)]
    return noisy(texts, seed, 8), labels


@pytest.mark.parametrize("main", ["accuracy", "f1"])
def test_classification(mteb, tmp_path, main):
    from mteb.abstasks import AbsTaskClassification

    def data():
        sides = {"train": labeled(150, 5, 1), "test": labeled(80, 5, 2)}
        return {name: table(text=x, label=y) for name, (x, y) in sides.items()}

    agree(task_of(AbsTaskClassification, "Classification", main, data), tmp_path)


def test_cross_validation(mteb, tmp_path):
    from mteb.abstasks import AbsTaskClassification

    texts, labels = labeled(97, 3, 1)
    kind = task_of(
        AbsTaskClassification,
        "Classification",
        "accuracy",
        lambda: {"train": table(text=texts, label=labels)},
        is_cross_validation=True,
        about={"eval_splits": ["train"]},
    )
    agree(kind, tmp_path)


def test_clustering_with_levels_subsets_and_splits(mteb, tmp_path):
    from mteb.abstasks import AbsTaskClustering

    def one(seed):
        texts, labels = labeled(90, 6, seed)
        levels = [[k // 3, k] if i % 7 else [k // 3] for i, k in enumerate(labels)]
        return table(sentences=texts, labels=levels)

    def data():
        places = [("en", 1), ("de", 3)]
        return {s: {"validation": one(n), "test": one(n + 1)} for s, n in places}

    kind = task_of(
        AbsTaskClustering,
        "Clustering",
        "v_measure",
        data,
        max_fraction_of_documents_to_embed=None,
        max_document_to_embed=60,
        max_documents_per_cluster=70,
        n_clusters=3,
        about={
            "eval_splits": ["validation", "test"],
            "eval_langs": {"en": ["eng-Latn"], "de": ["deu-Latn"]},
        },
    )
    found = agree(kind, tmp_path)
    assert set(found) == {
        "OwnClustering (en, validation)",
        "OwnClustering (de, validation)",
        "OwnClustering (en)",
        "OwnClustering (de)",
    }


def test_clustering_of_earlier_versions(mteb, tmp_path):
    from mteb.abstasks.clustering_legacy import AbsTaskClusteringLegacy

    sets = [labeled(40, 4, 1), labeled(50, 3, 2), (sentences(5), [1] * 5)]

    def data():
        return {"test": table(sentences=[x for x, _ in sets], labels=[y for _, y in sets])}

    agree(task_of(AbsTaskClusteringLegacy, "Clustering", "v_measure", data), tmp_path)


@pytest.mark.parametrize("main", ["max_ap", "max_accuracy", "similarity_ap", "cosine_f1"])
@pytest.mark.parametrize("one_row", [False, True])
def test_pairs(mteb, tmp_path, main, one_row):
    from mteb.abstasks import AbsTaskPairClassification

    rng = random.Random(5)
    one, labels = sentences(80), [rng.randrange(2) for _ in range(80)]
    near, far = noisy(one, 1, 8), sentences(80, 7)
    other = [a if y else b for a, b, y in zip(near, far, labels, strict=True)]
    columns = {"sentence1": one, "sentence2": other, "labels": labels}
    columns = {name: [values] if one_row else values for name, values in columns.items()}
    kind = task_of(
        AbsTaskPairClassification, "PairClassification", main, lambda: {"test": table(**columns)}
    )
    agree(kind, tmp_path)


def test_sts(mteb, tmp_path):
    from mteb.abstasks import AbsTaskSTS

    one = sentences(60)
    scores = [float(i % 6) for i in range(60)]
    other = noisy(one, 1, 6)
    kind = task_of(
        AbsTaskSTS,
        "STS",
        "cosine_spearman",
        lambda: {"test": table(sentence1=one, sentence2=other, score=scores)},
    )
    agree(kind, tmp_path, lowest=0.001)


def test_summarization(mteb, tmp_path):
    from mteb.abstasks.text.summarization import AbsTaskSummarization

    rng = random.Random(3)
    texts = sentences(12)
    human = [noisy([text] * 3, i, 6) for i, text in enumerate(texts)]
    machine = [noisy([text] * 5, 50 + i, 8) for i, text in enumerate(texts)]
    relevance = [[float(rng.randrange(5)) for _ in range(5)] for _ in texts]
    relevance[4] = [2.0] * 5  # equal scores are left out
    columns = {"text": texts, "human_summaries": human, "machine_summaries": machine}
    kind = task_of(
        AbsTaskSummarization,
        "Summarization",
        "cosine_spearman",
        lambda: {"test": table(**columns, relevance=relevance)},
        min_score=0,
        max_score=5,
    )
    agree(kind, tmp_path, lowest=0.001)


def test_bitext_mining(mteb, tmp_path):
    from mteb.abstasks.text.bitext_mining import AbsTaskBitextMining

    one = sentences(60)
    kind = task_of(
        AbsTaskBitextMining,
        "BitextMining",
        "f1",
        lambda: {"test": table(sentence1=one, sentence2=noisy(one, 1, 9))},
    )
    agree(kind, tmp_path)


def searched(seed, candidates, same_ids=False):
    rng = random.Random(seed)
    documents = sentences(60, seed, words=8)
    ids = [f"{i:02d}" for i in range(60)]
    asked = ids[:20] if same_ids else [f"q{i:02d}" for i in range(20)]
    judged = {}
    for place, query in enumerate(asked):
        own = rng.sample(ids, 4)
        judged[query] = {doc: rng.randrange(3) for doc in own}
        judged[query][ids[place + 1]] = 2
    judged[asked[3]] = {ids[5]: 0}  # judged, and nothing is relevant
    judged[asked[4]]["gone"] = 1  # not in the corpus
    judged[asked[6]] = {}
    texts = [*noisy(documents[1:21], seed, 7)]
    top = {query: rng.sample(ids, 15) for query in asked}
    return {
        "corpus": table(id=ids, title=["" if i % 2 else "so" for i in range(60)], text=documents),
        "queries": table(id=asked, text=texts),
        "relevant_docs": judged,
        "top_ranked": top if candidates else None,
    }


@pytest.mark.parametrize("main", ["ndcg_at_10", "recall_at_10", "mrr_at_5", "hit_rate_at_5"])
def test_retrieval(mteb, tmp_path, main):
    from mteb.abstasks import AbsTaskRetrieval

    kind = task_of(
        AbsTaskRetrieval,
        "Retrieval",
        main,
        lambda: {"default": {"test": searched(1, candidates=False)}},
    )
    agree(kind, tmp_path, tolerance=6e-6)  # mteb rounds to five digits


def repeated(seed):
    """Return data in which most documents are there several times, under other ids."""
    data = searched(seed, candidates=False)
    corpus = data["corpus"]
    rows = [dict(row) for row in corpus]
    copies = [{**row, "id": f"{sign}{row['id']}"} for row in rows[::2] for sign in "-z"]
    names = list(rows[0])
    every = [*rows, *copies]
    data["corpus"] = table(**{name: [row[name] for row in every] for name in names})
    return data


@pytest.mark.parametrize("main", ["ndcg_at_10", "mrr_at_10", "map_at_10", "recall_at_5"])
def test_documents_of_equal_scores_are_ranked_as_there(mteb, tmp_path, main):
    from mteb.abstasks import AbsTaskRetrieval

    kind = task_of(
        AbsTaskRetrieval,
        "Retrieval",
        main,
        lambda: {"default": {"test": repeated(4)}},
    )
    agree(kind, tmp_path, tolerance=6e-6)


def test_a_query_does_not_find_itself(mteb, tmp_path):
    from mteb.abstasks import AbsTaskRetrieval

    for ignore in (True, False):
        kind = task_of(
            AbsTaskRetrieval,
            "Retrieval",
            "ndcg_at_10",
            lambda: {"default": {"test": searched(2, candidates=False, same_ids=True)}},
            ignore_identical_ids=ignore,
        )
        agree(kind, tmp_path / str(ignore), tolerance=6e-6)


@pytest.mark.parametrize("main", ["map_at_1000", "mrr_at_10", "ndcg_at_10"])
def test_reranking(mteb, tmp_path, main):
    from mteb.abstasks import AbsTaskRetrieval

    kind = task_of(
        AbsTaskRetrieval,
        "Reranking",
        main,
        lambda: {"default": {"test": searched(3, candidates=True)}},
    )
    agree(kind, tmp_path, tolerance=6e-6)


def test_the_revision_is_part_of_the_fingerprint(mteb, tmp_path):
    from mteb.abstasks import AbsTaskSTS

    from karat.ext.compat.mteb import suite

    one = sentences(8)
    columns = {"sentence1": one, "sentence2": noisy(one, 1), "score": list(range(8))}
    kind = task_of(AbsTaskSTS, "STS", "cosine_spearman", lambda: {"test": table(**columns)})
    (first,) = (task.dataset().fingerprint for task in suite(kind()))
    kind.metadata.dataset["revision"] = "r2"
    (second,) = (task.dataset().fingerprint for task in suite(kind()))
    assert first != second


def test_resume_runs_nothing_again_until_the_revision_changes(mteb, tmp_path):
    from mteb.abstasks import AbsTaskSTS

    one = sentences(8)
    columns = {"sentence1": one, "sentence2": noisy(one, 1), "score": list(range(8))}
    kind = task_of(AbsTaskSTS, "STS", "cosine_spearman", lambda: {"test": table(**columns)})

    def stamps():
        ours(kind(), tmp_path, resume=True)
        runs = karat.open_runs(tmp_path)
        return {record["utc"] + record["spec"] for run in runs for record in run.records()}

    first = stamps()
    assert stamps() == first
    kind.metadata.dataset["revision"] = "r2"
    assert len(stamps() - first) == 1


def test_two_workers_give_the_same_scores(mteb, tmp_path):
    from mteb.abstasks import AbsTaskClassification

    sides = {"train": labeled(60, 3, 1), "test": labeled(30, 3, 2)}
    kind = task_of(
        AbsTaskClassification,
        "Classification",
        "accuracy",
        lambda: {name: table(text=x, label=y) for name, (x, y) in sides.items()},
        n_experiments=3,
    )
    assert ours(kind(), tmp_path / "a") == ours(kind(), tmp_path / "b", workers=2)


def test_names(mteb):
    (task,) = karat.suite("mteb:STSBenchmark")
    assert (task.name, task.metrics[0], task.kind) == ("STSBenchmark", "spearman", "sts")
    names = [task.name for task in karat.suite("mteb:MTEB(eng, v2)")]
    assert len(names) == 41 and "MTOPDomainClassification (en)" in names
    with pytest.raises(DefinitionError, match='Did you mean "STSBenchmark"'):
        karat.suite("mteb:STSBenchmrk")
    with pytest.raises(DefinitionError, match="MultilabelClassification"):
        karat.suite("mteb:MultiEURLEXMultilabelClassification")
    with pytest.raises(DefinitionError, match="ImageClassification"):
        karat.suite("mteb:CIFAR10")
    with pytest.raises(DefinitionError, match="deprecated"):
        karat.suite("mteb:SummEval")


def test_most_text_tasks_of_mteb_can_be_run(mteb):
    from karat.ext.compat.mteb.mteb_tasks import mteb_decline_reason

    tasks = [t for t in mteb.get_tasks() if t.metadata.type in KINDS]
    images = [t for t in tasks if "image" in t.metadata.modalities]
    assert images and all("image" in mteb_decline_reason(t) for t in images)
    tasks = [t for t in tasks if list(t.metadata.modalities) == ["text"]]
    reasons = {t.metadata.name: mteb_decline_reason(t) for t in tasks}
    assert sum(not why for why in reasons.values()) > 0.95 * len(reasons)


def test_aggregates_are_replaced_by_their_tasks(mteb):
    names = [task.name for task in karat.suite("mteb:CQADupstackRetrieval")]
    assert len(names) == 12 and "CQADupstackGamingRetrieval" in names


def test_other_kinds_of_a_benchmark_are_declined_with_the_reason(mteb, tmp_path, monkeypatch):
    from mteb.abstasks import AbsTaskSTS

    from karat.ext.compat.mteb import suite

    one = sentences(8)
    columns = {"sentence1": one, "sentence2": noisy(one, 1), "score": list(range(8))}
    kind = task_of(AbsTaskSTS, "STS", "cosine_spearman", lambda: {"test": table(**columns)})
    other = mteb.get_task("CIFAR10")
    (run,) = karat.evaluate({"hashed": Hashed()}, suite([kind(), other]), output=tmp_path)
    states = {r["task"]: (r["status"], r["info"]) for r in run.records()}
    assert states["OwnSTS"][0] == "ok"
    assert states["CIFAR10"][0] == "declined" and "ImageClassification" in states["CIFAR10"][1]


def test_data_that_cannot_be_loaded_are_a_failed_row(mteb, tmp_path):
    from mteb.abstasks import AbsTaskSTS

    from karat.ext.compat.mteb import suite

    def fail():
        raise ConnectionError("the host is unreachable")

    one = sentences(8)
    columns = {"sentence1": one, "sentence2": noisy(one, 1), "score": list(range(8))}
    good = task_of(AbsTaskSTS, "STS", "cosine_spearman", lambda: {"test": table(**columns)})
    bad = task_of(AbsTaskSTS, "STS", "cosine_spearman", fail)
    bad.metadata.name = "Unreachable"
    with pytest.warns(karat.KaratWarning):
        (run,) = karat.evaluate({"hashed": Hashed()}, suite([good(), bad()]), output=tmp_path)
    failed = {r["task"]: r for r in run.records()}["Unreachable"]
    assert failed["status"] == "failed" and "none at revision r1" in failed["info"]
    with pytest.raises(DefinitionError, match="unreachable"):
        karat.evaluate({"hashed": Hashed()}, suite(bad()), output=tmp_path)


def test_data_of_another_layout(mteb):
    from mteb.abstasks import AbsTaskSTS

    from karat.ext.compat.mteb import suite

    kind = task_of(AbsTaskSTS, "STS", "cosine_spearman", lambda: {"test": table(a=["x"])})
    (task,) = suite(kind())
    with pytest.raises(DataError, match="layout"):
        task.dataset()


def test_in_a_suite_of_yaml(mteb, tmp_path):
    file = tmp_path / "my.yaml"
    file.write_text("suites:\n  mine:\n    tasks: [penguins, 'mteb:STSBenchmark']\n")
    assert [task.name for task in karat.suite("mine", file)] == ["penguins", "STSBenchmark"]


def test_without_mteb_the_error_has_the_pip_line(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mteb", None)
    with pytest.raises(MissingExtra, match=r'pip install "karat\[mteb\]"'):
        karat.suite("mteb:STSBenchmark")


def test_vectors_are_of_words():
    one, same, other = Hashed().encode(["loka mino", "mino loka", "rapel"])
    assert np.allclose(one, same) and not np.allclose(one, other)


class Prompted(Hashed):
    """Records the role of every text; the vectors depend on it."""

    uses_roles = True

    def __init__(self):
        self.seen = {}

    def prompt_for(self, role):
        return f"{role}: "

    def encode(self, texts, role=""):
        self.seen.setdefault(role, []).extend(texts)
        return super().encode([f"{role} {text}" for text in texts])

    def transform(self, items, role=""):
        return self.encode(list(items), role)


def test_mteb_runs_a_model_on_its_mock_tasks(mteb):
    mocks = pytest.importorskip("mteb.mocks")
    for name in ("MockSTSTask", "MockRetrievalTask", "MockClassificationTask"):
        scores = theirs(mocks.MOCK_TASK_REGISTRY[name](), Encoder(Hashed()))
        assert scores and all(-1 <= value <= 1 for value in scores.values())


def test_prompt_types_are_roles(mteb):
    mocks = pytest.importorskip("mteb.mocks")
    model = Prompted()
    encoder = Encoder(model)
    encoder.encoder = model  # the copy that mteb calls
    theirs(mocks.MOCK_TASK_REGISTRY["MockRetrievalTask"](), encoder)
    assert set(model.seen) == {"query", "document"}
    theirs(mocks.MOCK_TASK_REGISTRY["MockSTSTask"](), encoder)
    assert set(model.seen) == {"query", "document", "STS"}


def test_the_metadata(mteb):
    meta = Encoder(Hashed(), "mine").mteb_model_meta
    assert meta.name == "karat/mine" and len(meta.revision) == 40
    assert Encoder(Hashed(), "org/mine").mteb_model_meta.name == "org/mine"
    assert Encoder("random").mteb_model_meta.name == "karat/random"
    assert isinstance(Encoder(Hashed()), mteb.EncoderProtocol)


def test_an_encoder_that_is_fitted_needs_texts(mteb):
    from mteb.abstasks import AbsTaskSTS

    with pytest.raises(DefinitionError, match="fit_on"):
        Encoder("tfidf")
    one = sentences(30)
    other, scores = noisy(one, 1, 6), [float(i % 5) for i in range(30)]
    kind = task_of(
        AbsTaskSTS,
        "STS",
        "cosine_spearman",
        lambda: {"test": table(sentence1=one, sentence2=other, score=scores)},
    )
    assert set(theirs(kind(), Encoder("tfidf", fit_on=[*one, *other]))) == {"OwnSTS"}


def test_other_models_are_refused(mteb):
    for model, reason in (("dummy", "predictor"), ("random@8d", "variant"), ("onehot", "text")):
        with pytest.raises(DefinitionError, match=reason):
            Encoder(model)


def test_texts_without_a_vector_are_zeros(mteb, tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("loka 1 0\nmino 0 1\n")
    encoder = Encoder(path)
    meta = type("Metadata", (), {"type": "STS"})
    batches = [{"text": ["loka", "mino"]}, {"text": ["unknown"]}]
    with pytest.warns(UserWarning, match="1 of 3"):
        found = encoder.encode(batches, task_metadata=meta, hf_split="test", hf_subset="default")
    assert found.tolist() == [[1, 0], [0, 1], [0, 0]]
    cosines = np.asarray(encoder.similarity(found[:2], found[:2]))
    assert np.allclose(cosines, np.eye(2))
    assert np.allclose(np.asarray(encoder.similarity_pairwise(found[:2], found[:2])), 1)


def test_encoder_without_mteb_has_the_pip_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "mteb", None)
    with pytest.raises(MissingExtra, match=r'pip install "karat\[mteb\]"'):
        Encoder(lambda items: pd.DataFrame(index=items.index))


def texts(count, fields, target, kind, **given):
    items = pd.Series([f"text {i}" for i in range(count)])
    return Dataset("texts", items, pd.DataFrame(fields), np.asarray(target), kind, "text", **given)


def vectors(matrix):
    matrix = np.asarray(matrix, dtype=np.float32)
    return Vectors(matrix, np.arange(len(matrix)))


def few(labels, part):
    return texts(
        len(labels), {"text": range(len(labels))}, labels, "classification", part=np.array(part)
    )


def test_few_shot_draws_the_same_number_of_each_class():
    data = few(["a", "b"] * 20 + ["a"] * 5, ["train"] * 40 + ["test"] * 5)
    folds = split(data, {"use": "few-shot", "samples": 3, "repeats": 4}, seed=1)
    assert [fold.repeat for fold in folds] == [0, 1, 2, 3]
    for fold in folds:
        labels = np.asarray(data.target)[fold.train]
        assert sorted(labels) == ["a"] * 3 + ["b"] * 3
        assert fold.test.tolist() == [40, 41, 42, 43, 44]
    assert len({tuple(sorted(fold.train)) for fold in folds}) > 1
    again = split(data, {"use": "few-shot", "samples": 3, "repeats": 4}, seed=2)
    assert all((a.train == b.train).all() for a, b in zip(folds, again, strict=True))


def test_few_shot_in_folds_tests_every_row_once():
    data = few(["a", "b"] * 20, ["train"] * 40)
    folds = split(data, {"use": "few-shot", "samples": 2, "folds": 4}, seed=1)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(40))
    assert all(len(fold.train) == 4 and fold.repeat == 0 for fold in folds)


def test_few_shot_needs_classes_and_parts():
    with pytest.raises(DefinitionError):
        list(few_shot(texts(2, {"text": [0, 1]}, [0.5, 1.5], "regression")))
    with pytest.raises(DataError, match="part"):
        list(few_shot(texts(2, {"text": [0, 1]}, ["a", "b"], "classification")))


def test_each_group_is_a_fold():
    data = texts(4, {"text": [0, 1, 2, 3]}, list("abab"), "classification", group=list("yyxx"))
    folds = split(data, {"use": "each-group"}, seed=0)
    assert [fold.test.tolist() for fold in folds] == [[0, 1], [2, 3]]
    with pytest.raises(DefinitionError, match="groups"):
        split(texts(2, {"text": [0, 1]}, list("ab"), "classification"), {"use": "each-group"}, 0)


def test_the_number_of_clusters_is_that_of_the_set():
    target = ["0: a", "0: a", "0: b", "0: b"]
    classes = ("0: a", "0: b", "1: c", "1: d", "1: e")
    data = texts(4, {"text": [0, 1, 2, 3]}, target, "classification", classes=classes)
    found = Clustering().answer(data, vectors([[0, 0], [0, 0.1], [9, 9], [9, 9.1]]))
    assert len(set(found.predictions)) == 2
    assert score("v_measure", found)[0] == 1.0
    assert len(set(Clustering().unanswered(data).predictions)) == 4


def test_pairs_have_a_row_per_measure():
    data = texts(4, {"a": [0, 1], "b": [2, 3]}, [0, 1], "classification", classes=(0, 1))
    # by cosine the second pair is nearer, by distance the first one
    found = Pairs().answer(data, vectors([[1, 0], [9, 0], [1, 0.5], [1, 0]]))
    assert (
        found.group.tolist() == ["cosine"] * 2 + ["dot"] * 2 + ["euclidean"] * 2 + ["manhattan"] * 2
    )
    own = {name: found.take(np.flatnonzero(found.group == name)) for name in set(found.group)}
    assert score("pr_auc", own["cosine"])[0] == 1.0 and score("pr_auc", own["euclidean"])[0] == 0.5
    assert score("max_ap", found)[0] == 1.0


def test_candidates_are_ranked_within_their_query():
    items = pd.Series({"q": "q", "d:1": "x", "d:2": "y", "d:3": "z", "x:4": None}, dtype=object)
    fields = {"query": ["q"] * 4, "document": ["d:1", "d:2", "d:3", "x:4"]}
    data = Dataset(
        "lists",
        items,
        pd.DataFrame(fields),
        np.array([0.0, 1.0, 0.0, 1.0]),
        "regression",
        "text",
        group=np.array(["q"] * 4),
    )
    # d:1 and d:3 tie, the higher id is first; x:4 has no vector
    space = vectors([[1, 0], [1, 0.5], [1, 0.1], [1, 0.5], [np.nan, np.nan]])
    probe = Candidates()
    able = probe.answerable(data, space)
    assert able.tolist() == [True, True, True, False]
    found = probe.answer(data.take(np.flatnonzero(able)), space)
    assert found.rank.tolist() == [3, 1, 2]
    both = found.merged(probe.unanswered(data.take(np.flatnonzero(~able))), able)
    # two are relevant, one of which is never found
    assert score("map@1000", both)[0] == 0.5 and score("recall@10", both)[0] == 0.5


def test_bitext_predicts_one_of_many_classes():
    data = texts(4, {"query": [0, 1]}, [2, 3], "items")
    found = Bitext(queries="apart")
    found.fit(data, vectors(np.eye(4)))
    answers = found.answer(data, vectors([[1, 0], [1, 0.1], [1, 0], [0, 1]]))
    assert answers.predictions.tolist() == ["2", "2"]
    # of class 2 precision 1/2 and recall 1, of class 3 nothing
    assert score("f1_weighted", answers)[0] == pytest.approx(1 / 3)
    assert score("acc", answers)[0] == 0.5
