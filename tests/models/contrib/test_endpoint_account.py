"""Journals of paid vectors, rate limits, usage and budgets."""

import os
import pickle

import numpy as np
import pytest

from karat.models.contrib.endpoint_account import (
    ROW,
    Account,
    Journal,
    OverBudget,
    Rate,
    Usage,
    current_account,
    job_usage,
    text_mark,
    use_account,
)


def rows_of(*texts, tokens=2.0, truncated=0):
    rows = np.zeros(len(texts), ROW)
    marks = b"".join(text_mark("", text) for text in texts)
    rows["mark"] = np.frombuffer(marks, ROW["mark"])
    rows["tokens"], rows["bytes"], rows["truncated"] = tokens, 8, truncated
    return rows


def marks_of(*texts):
    return [text_mark("", text) for text in texts]


def filled(path):
    journal = Journal(path)
    journal.add(rows_of("a", "b"), np.array([[1, 2], [3, 4]]), 0.5)
    journal.add(rows_of("c"), np.array([[5, 6]]), 1.5)
    return journal


def test_a_journal_returns_vectors_in_the_order_asked_for(tmp_path):
    found = filled(tmp_path / "j").read(marks_of("c", "a", "c"))
    assert found.vectors.tolist() == [[5, 6], [1, 2], [5, 6]]
    assert found.rows["tokens"].tolist() == [2.0, 2.0, 2.0]
    assert sorted(found.seconds) == [0.5, 1.5]


def test_another_process_finds_what_was_added(tmp_path):
    reader = Journal(tmp_path / "j")
    reader.refresh()
    assert reader.width is None
    writer = filled(tmp_path / "j")
    reader.refresh()
    assert all(mark in reader for mark in marks_of("a", "b", "c")) and reader.width == 2
    writer.add(rows_of("d"), np.array([[7, 8]]), 0.1)
    assert marks_of("d")[0] not in reader
    reader.refresh()
    assert reader.read(marks_of("d")).vectors.tolist() == [[7, 8]]
    assert (reader.tokens, reader.bytes) == (8.0, 32)


@pytest.mark.parametrize("kept", [1, 20, 40, -1])
def test_a_frame_that_was_cut_off_is_replaced(tmp_path, kept):
    whole = filled(tmp_path / "j")
    first = whole._frames[1].place - 24
    content = (tmp_path / "j").read_bytes()
    (tmp_path / "j").write_bytes(content[: first + kept] if kept > 0 else content[:-1])
    again = Journal(tmp_path / "j")
    again.refresh()
    a, _, c = marks_of("a", "b", "c")
    assert a in again and c not in again
    again.add(rows_of("c"), np.array([[9, 9]]), 1.0)
    third = Journal(tmp_path / "j")
    third.refresh()
    assert third.read([c, a]).vectors.tolist() == [[9, 9], [1, 2]]


def test_a_changed_byte_is_never_a_vector(tmp_path):
    filled(tmp_path / "j")
    content = bytearray((tmp_path / "j").read_bytes())
    content[60] ^= 1
    (tmp_path / "j").write_bytes(content)
    again = Journal(tmp_path / "j")
    again.refresh()
    assert again.width is None


def test_vectors_stay_usable_if_the_journal_cannot_be_written(tmp_path):
    journal = Journal(tmp_path / "missing" / "j")
    journal.add(rows_of("a"), np.array([[1, 2]]), 0.5)
    journal.add(rows_of("b"), np.array([[3, 4]]), 0.5)
    assert journal.read(marks_of("b", "a")).vectors.tolist() == [[3, 4], [1, 2]]
    assert list(tmp_path.iterdir()) == []


def test_a_prompt_changes_the_mark_of_a_text():
    assert text_mark("query: ", "a") != text_mark("", "a") != text_mark("", "b")
    assert text_mark("", "\ud800")  # a lone surrogate


def test_a_rate_is_held_over_any_number_of_units():
    rate, now, sent = Rate(600.0), 100.0, []
    for _ in range(200):
        now += rate.wait(1, now)
        sent.append(now)
    # one second's worth at once, then ten per second
    assert sent[9] == 100.0 and sent[-1] == pytest.approx(100 + (200 - 11) / 10, abs=0.11)
    rate.correct(10)
    assert rate.wait(1, now) == pytest.approx(1.1)
    assert Rate(None).wait(1e9, 0.0) == 0.0


def test_usage_counts_texts_and_requests(tmp_path):
    journal = filled(tmp_path / "j")
    journal.add(rows_of("long", tokens=-6.0, truncated=1), np.array([[0, 1]]), 2.5)
    account = Account()
    with account.counting() as outer:
        account.use(journal.read(marks_of("a", "b", "c")), 0.01)
        with account.counting() as inner:
            account.use(journal.read(marks_of("long")), 0.01)
            account.sending(1, 0.5)
    facts = outer.facts()
    assert (facts["tokens"], facts["texts"], facts["requests"]) == (12, 4, 3)
    assert facts["price"] == pytest.approx(0.12)
    assert facts["request_seconds_median"] == 1.5
    assert facts["request_seconds_p95"] == pytest.approx(2.4)
    assert facts["tokens_estimated"] and facts["truncated"] == 1
    assert inner.facts()["texts_per_second"] == 2.0 and not inner.facts()["tokens"] == 12
    assert Usage().facts() == {}


def test_a_job_has_the_usage_of_its_data_and_its_own():
    used = Usage(texts=1, tokens=5.0, price=0.5, seconds=[1.0])
    embedded = {"tokens": 10, "price": 1.0, "truncated": 2, "texts": 3, "requests": 1}
    facts = job_usage(embedded, used)
    assert (facts["tokens"], facts["price"], facts["embed_tokens"]) == (15, 1.5, 10)
    assert (facts["texts"], facts["requests"], facts["truncated"]) == (4, 2, 2)
    assert job_usage(None, Usage()) == {}
    assert job_usage({**embedded, "price": None}, Usage())["price"] is None


def test_a_budget_is_never_passed(tmp_path):
    account = Account(tmp_path, budget=1.0)
    other = pickle.loads(pickle.dumps(account))  # as in another process
    assert account.reserve(0.6) and not other.reserve(0.6)
    account.settle(0.6, "m", 30, 0.3)
    assert other.reserve(0.6)
    other.settle(0.6, "m", 60, 0.6)
    with pytest.raises(OverBudget, match=r"\$0\.90 of the budget of \$1\.00"):
        account.reserve(0.2)
    assert account.reserve(0.1)
    account.settle(0.1, "m", 0, None)  # the request failed
    assert other.sent() == {"m": (2, 90.0, pytest.approx(0.9))}


def test_what_a_dead_process_reserved_counts_as_spent(tmp_path, monkeypatch):
    account = Account(tmp_path, budget=1.0)
    child = os.fork() if hasattr(os, "fork") else None
    if child == 0:
        account.reserve(0.9)
        os._exit(0)
    if child is None:
        pytest.skip("needs fork")
    os.waitpid(child, 0)
    with pytest.raises(OverBudget, match=r"\$0\.90 of"):
        account.reserve(0.2)


def test_without_a_budget_nothing_is_refused():
    account = Account()
    assert account.reserve(1e9)
    account.settle(1e9, "m", 5, None)
    assert account.sent() == {"m": (1, 5, None)}


def test_encoders_use_the_account_of_their_run(tmp_path):
    before = current_account()
    with use_account(Account(tmp_path)) as account:
        assert current_account() is account
    assert current_account() is before
