"""Requests: wrong answers, sizes, retries and rates."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest

from karat.core.services import current_services
from karat.errors import ContractError, Postponed
from karat.ext.endpoints import endpoint_delivery
from karat.ext.endpoints.endpoint_delivery import retry_after
from karat.ext.endpoints.endpoint_encoder import EndpointEncoder

from ...endpoint_server import serving
from .accounts import make_account, use_account
from .served_encoders import ROUTES, TEXTS, encoder_of, expected

pytest.importorskip("httpx")


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
        assert server.requests == endpoint_delivery.ATTEMPTS
    assert len(clock) == endpoint_delivery.ATTEMPTS - 1
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
