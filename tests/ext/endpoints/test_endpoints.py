"""Encoders behind an endpoint, against a real server that misbehaves on purpose."""

import os
import pickle
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import karat
from karat.config.catalog import Catalog
from karat.core.dataset import Dataset
from karat.core.registry import load_object
from karat.core.services import current_services
from karat.core.task import Task
from karat.errors import ContractError, DefinitionError, JobsFailed, KaratWarning, Postponed
from karat.ext.endpoints import endpoints
from karat.ext.endpoints.endpoints import EndpointEncoder, retry_after
from karat.models.adapters import adapt
from karat.models.model_identity import model_identity
from karat.results.load import status

from ...endpoint_server import count_tokens, serving, text_vector
from .accounts import make_account, use_account

pytest.importorskip("httpx")

TEXTS = [f"text number {i} of {'many ' * (i % 7)}" for i in range(40)]
#: the routes of all dialects
ROUTES = {
    "openai": "/v1",
    "voyage": "/v1",
    "cohere": "/v2",
    "tei": "/embed",
    "ollama": "/api/embed",
}
KEY = "sk-Zq83-secret-key-0451"


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def clock(monkeypatch):
    """Replace the clock: waiting takes no time, and the waits are recorded."""
    waits = []
    monkeypatch.setattr(endpoints, "_now", lambda: 1000.0 + sum(waits))
    monkeypatch.setattr(endpoints, "_wait", lambda stop, seconds: waits.append(seconds))
    return waits


def encoder_of(server, dialect="openai", **params):
    params = {"model": "words-small", "concurrency": 4, **params}
    return EndpointEncoder(server.url + ROUTES[dialect], dialect=dialect, **params)


def expected(texts, width=32):
    return np.array([text_vector(text, width) for text in texts])


def test_it_is_found_where_it_was_in_earlier_versions():
    assert load_object("karat.models.contrib.endpoints:EndpointEncoder") is EndpointEncoder
    assert karat.models.EndpointEncoder is EndpointEncoder
    assert Catalog().model("HTTP://localhost:1/v1#words").prototype.model == "words"


# -- dialects -------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ROUTES)
def test_every_dialect_returns_the_vectors_of_the_server(dialect):
    with serving() as server:
        made = encoder_of(server, dialect, batch_texts=7)
        np.testing.assert_allclose(made.encode(TEXTS), expected(TEXTS), atol=1e-6)
        again = encoder_of(server, dialect, batch_texts=3, price_per_million_tokens=5.0)
        with current_services().counting() as used:
            np.testing.assert_array_equal(again.encode(TEXTS[::-1]), made.encode(TEXTS)[::-1])
    assert server.requests == 6 and server.texts.total() == len(TEXTS)
    assert used.facts()["tokens"] == 2 * sum(map(count_tokens, TEXTS)) == 2 * server.tokens


@pytest.mark.parametrize("dialect", ROUTES)
def test_dimensions_are_requested(dialect):
    with serving() as server:
        assert encoder_of(server, dialect, dimensions=8).encode(["a", "b"]).shape == (2, 8)


def test_packed_vectors_are_requested_and_plain_ones_accepted():
    with serving() as server:
        encoder_of(server).encode(TEXTS)
        assert server.bodies[0]["encoding_format"] == "base64"
    with serving(packs=False) as server:
        made = encoder_of(server, batch_texts=10)
        np.testing.assert_allclose(made.encode(TEXTS), expected(TEXTS), atol=1e-6)
        assert server.requests == 5 and "encoding_format" not in server.bodies[-1]


@pytest.mark.parametrize(
    ("dialect", "types"),
    [
        ("cohere", ["search_query", "search_document", "classification"]),
        ("voyage", ["query", "document", None]),
        ("openai", [None, None, None]),
    ],
)
def test_a_role_is_the_input_type_of_a_dialect(dialect, types):
    roles = ["query", "document", None]
    with serving() as server:
        made = encoder_of(server, dialect)
        for role in roles:
            made.encode(["same text"], role=role)
        assert [body.get("input_type") for body in server.bodies] == list(dict.fromkeys(types))
    assert [made.prompt_for(role) for role in roles] == [each or "" for each in types]


def test_a_prompt_is_a_prefix_by_role():
    prompt = {"query": "query: ", "document": "passage: "}
    with serving() as server:
        made = encoder_of(server, prompt=prompt)
        for role in ("query", "document", None, "query"):
            made.encode(["word"], role=role)
        assert sorted(server.texts.elements()) == ["passage: word", "query: word", "word"]
    assert made.prompt_for("query") == "query: "
    assert encoder_of(server, prompt="as: ").prompt_for(None) == "as: "


def test_the_dialect_follows_the_address():
    names = {
        "http://localhost:8080/v1": ("openai", "http://localhost:8080/v1/embeddings"),
        "http://localhost:8080/embed": ("tei", "http://localhost:8080/embed"),
        "http://localhost:11434": ("ollama", "http://localhost:11434/api/embed"),
        "http://localhost:11434/v1/": ("openai", "http://localhost:11434/v1/embeddings"),
        "https://api.cohere.com/v2": ("cohere", "https://api.cohere.com/v2/embed"),
        "https://api.voyageai.com/v1": ("voyage", "https://api.voyageai.com/v1/embeddings"),
    }
    for url, (dialect, address) in names.items():
        made = EndpointEncoder(url, "m")
        assert (made.spoken, made.address) == (dialect, address)
    assert made.key_variable() == "VOYAGE_API_KEY"
    assert EndpointEncoder("http://localhost:1/v1").key_variable() == ""


# -- definitions ----------------------------------------------------------------------------


def test_a_url_is_a_model(tmp_path):
    catalog = Catalog()
    model = catalog.model("http://localhost:8080/v1#BAAI/bge-small.txt")
    assert (model.name, model.prototype.model) == ("bge-small.txt", "BAAI/bge-small.txt")
    assert catalog.model("mine=http://localhost:8080/v1#m").name == "mine"
    assert catalog.model("http://localhost:8080/v1").name == "localhost-8080"
    file = tmp_path / "models.yaml"
    file.write_text(
        "models:\n  paid:\n    use: endpoint\n    params:\n"
        "      {url: 'http://localhost:8080/v1', model: m, price_per_million_tokens: 0.02}\n"
    )
    paid = Catalog(file).model("paid").prototype
    assert isinstance(paid, EndpointEncoder) and paid.price_per_token == pytest.approx(2e-8)


@pytest.mark.parametrize(
    ("params", "word"),
    [
        ({"url": f"https://me:{KEY}@example.com/v1"}, "password"),
        ({"url": f"https://example.com/v1?key={KEY}"}, "api_key_env"),
        ({"url": "localhost:8080"}, "address"),
        ({"url": "http://[1"}, "address"),
        ({"url": 3}, "address"),
        ({"api_key_env": KEY}, "environment variable"),
        ({"dialect": "opnai"}, '"openai"'),
        ({"batch_tokens": 0}, "batch_tokens"),
        ({"dimensions": 1.5}, "dimensions"),
        ({"requests_per_minute": -1}, "requests_per_minute"),
        ({"price_per_million_tokens": float("nan")}, "price_per_million_tokens"),
        ({"prompt": {"quary": ""}}, "prompt"),
    ],
)
def test_a_wrong_parameter_is_refused_without_its_secret(params, word):
    with pytest.raises(DefinitionError, match=word) as error:
        EndpointEncoder(**{"url": "http://localhost:1/v1", **params})
    assert KEY not in str(error.value)


def test_the_names_of_stored_vectors_are_those_of_earlier_versions():
    """Under another name, vectors that were paid for would be asked for again."""
    url = "https://api.example.com/v1"
    plain = EndpointEncoder("http://localhost:1/v1", "m")
    large = EndpointEncoder(url, "text-3", dimensions=256, revision="2", prompt="query: ")
    assert plain.fingerprint() == "d8570031dc7dcc2406f78ec7d93e641c None"
    assert large.fingerprint() == "dd90b2c9347f593684d71bde6c6f02ce 'query: '"


def test_prices_and_limits_do_not_change_the_identity():
    plain = EndpointEncoder("http://localhost:1/v1", "m")
    paid = clone(plain).set_params(price_per_million_tokens=1.0, requests_per_minute=5, timeout=1)
    other = clone(plain).set_params(revision="2")
    identities = [model_identity(adapt(each, "m")) for each in (plain, paid, other)]
    assert identities[0] == identities[1] != identities[2]
    assert plain.family() == paid.family() != other.family()
    assert set(pickle.loads(pickle.dumps(plain)).__dict__) == set(plain.get_params())


def test_a_missing_library_is_named_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setattr(endpoints.EndpointEncoder, "needs", ("not_installed_library",))
    model = adapt(EndpointEncoder("http://localhost:1/v1"))
    assert 'pip install "karat[endpoint]"' in model.unavailable


# -- bad answers ----------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["count", "width", "nan", "html", "index"])
def test_a_wrong_answer_is_an_error_and_never_a_vector(answer):
    with serving(answer=answer) as server:
        made = encoder_of(server)
        with pytest.raises(ContractError, match=server.url):
            made.encode(TEXTS)
        assert server.requests == 1
        server.answer = ""
        np.testing.assert_allclose(made.encode(TEXTS), expected(TEXTS), atol=1e-6)


def test_shuffled_answers_are_sorted_by_their_index():
    with serving(answer="shuffled") as server:
        np.testing.assert_allclose(encoder_of(server).encode(TEXTS), expected(TEXTS), atol=1e-6)


def test_another_width_than_before_is_an_error():
    with serving() as server:
        made = encoder_of(server)
        made.encode(["a"])
        server.width = 16
        with pytest.raises(ContractError, match=r"16 dimensions.*32.*revision"):
            made.encode(["b"])
        assert encoder_of(server, revision="2").encode(["a"]).shape == (1, 16)


def test_an_answer_of_another_dialect_is_named():
    with serving() as server:
        made = EndpointEncoder(server.url + "/embed/embeddings", "words-small", "openai")
        with pytest.raises(ContractError, match='dialect "openai"'):
            made.encode(["a"])


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_some_errors_are_not_repeated(status, clock):
    with serving(script=[status]) as server:
        with pytest.raises(ContractError, match=f"{status}: failed on purpose"):
            encoder_of(server).encode(TEXTS)
        assert server.requests == 1 and clock == []


def test_an_unknown_model_lists_those_of_the_server():
    with serving() as server:
        with pytest.raises(ContractError, match='404.*words-smal.*Did you mean "words-small"'):
            encoder_of(server, model="words-smal").encode(["a"])


def test_no_server_is_reported_at_once(clock):
    with serving() as server:
        made = encoder_of(server)
    with pytest.raises(ContractError, match=f"no server answers at {server.url}"):
        made.encode(["a"])
    assert clock == []


def test_an_empty_text_has_no_vector_and_is_not_sent():
    with serving() as server:
        found = encoder_of(server).encode(["a", " ", "b", ""])
        assert np.isnan(found).all(axis=1).tolist() == [False, True, False, True]
        assert sorted(server.texts) == ["a", "b"]
    assert np.isnan(encoder_of(server).encode([""])).all()


# -- size -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ROUTES)
def test_texts_over_the_limit_are_truncated_and_counted(dialect):
    texts = [*TEXTS, "far too long " * 30, "also " * 90]
    with serving(limit=12) as server:
        with current_services().counting() as used:
            found = encoder_of(server, dialect).encode(texts)
        np.testing.assert_allclose(found[:40], expected(TEXTS), atol=1e-6)
        assert np.isfinite(found).all()
        assert max(server.texts.values()) == 1 and server.texts.total() == len(texts)
    assert used.facts()["truncated"] == 2 and used.facts()["tokens"] == server.tokens


def test_a_smaller_batch_is_sent_if_the_server_wants_one():
    with serving(most=5) as server:
        made = encoder_of(server)
        np.testing.assert_allclose(made.encode(TEXTS), expected(TEXTS), atol=1e-6)
        before = server.requests
        made.encode([f"{text} more" for text in TEXTS])
        assert server.requests - before == 8
        assert server.texts.total() == 2 * len(TEXTS)


def test_batches_have_a_limit_of_estimated_tokens():
    texts = [f"{i:04d}" * 10 for i in range(20)]  # 40 bytes: about 10 tokens each
    with serving() as server:
        encoder_of(server, batch_tokens=30).encode(texts)
        assert sorted(len(body["input"]) for body in server.bodies) == [2] + [3] * 6


def test_tokens_are_estimated_if_the_server_reports_none():
    with serving(answer="no usage") as server:
        with current_services().counting() as used:
            encoder_of(server).encode(["x" * 40, "y" * 60])
    facts = used.facts()
    assert facts["tokens"] == 25 and facts["tokens_estimated"]


# -- retries --------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 0])
def test_passing_errors_are_repeated(status, clock):
    with serving(script=[200, status, status]) as server:
        made = encoder_of(server, batch_texts=20)
        np.testing.assert_allclose(made.encode(TEXTS), expected(TEXTS), atol=1e-6)
        assert server.requests == 4 and server.texts.total() == len(TEXTS)
    assert len(clock) == 2
    assert 0.25 <= clock[0] <= 0.5 and 0.5 <= clock[1] <= 1.0


def test_pauses_grow_and_end(clock):
    with serving(script=[500] * 99) as server:
        made = encoder_of(server)
        with use_account(make_account()), pytest.raises(Postponed, match="500 .* after 8 attempts"):
            try:
                made.encode(TEXTS)
            finally:
                with pytest.raises(Postponed, match="8 attempts"):
                    made.encode(["another text"])
        assert server.requests == endpoints.ATTEMPTS
    assert len(clock) == endpoints.ATTEMPTS - 1
    bounds = [min(60.0, 0.5 * 2**i) for i in range(len(clock))]
    assert all(bound / 2 <= wait <= bound for wait, bound in zip(clock, bounds, strict=True))


def test_retry_after_is_obeyed(clock):
    with serving(script=[429, 200], retry_after="17") as server:
        encoder_of(server).encode(TEXTS)
    assert clock == [17.0]
    with serving(script=[429, 200], retry_after="100000") as server:
        with use_account(make_account()), pytest.raises(Postponed, match="429"):
            encoder_of(server).encode(TEXTS)


def test_retry_after_may_be_a_date(clock):
    then = datetime.fromtimestamp(1000.0, UTC) + timedelta(seconds=30)
    assert retry_after(format_datetime(then, usegmt=True)) == 30.0
    assert retry_after(format_datetime(then - timedelta(hours=1))) == 0.0
    assert retry_after("-5") == retry_after("nan") == 0.0


def test_requests_keep_to_the_rate(clock):
    with serving() as server:
        made = encoder_of(server, batch_texts=1, concurrency=1, requests_per_minute=60)
        made.encode(TEXTS[:10])
    # two at once, then one per second
    assert sum(clock) == pytest.approx(8.0)


def test_tokens_keep_to_the_rate(clock):
    texts = [f"{i:04d} " * 10 for i in range(10)]  # 12 tokens each
    with serving() as server:
        made = encoder_of(server, batch_texts=1, concurrency=1, tokens_per_minute=720)
        made.encode(texts)
    assert server.tokens == 120
    # 12 per second: those of 10 requests take 10 seconds, the last of which is not waited for
    assert sum(clock) == pytest.approx(8.0, abs=0.5)


def test_the_state_of_a_rate_is_left_to_the_next_process(clock):
    with serving() as server:
        for i in range(10):  # every new object as in another process
            made = encoder_of(server, requests_per_minute=60)
            made.encode([TEXTS[i]])
    assert sum(clock) == pytest.approx(8.0)


def test_a_misbehaving_server_delivers_every_text_once(clock):
    texts = [f"passage {i} about {i % 17}" for i in range(3000)]
    how = {"busy": 0.1, "broken": 0.01, "dropped": 0.02, "answer": "shuffled", "retry_after": "1"}
    with serving(**how) as server:
        made = encoder_of(server, batch_texts=10, price_per_million_tokens=1.0)
        with use_account(make_account()) as account:
            np.testing.assert_allclose(made.encode(texts), expected(texts), atol=1e-6)
            requests, tokens, price = account.sent()["words-small"]
    assert {0, 200, 429, 500} <= set(server.statuses)
    assert set(server.texts.values()) == {1} and len(server.texts) == len(texts)
    assert requests == server.statuses[200] and tokens == server.tokens
    assert price == pytest.approx(server.tokens / 1e6)


# -- keys -----------------------------------------------------------------------------------


def test_the_key_is_read_from_the_environment(monkeypatch):
    with serving(key=KEY) as server:
        made = encoder_of(server, api_key_env="MY_KEY")
        with pytest.raises(ContractError, match="MY_KEY is not set"):
            made.encode(["a"])
        monkeypatch.setenv("MY_KEY", f"{KEY}\n")
        assert made.encode(["a"]).shape == (1, 32)
        monkeypatch.setenv("MY_KEY", "wröng")
        with pytest.raises(ContractError, match="MY_KEY") as error:
            made.encode(["b"])
        assert "wröng" not in str(error.value)


def test_a_server_that_repeats_the_key_does_not_reveal_it(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    with serving(key="another") as server:
        with pytest.raises(ContractError, match=r"401.*\*\*\*.*MY_KEY") as error:
            encoder_of(server, api_key_env="MY_KEY").encode(["a"])
    assert KEY not in str(error.value)
    assert error.value.__cause__ is None


# -- runs -----------------------------------------------------------------------------------


def text_task(name="topics", texts=60, **changes):
    words = ["apple pear plum", "steel iron zinc"]
    rows = [f"{words[i % 2]} number {name} {i}" for i in range(texts)]
    frame = pd.DataFrame({"text": rows, "y": ["ab"[i % 2] for i in range(texts)]})
    data = Dataset.from_columns(frame, ["text"], "y", name=name)
    return Task(
        name, data, **{"metrics": ["acc"], "split": {"use": "kfold", "folds": 2}, **changes}
    )


def run_of(server, *tasks, output, **options):
    params = options.pop("params", {"price_per_million_tokens": 10.0, "batch_texts": 10})
    made = {"paid": encoder_of(server, **params)}
    return karat.evaluate(made, list(tasks), output=output, **options)[0]


@pytest.mark.parametrize("workers", [0, 2])
def test_tokens_and_price_are_on_every_row_and_in_the_leaderboard(tmp_path, workers):
    with serving() as server:
        run = run_of(server, text_task(), output=tmp_path / "out", workers=workers)
        again = run_of(server, text_task(), output=tmp_path / "again", workers=workers)
        assert server.texts.total() == len(server.texts) == 60
    assert [r["scores"]["acc"] for r in run.records()[0]["views"]] == [1.0]
    for record in (*run.records(), *again.records()):
        assert record["tokens"] == record["embed_tokens"] == server.tokens
        assert record["price"] == pytest.approx(server.tokens * 1e-5)
        assert record["requests"] == 6 and record["request_seconds_p95"] > 0
    assert run.records()[0]["texts_per_second"] > 0
    table = pd.read_csv(run.folder / "scores" / "jobs.csv")
    assert table["tokens"].tolist() == [server.tokens] * 2
    board = karat.leaderboard([run])
    assert board.loc["paid", "tokens"] == server.tokens
    assert board.loc["paid", "price"] == pytest.approx(server.tokens * 1e-5)
    assert "price" in str(board) and "$0.0048" in str(board)  # 60 texts of 8 tokens


@pytest.mark.parametrize("workers", [0, 2])
def test_conspicuous_vectors_are_in_the_notes_of_each_job(tmp_path, workers):
    with serving(answer="zero") as server:
        for name in ("out", "again"):  # requested, then stored
            run = run_of(server, text_task(), output=tmp_path / name, workers=workers)
            assert len(run.records()) == 2
            for record in run.records():
                notes = " ".join(record["notes"])
                assert "60 of 60 vectors of the endpoint are zero" in notes
                assert notes.count("all 60 texts got the same vector") == 1


def test_other_models_have_no_columns_of_endpoints(tmp_path):
    run = karat.evaluate({"n": lambda texts: [[len(t), 1] for t in texts]}, [text_task()],
                         output=tmp_path)[0]  # fmt: skip
    assert not {"tokens", "price"} & {*karat.leaderboard([run]), *run.records()[0]}
    assert "tokens" not in (run.folder / "scores" / "jobs.csv").read_text()


def test_corrupted_texts_are_counted_and_cached(tmp_path):
    task = text_task(corruptions={"typos": [0.3]})
    with serving() as server:
        run = run_of(server, task, output=tmp_path / "a", workers=2)
        sent = server.texts.total()
        assert sent > 60 and set(server.texts.values()) == {1}
        again = run_of(server, task, output=tmp_path / "b")
        assert server.texts.total() == sent
    for one, other in zip(run.records(), again.records(), strict=True):
        assert one["tokens"] > one["embed_tokens"] and one["tokens"] == other["tokens"]
    total = karat.leaderboard([run]).loc["paid", "tokens"]
    embedded = run.records()[0]["embed_tokens"]
    assert total == sum(r["tokens"] - embedded for r in run.records()) + embedded


def test_inference_is_not_timed_on_cached_vectors(tmp_path):
    with serving() as server:
        run = run_of(server, text_task(), output=karat.Output(tmp_path, inference=[1]))
    record = run.records()[0]
    assert not record.get("inference") and any("inference" in note for note in record["notes"])


def test_truncated_texts_are_a_note_of_the_job(tmp_path):
    with serving(limit=6) as server:
        run = run_of(server, text_task(), output=tmp_path)
    assert "60 of 60 texts were over the model's limit and truncated" in run.records()[0]["notes"]


def test_a_budget_stops_before_it_is_passed(tmp_path):
    tasks = [text_task("first", 20), text_task("second", 200)]
    with serving() as server:
        first = sum(count_tokens(text) for text in tasks[0].dataset.items)
        budget = 1e-5 * (first * 12)
        with pytest.warns(KaratWarning, match=r"budget of .* 2 of 4 jobs are finished; resume"):
            run = run_of(server, *tasks, output=tmp_path, workers=karat.Machines(2, budget=budget))
        assert server.tokens * 1e-5 <= budget
        assert {r["task"]: r["status"] for r in run.records()} == {"first": "ok"}
        sent = server.texts.total()
        assert 20 < sent < 220
        assert int(status([run.folder])["left"].sum()) == 2
        again = run_of(server, *tasks, output=tmp_path, resume=True)
        assert again.folder == run.folder and len(again.records()) == 4
        assert server.texts.total() == len(server.texts) == 220


def test_a_budget_requires_a_price(tmp_path):
    with serving() as server:
        with pytest.raises(JobsFailed, match="price_per_million_tokens"):
            run_of(server, text_task(), output=tmp_path, params={}, on_failure="raise",
                   workers=karat.Machines(budget=1.0))  # fmt: skip
        assert server.requests == 0
    with pytest.raises(DefinitionError, match="budget"):
        run_of(server, text_task(), output=tmp_path, workers=karat.Machines(budget=-1.0))
    with pytest.raises(DefinitionError, match="budget requires"):
        run_of(server, text_task(), output=tmp_path,
               workers=karat.Machines(budget=1.0, engine="dask"))  # fmt: skip


def test_a_server_that_gives_up_leaves_the_jobs_to_resume(tmp_path, monkeypatch):
    monkeypatch.setattr(endpoints, "_wait", lambda stop, seconds: None)
    with serving(script=[200, 200] + [429] * 99) as server:
        with pytest.warns(KaratWarning, match="429.*0 of 2 jobs are finished"):
            run = run_of(server, text_task(), output=tmp_path)
        assert run.records() == []
        server.script = []
        again = run_of(server, text_task(), output=tmp_path, resume=True)
        assert [record["status"] for record in again.records()] == ["ok", "ok"]
        assert server.texts.total() == len(server.texts) == 60


def test_without_a_cache_nothing_is_left_and_nothing_sent_twice_in_a_run(tmp_path):
    with serving() as server:
        tasks = [text_task(), text_task(corruptions={"typos": [0.3]}, name="topics")]
        tasks[1] = Task("noisy", tasks[0].dataset, metrics=["acc"], corruptions={"typos": [0.3]},
                        split={"use": "kfold", "folds": 2})  # fmt: skip
        run_of(server, *tasks, output=karat.Output(tmp_path / "out", cache=False), workers=2)
        assert set(server.texts.values()) == {1}
        assert list((tmp_path / "cache").rglob("*.journal")) == []


def test_jobs_with_limits_request_their_texts_once(tmp_path):
    with serving(slow=0.02) as server:
        task = text_task(max_runtime_seconds=60)
        run = run_of(server, task, output=tmp_path, workers=2)
        assert [record["status"] for record in run.records()] == ["ok", "ok"]
        assert server.texts.total() == len(server.texts) == 60


# -- the command line -----------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a task on 300 texts."""
    made = tmp_path / "work"
    made.mkdir()
    rows = [f"{'apple pear' if i % 2 else 'iron zinc'} number {i}" for i in range(300)]
    frame = pd.DataFrame({"text": rows, "y": ["ab"[i % 2] for i in range(300)]})
    frame.to_csv(made / "topics.csv", index=False)
    (made / "suite.yaml").write_text(
        "datasets:\n  topics-data: {reader: columns, path: topics.csv, fields: [text], target: y}\n"
        "tasks:\n  topics: {dataset: topics-data, metrics: [acc],\n"
        "    probe: {use: trained, head: knn}, split: {use: kfold, folds: 3}}\n"
        "suites:\n  mine: {tasks: [topics]}\n"
    )
    # so that the tests do not wait: imported by the process of the command
    (made / "fast.py").write_text(
        "import karat.ext.endpoints.endpoints as endpoints\nendpoints.SHORTEST = 0.001\n"
    )
    return made


def command(folder, server, *more):
    """Return the arguments of karat run; requests have five texts."""
    (folder / "model.yaml").write_text(
        f"models:\n  paid:\n    use: endpoint\n    params: {{url: '{server.url}/v1',\n"
        "      model: words-small, api_key_env: MY_KEY, batch_texts: 5, concurrency: 2,\n"
        "      price_per_million_tokens: 10}\n"
    )
    definitions = [f"--define={folder / each}" for each in ("suite.yaml", "model.yaml", "fast.py")]
    return ["run", "mine", "-m", "paid", "-o", str(folder / "out"), *definitions, *more]


def test_plan_estimates_tokens_and_price_without_sending(folder, cli, monkeypatch):
    with serving() as server:
        arguments = [a for a in command(folder, server) if a not in ("-o", str(folder / "out"))]
        found = cli("plan", *arguments[1:])
        assert "300 of 300 texts are not in the cache" in found.out and "$" in found.out
        assert server.requests == 0
        monkeypatch.setenv("MY_KEY", KEY)
        assert cli(*command(folder, server)).code == 0
        assert re.search(r" \d\.\d MB received from endpoints", cli("cache").out)
        before = server.requests
        assert "about 0 tokens, $0.00: 0 of 300 texts" in cli("plan", *arguments[1:]).out
        assert server.requests == before


def test_a_killed_run_requests_only_what_is_missing(folder, tmp_path):
    (tmp_path / "tmp").mkdir()
    environment = {**os.environ, "MY_KEY": KEY, "TMPDIR": str(tmp_path / "tmp")}
    with serving(slow=0.02, key=KEY) as server:
        call = [sys.executable, "-m", "karat", *command(folder, server)]
        killed = subprocess.Popen(
            call, env=environment, cwd=folder, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 240
        while server.texts.total() < 60 and time.monotonic() < deadline:
            time.sleep(0.01)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
        deadline = time.monotonic() + 60
        while (before := server.requests) and time.monotonic() < deadline:
            time.sleep(0.5)  # the worker ends with its parent
            if server.requests == before:
                break
        assert 60 <= server.texts.total() < 300
        left = list(written(tmp_path / "tmp"))  # what a finished run would have removed
        assert left and not any(KEY.encode() in content for _, content in left)
        done = subprocess.run([*call, "--resume"], env=environment, cwd=folder, check=True,
                              capture_output=True, text=True)  # fmt: skip
        assert len(server.texts) == 300
        # answers on their way when the process was killed, at most one per connection, were lost
        assert server.texts.total() - 300 <= 2 * 5
        sent = server.texts.total()
        subprocess.run(call, env=environment, cwd=folder, check=True, capture_output=True)
        assert server.texts.total() == sent
    assert "sent to words-small" in done.stderr


def written(*folders):
    """Yield all bytes below some folders, with those of compressed files."""
    import gzip

    for folder in folders:
        for path in Path(folder).rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                yield path, content
                if path.suffix == ".gz":
                    yield path, gzip.decompress(content)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"answer": "nan"},
        {"answer": "html"},
        {"key": "another key"},
        {"script": [500] * 8},
        {"script": [200, 200] + [0] * 16},
    ],
    ids=["fine", "nan", "html", "401", "500", "dropped"],
)
def test_the_key_is_in_no_written_byte(folder, tmp_path, how):
    environment = {**os.environ, "MY_KEY": KEY, "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    with serving(**{"key": KEY, **how}) as server:
        done = subprocess.run(
            [sys.executable, "-m", "karat", "--verbose", "--log-file", str(tmp_path / "log.txt"),
             *command(folder, server, "--workers", "0" if "script" in how else "2")],
            env=environment, cwd=folder, capture_output=True,
        )  # fmt: skip
        assert server.requests >= 1
    assert done.returncode == (1 if how else 0), done.stderr
    files = list(written(tmp_path))
    places = {path.name for path, _ in files}
    assert {"run.json", "log.txt", "model.yaml"} <= places
    assert b"MY_KEY" in next(content for path, content in files if path.name == "run.json")
    found = [path for path, content in files if KEY.encode() in content]
    assert found == [] and KEY.encode() not in done.stdout + done.stderr


def test_a_password_in_the_url_is_refused_and_not_logged(cli, tmp_path):
    log = tmp_path / "log.txt"
    for url in (f"https://me:{KEY}@example.com/v1#m", f"https://example.com/v1?key={KEY}#m"):
        found = cli("--log-file", log, "run", "sentences", "-m", url, "-o", tmp_path / "out")
        assert found.code == 2 and "api_key_env" in found.err
        assert KEY not in found.out + found.err + log.read_text()


def test_the_budget_of_a_command_keeps_what_is_there_and_says_so(folder, cli, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    with serving() as server:
        found = cli(*command(folder, server, "--budget", "0.01"))
        assert found.code == 1 and "--resume" in found.err and "$0.01" in found.err
        assert 0 < server.tokens * 1e-5 <= 0.01
        found = cli(*command(folder, server, "--resume", "--format", "json"))
        assert found.code == 0 and server.texts.total() == len(server.texts) == 300
    assert f'"tokens": {server.tokens}' in found.out
