"""Search models: BM25 by its formula, rerankers, fusion, and whole runs against trec_eval."""

from __future__ import annotations

import math
import pickle
import sys
import zlib
from types import ModuleType
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import karat
from karat.config.catalog import Catalog
from karat.errors import ContractError, Declined, DefinitionError
from karat.execution.plan import make_plan
from karat.ext.endpoints.bills import estimate_bills
from karat.ext.search.search_models import BM25, Fusion, Reranker
from karat.models.adapters import adapt
from karat.models.model_identity import model_identity
from karat.models.searchers import (
    EncoderSearch,
    StoredTexts,
    as_searcher,
    descending_ranks,
    scored_pairs,
    stage_encoders,
)

DOCUMENTS = ["the cat sat on the mat", "dogs bark loudly", "a cat and a dog"]


def test_bm25_by_its_formula():
    """Lucene's variant: idf = ln(1 + (N - n + 0.5) / (n + 0.5)), tf / (tf + k1 (1 - b + b L))."""
    bm25 = pytest.importorskip("bm25s") and BM25(k1=1.2, b=0.75)
    texts = ["cat cat mouse", "dog mouse house tree", "bird"]
    found = bm25.index(texts).scores(["cat", "mouse", "zebra"])
    lengths = np.array([3, 4, 1]) / (8 / 3)
    norm = 1.2 * (1 - 0.75 + 0.75 * lengths)
    cat = math.log(1 + (3 - 1 + 0.5) / 1.5) * 2 / (2 + norm[0])
    mouse = math.log(1 + (3 - 2 + 0.5) / 2.5) * 1 / (1 + norm[:2])
    np.testing.assert_allclose(found[0], [cat, 0, 0], rtol=1e-5)
    np.testing.assert_allclose(found[1], [*mouse, 0], rtol=1e-5)
    assert found[2].tolist() == [0, 0, 0]


def test_texts_without_words_have_no_score():
    pytest.importorskip("bm25s")
    assert BM25().index(["...", ""]).scores(["cat"]).tolist() == [[0, 0]]


@pytest.mark.parametrize("method", ["lucenes", ""])
def test_unknown_variants_are_refused(method):
    pytest.importorskip("bm25s")
    with pytest.raises(DefinitionError, match="method"):
        BM25(method=method).check_installed()


class Stage:
    """A search model with fixed scores; its calls are recorded."""

    def __init__(self, *scores):
        self.given = scores

    def index(self, documents):
        self.documents = documents

    def scores(self, queries):
        return np.array([self.given] * len(queries), dtype=float)


class Longest:
    """Scores a pair by the length of its document."""

    def __init__(self):
        self.pairs = []

    def predict(self, pairs):
        self.pairs += pairs
        return [len(document) for _, document in pairs]


def test_only_the_best_of_the_first_stage_are_ordered_again():
    model = Longest()
    found = Reranker(model, Stage(0.1, 0.9, 0.5), top=2).index(DOCUMENTS)
    scores = found.scores(["q"])
    assert model.pairs == [("q", DOCUMENTS[1]), ("q", DOCUMENTS[2])]
    # "dogs bark loudly" is longer than "a cat and a dog"; the other document stays last
    assert np.argsort(-scores[0]).tolist() == [1, 2, 0]
    assert np.argsort(
        -Reranker(model, Stage(0.1, 0.9, 0.5), top=3).index(DOCUMENTS).scores(["q"])[0]
    ).tolist() == [0, 1, 2]


def test_equal_scores_of_a_reranker_stay_equal():
    class Same:
        def predict(self, pairs):
            return np.zeros(len(pairs))

    (scores,) = Reranker(Same(), Stage(3, 2, 1), top=2).index(DOCUMENTS).scores(["q"])
    assert scores[0] == scores[1] > scores[2]


def test_fusion_adds_reciprocal_ranks():
    fused = Fusion([Stage(3, 2, 1), Stage(1, 3, 2)]).index(DOCUMENTS)
    expected = [1 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62]
    np.testing.assert_allclose(fused.scores(["q"]), [expected])


def test_ranks_of_ties():
    ranks = descending_ranks(np.array([[1.0, 5.0, 1.0, 9.0]]))
    assert ranks.tolist() == [[2, 1, 2, 0]]


class Vowels:
    def encode(self, texts):
        return np.array([[text.count(v) for v in "aeiou"] for text in texts], dtype=float)


def test_an_encoder_is_a_first_stage_by_cosine():
    found = as_searcher(Vowels())
    found.index(["aaa", "aei", "ooo"])
    np.testing.assert_allclose(found.scores(["aa"]), [[1.0, 3**-0.5, 0.0]], rtol=1e-6)


def test_a_fitted_encoder_is_no_first_stage():
    from sklearn.feature_extraction.text import TfidfVectorizer

    with pytest.raises(ContractError, match="first stage"):
        as_searcher(TfidfVectorizer())


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (Fusion([BM25()]), "two or more"),
        (Reranker(Longest()), "model and first"),
        (Reranker(Longest(), Stage(1), top=0), "top"),
    ],
)
def test_wrong_parameters_are_refused(model, match):
    with pytest.raises(DefinitionError, match=match):
        model.check_installed()


@pytest.mark.parametrize("answer", [[1.0], [np.nan, 1.0], [[1.0], [2.0]]])
def test_wrong_scores_of_a_reranker_are_refused(answer):
    model = type("Wrong", (), {"predict": lambda self, pairs: answer})()
    with pytest.raises(ContractError, match="one finite score per pair"):
        Reranker(model, Stage(3, 2, 1), top=2).index(DOCUMENTS).scores(["q"])


def test_the_identity_depends_on_both_stages():
    made = [
        Reranker(Longest(), BM25()),
        Reranker(Longest(), BM25(b=0.5)),
        Reranker(Longest(), BM25(), top=5),
        Fusion([BM25(), Vowels()]),
        Fusion([Vowels(), BM25()]),
    ]
    identities = [model_identity(adapt(each)) for each in made]
    assert None not in identities and len(set(identities)) == len(made)
    assert model_identity(adapt(Reranker(Longest(), BM25()))) == identities[0]


def test_stages_are_named_in_yaml(tmp_path):
    pytest.importorskip("bm25s")
    file = tmp_path / "mine.yaml"
    file.write_text(
        "models:\n  both:\n    extends: fusion\n"
        "    params: {models: [model:bm25, model:use-multilingual]}\n"
        "  again:\n    extends: reranker\n    params: {model: nowhere/x, first: model:bm26}\n"
    )
    model = Catalog([file]).model("both")
    assert model.role == "searcher"
    if not model.unavailable:
        assert type(model.prototype.models[0]) is BM25
    with pytest.raises(DefinitionError, match='"bm26".*"bm25"'):
        Catalog([file]).model("again")


def test_a_variant_is_no_stage(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "models:\n  x:\n    extends: fusion\n"
        "    params: {models: [model:bm25, model:use-multilingual@64d]}\n"
    )
    with pytest.raises(DefinitionError, match="use-multilingual@64d"):
        Catalog([file]).model("x")


def test_a_search_model_depends_on_what_its_stages_depend_on(tmp_path):
    pytest.importorskip("bm25s")
    file = tmp_path / "mine.yaml"
    file.write_text(
        'models:\n  mine:\n    extends: bm25\n    version: "7"\n'
        "  x:\n    extends: fusion\n    params: {models: [model:bm25, model:mine]}\n"
    )
    assert Catalog([file]).model("x").depends_on == ("version:7",)


# -- cross-encoders -------------------------------------------------------------------------


class CrossEncoder:
    """Replaces the class of sentence-transformers; a score is the length of the document."""

    made: ClassVar[list] = []

    def __init__(self, name, **options):
        self.made.append((name, options))
        self.max_seq_length = None

    def predict(self, pairs, batch_size, show_progress_bar):
        assert show_progress_bar is False
        self.batch_size = batch_size
        return np.array([len(document) for _, document in pairs])


@pytest.fixture
def stand_in(monkeypatch):
    module = ModuleType("sentence_transformers")
    module.CrossEncoder = CrossEncoder
    CrossEncoder.made.clear()
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.setitem(sys.modules, "torch", torch := ModuleType("torch"))
    torch.get_num_threads, torch.set_num_threads = lambda: 2, lambda threads: None


def test_a_cross_encoder_is_loaded_once_from_a_folder(tmp_path, monkeypatch, stand_in):
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    found = Reranker(str(tmp_path), Stage(1, 2, 3), top=2, batch=7, device="cpu", revision="r")
    scores = found.index(DOCUMENTS).scores(["q", "r"])
    # "dogs bark loudly" is longer than "a cat and a dog"; the first document was last
    assert np.argsort(-scores[0]).tolist() == [1, 2, 0]
    ((name, options),) = CrossEncoder.made
    assert name == str(tmp_path) and found.model_.batch_size == 7
    assert options["device"] == "cpu" and options["revision"] == "r"
    assert options["local_files_only"] and options["model_kwargs"] == {"use_safetensors": True}
    assert "model_" not in vars(pickle.loads(pickle.dumps(found)))


def test_the_identity_depends_on_the_files_of_a_cross_encoder(tmp_path, stand_in):
    made = Reranker(str(tmp_path), BM25())
    before = made.fingerprint()
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    assert made.fingerprint() != before


def test_a_missing_folder_of_a_cross_encoder_is_declined(tmp_path, stand_in):
    with pytest.raises(Declined, match="not found.*nowhere"):
        Reranker(str(tmp_path / "nowhere"), BM25()).check_installed()


@pytest.fixture
def cross_encoder(tmp_path):
    """Return the folder of a real CrossEncoder with random weights, which reads 16 tokens."""
    library = pytest.importorskip("sentence_transformers")
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder = tmp_path / "cross"
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(200))]
    (folder / "vocab.txt").write_text("\n".join(words))
    config = BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=16, num_labels=1,
    )  # fmt: skip
    torch.manual_seed(0)
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=16)
    tokenizer.save_pretrained(folder)
    return folder, library.CrossEncoder


def test_a_real_cross_encoder_orders_the_first_documents_again(cross_encoder):
    folder, kind = cross_encoder
    model = kind(str(folder), local_files_only=True)
    texts = ["w1 w2", "w3", "w4 " * 30, "w5 w6 w7"]
    expected = np.argsort(-model.predict([("w1 w9", text) for text in texts]))
    for one in (str(folder), model):
        found = Reranker(one, Stage(4, 3, 2, 1), top=4, batch=3).index(texts)
        assert np.argsort(-found.scores(["w1 w9"])[0]).tolist() == expected.tolist()
        assert scored_pairs(found) == (4, 1)  # one pair has more than 16 tokens
    before = Reranker(model, Stage(1)).fingerprint()
    model.predict([("w1", "w2")])
    assert Reranker(model, Stage(1)).fingerprint() == before


def test_a_run_with_a_real_cross_encoder(tmp_path, monkeypatch, cross_encoder):
    pytest.importorskip("bm25s")
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    texts, asked, judged = corpus(6, 20)
    data = karat.Dataset.from_corpus(texts, asked, judged, name="c")
    task = karat.Task("c", data, {"use": "nearest", "queries": "apart"}, "all", ["mrr"])
    models = {"cross": Reranker(str(cross_encoder[0]), BM25(), top=5)}
    found = []
    for workers in (0, 1):
        output = tmp_path / f"runs-{workers}"
        (run,) = karat.evaluate(models, task, output=output, workers=workers)
        (record,) = run.records()
        assert record["status"] == "ok" and record["pairs"] == 30
        assert any("30 of them over" in note for note in record["notes"])
        found.append(run.results()["mrr"].item())
    assert found[0] == found[1]


# -- stored vectors -------------------------------------------------------------------------


class RoleEncoder:
    """The length of the text and whether it is a query; the texts it gets are recorded."""

    takes, by_text, uses_roles = ("text",), ("text",), True

    def __init__(self):
        self.seen = []

    def prompt_for(self, role):
        return role

    def encode(self, texts, role=""):
        self.seen += [(role, text) for text in texts]
        return np.array([[len(text), role == "query"] for text in texts], dtype=float)

    def transform(self, items):
        raise AssertionError("texts are encoded")


def test_stored_vectors_are_found_by_role_and_text():
    """The item "pear" is a query and a document; its vector as a query is in the last row."""
    items = pd.Series({"a": "pear", "b": "apple", "c": "fig"})
    asked = pd.DataFrame({"query": ["a", "b"]})
    data = karat.Dataset("d", items, asked, np.array(["c", "a"]), "items", "text", roles=("query",))
    assert data.item_roles.main.tolist() == ["document", "query", "document"]
    matrix = np.array([[1, 0], [2, 0], [3, 0], [4, 0]], dtype=np.float32)
    stored = StoredTexts(matrix, data)
    assert stored.rows(["pear", "fig", "apple", "kiwi"], "document").tolist() == [0, 2, -1, -1]
    assert stored.rows(["pear", "apple"], "query").tolist() == [3, 1]
    # one vector per item if the prompts do not differ
    assert StoredTexts(matrix[:3], data).rows(["pear", "apple"], "query").tolist() == [0, 1]


def test_only_texts_without_a_stored_vector_are_encoded():
    items = pd.Series({"q": "pear", "d": "fig"})
    data = karat.Dataset(
        "d", items, pd.DataFrame({"query": ["q"]}), np.array(["d"]), "items", "text",
        roles=("query",),
    )  # fmt: skip
    encoder = RoleEncoder()
    search = EncoderSearch(encoder, StoredTexts(np.eye(2, dtype=np.float32), data))
    search.index(["fig", "kiwi"])
    # the stored vectors of query and document are orthogonal; kiwi is encoded as (4, 0)
    np.testing.assert_allclose(search.scores(["pear"]), [[0.0, 1.0]])
    assert encoder.seen == [("document", "kiwi")]


def test_stages_are_found_at_any_depth():
    one, two = Vowels(), NoiseEncoder()
    nested = Fusion([BM25(), Reranker(Longest(), Fusion([two, Stage(1)])), one])
    assert stage_encoders(nested) == [two, one]
    assert stage_encoders(BM25()) == stage_encoders(one) == []


# -- whole runs -----------------------------------------------------------------------------


def corpus(queries=40, documents=300, seed=0):
    """Return random texts with graded judgments, also of documents that are not relevant."""
    rng = np.random.default_rng(seed)
    words = np.array([f"w{i}" for i in range(200)])
    texts = {f"d{i}": " ".join(rng.choice(words, 30)) for i in range(documents)}
    asked = {f"q{i}": " ".join(rng.choice(words, 8)) for i in range(queries)}
    rows = [
        (query, f"d{place}", int(rng.integers(0, 4)))
        for query in asked
        for place in rng.choice(documents, 12, replace=False)
    ]
    frame = pd.DataFrame(rows, columns=["query", "document", "relevance"])
    positive = frame.groupby("query")["relevance"].transform("max") > 0
    return texts, asked, frame[positive]


def noise(text):
    return np.random.default_rng(zlib.crc32(text.encode())).normal(size=16)


class NoiseEncoder:
    def encode(self, texts):
        return np.array([noise(text) for text in texts])


class NoiseSearch:
    def index(self, documents):
        self.vectors = np.array([noise(text) for text in documents])

    def scores(self, queries):
        return np.array([noise(text) for text in queries]) @ self.vectors.T


@pytest.mark.parametrize("passages", [None, 7])
@pytest.mark.parametrize("model", [NoiseEncoder(), NoiseSearch()])
def test_scores_equal_those_of_trec_eval(tmp_path, model, passages):
    """Scores without ties, so that the order of equal scores does not matter."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    texts, asked, judged = corpus()
    data = karat.Dataset.from_corpus(texts, asked, judged, name="c", passages=passages)
    cuts = {"ndcg@10": "ndcg_cut_10", "recall@10": "recall_10", "recall@100": "recall_100"}
    names = {**cuts, "map": "map", "mrr": "recip_rank"}
    task = karat.Task("c", data, {"use": "nearest", "queries": "apart"}, "all", list(names))
    (run,) = karat.evaluate({"m": model}, task, output=tmp_path)
    searcher, owners = as_searcher(model), data.passage_of
    items = data.items[~data.items.index.str.startswith("query")]
    searcher.index(items.tolist())
    owners = items.index if owners is None else owners[len(data.items) - len(items) :]
    scores = pd.DataFrame(searcher.scores(list(asked.values())).T, owners, list(asked))
    ranking = scores.groupby(level=0).max().astype(float).to_dict()
    qrels: dict[str, dict[str, int]] = {}
    for query, document, relevance in judged.itertuples(index=False):
        qrels.setdefault(query, {})[document] = int(relevance)
    found = pytrec_eval.RelevanceEvaluator(qrels, set(names.values())).evaluate(ranking)
    for ours, theirs in names.items():
        expected = np.mean([each[theirs] for each in found.values()])
        assert run.results()[ours].item() == pytest.approx(expected, abs=1e-6), ours


def test_a_search_model_declines_tasks_without_documents(tmp_path):
    pytest.importorskip("bm25s")
    texts = [f"text {i}" for i in range(20)]
    frame = pd.DataFrame({"text": texts, "label": ["x", "y"] * 10})
    data = karat.Dataset.from_columns(frame, ["text"], "label", name="d")
    (run,) = karat.evaluate({"bm25": BM25()}, karat.Task("d", data), output=tmp_path)
    assert [record["status"] for record in run.records()] == ["declined"]


def test_scores_of_the_wrong_shape_are_a_failed_job(tmp_path):
    texts, asked, judged = corpus(8, 20)
    data = karat.Dataset.from_corpus(texts, asked, judged, name="c")
    task = karat.Task("c", data, {"use": "nearest", "queries": "apart"}, "all", ["mrr"])
    (run,) = karat.evaluate({"wrong": Stage(1, 2, 3)}, task, output=tmp_path)
    (record,) = run.records()
    assert record["status"] == "failed" and "(8, 20)" in record["info"]


CALLS: list[str] = []


class Counted:
    """An encoder whose texts are counted."""

    def encode(self, texts):
        CALLS.extend(texts)
        return np.array([noise(text) for text in texts])


@pytest.mark.parametrize("cache", [True, False])
def test_an_encoder_encodes_each_text_once_for_all_models(tmp_path, monkeypatch, cache):
    """Alone, as a first stage and in a fusion; scores are those without stored vectors."""
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    CALLS.clear()
    texts, asked, judged = corpus(8, 20)
    data = karat.Dataset.from_corpus(texts, asked, judged, name="c")
    task = karat.Task("c", data, {"use": "nearest", "queries": "apart"}, "all", ["mrr"])
    models = {
        "alone": Counted(),
        "reranked": Reranker(Overlap(), Counted(), top=5),
        "fused": Fusion([NoiseSearch(), Reranker(Overlap(), Counted(), top=3)]),
    }
    output = karat.Output(tmp_path / "runs", cache=cache)
    runs = karat.evaluate(models, task, output=output)
    assert sorted(CALLS) == sorted({*texts.values(), *asked.values()})
    rows = pd.concat([run.results() for run in runs]).set_index("framework")
    assert rows["embed_seconds"].nunique() == 1 and rows["embed_seconds"].min() > 0
    first = as_searcher(NoiseEncoder())  # a search model of its own: nothing is stored
    again = {"same": Fusion([NoiseSearch(), Reranker(Overlap(), first, top=3)])}
    output = karat.Output(tmp_path / "again", cache=cache)
    (run,) = karat.evaluate(again, task, output=output)
    assert run.results()["mrr"].item() == rows["mrr"]["fused"]


def test_stages_are_embedded_in_workers_too(tmp_path, monkeypatch):
    pytest.importorskip("bm25s")
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    texts, asked, judged = corpus(8, 20)
    data = karat.Dataset.from_corpus(texts, asked, judged, name="c")
    task = karat.Task("c", data, {"use": "nearest", "queries": "apart"}, "all", ["mrr"])

    class Digits:  # of this function, so that it is pickled with its code
        def encode(self, texts):
            return np.array([[text.count(digit) for digit in "0123456789"] for text in texts])

    models = {"x": Fusion([Digits(), BM25()])}
    scores = []
    for workers in (0, 1):
        output = tmp_path / str(workers)
        runs = karat.evaluate(
            models, task, output=karat.Output(output, cache=False), workers=workers
        )
        scores += [(run.results()["mrr"].item(), run.results()["status"].item()) for run in runs]
        assert all(run.results()["embed_seconds"].item() > 0 for run in runs)
    assert scores[0] == scores[1] and scores[0][1] == "ok"


class Overlap:
    """A reranker: the number of common words."""

    def predict(self, pairs):
        return [len({*one.split()} & {*other.split()}) for one, other in pairs]


@pytest.fixture
def task(tmp_path, monkeypatch):
    """A search among 20 documents with 8 queries, for models behind an endpoint."""
    pytest.importorskip("httpx")
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    data = karat.Dataset.from_corpus(*corpus(8, 20), name="c")
    return karat.Task("c", data, {"use": "nearest", "queries": "apart"}, "all", ["mrr"])


def test_the_cost_of_stages_is_on_the_row(task, tmp_path):
    """An endpoint as the first stage is paid once; the pairs of a reranker are counted."""
    from karat.ext.endpoints.endpoint_encoder import EndpointEncoder

    from ...endpoint_server import serving

    with serving() as server:
        first = EndpointEncoder(f"{server.url}/v1", "words-small", price_per_million_tokens=10)
        models = {
            "reranked": Reranker(Overlap(), first, top=5),
            "hybrid": Fusion([first, Reranker(Overlap(), first, top=3)]),
        }
        runs = karat.evaluate(models, task, output=tmp_path / "runs")
        rows = pd.concat([run.results() for run in runs]).set_index("framework")
        assert server.texts.total() == 20 + 8
    assert rows["status"].tolist() == ["ok", "ok"]
    assert rows["pairs"].to_dict() == {"reranked": 8 * 5, "hybrid": 8 * 3}
    assert rows["tokens"]["reranked"] == server.tokens
    assert rows["price"]["reranked"] == pytest.approx(server.tokens * 1e-5)


def test_stages_behind_an_endpoint_are_planned_and_keep_the_budget(task, tmp_path):
    """Texts that two models share are on the first bill; nothing is sent without a budget."""
    from karat.ext.endpoints.endpoint_encoder import EndpointEncoder

    from ...endpoint_server import serving

    with serving() as server:

        def stage(name):
            return EndpointEncoder(f"{server.url}/v1", name, price_per_million_tokens=10)

        models = {
            "hybrid": Fusion([stage("words-small"), Stage(*range(20))]),
            "reranked": Reranker(Overlap(), stage("words-small"), top=5),
        }
        plan = make_plan([adapt(each, name) for name, each in models.items()], [task])
        (bill,) = estimate_bills(plan)
        assert (bill.model, bill.texts, bill.missing) == ("hybrid", 28, 28)
        output = tmp_path / "runs"
        stopped = karat.evaluate(models, task, output=output, workers=karat.Machines(budget=1e-9))
        assert server.texts.total() == 0 and not any(run.records() for run in stopped)
        runs = karat.evaluate(
            models, task, output=output, workers=karat.Machines(budget=1.0), resume=True
        )
        assert server.texts.total() == 28
        assert estimate_bills(plan)[0].missing == 0
    rows = pd.concat([run.results() for run in runs]).set_index("framework")
    assert rows["status"].tolist() == ["ok", "ok"]
    assert rows["tokens"].tolist() == rows["embed_tokens"].tolist() == [server.tokens] * 2
