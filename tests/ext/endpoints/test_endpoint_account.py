"""Usage, rate limits, reservations of texts, and budgets that the processes of a run share."""

import os
import threading

import numpy as np
import pytest

from karat.ext.endpoints.endpoint_account import (
    OverBudget,
    Rate,
    Request,
    Reservation,
    Settlement,
    Taken,
    Usage,
    current_account,
    remarks_of,
)
from karat.ext.endpoints.endpoint_rows import ROW, ReceivedVectors
from karat.ext.endpoints.endpoint_store import Unwritable
from karat.ext.endpoints.endpoint_vectors import text_mark

from .accounts import as_in_another_process, make_account, use_account

FAMILY = "f" * 32


def marks_of(*texts):
    return [text_mark("", text) for text in texts]


def answer_of(*texts, tokens=2.0, truncated=0, seconds=0.5, vectors=None):
    rows = np.zeros(len(texts), ROW)
    rows["mark"] = np.frombuffer(b"".join(marks_of(*texts)), ROW["mark"])
    rows["tokens"], rows["bytes"], rows["truncated"] = tokens, 8, truncated
    matrix = np.arange(2 * len(texts)).reshape(-1, 2) + 1 if vectors is None else vectors
    return ReceivedVectors(rows, np.array(matrix, np.float32), seconds)


def claimed(account, *texts, **needs):
    return account.claim(account.vectors(FAMILY), Request(marks_of(*texts), **needs), 0.0)


def delivered(account, *texts, **facts):
    """Claim and store an answer; return its vectors as they were stored."""
    claim = claimed(account, *texts)
    table = account.vectors(FAMILY)
    account.finish(claim, table, "m", Settlement(tokens=1.0, answer=answer_of(*texts, **facts)))
    table.refresh()
    return table


def test_texts_are_requested_by_one_process_at_a_time():
    one, other = make_account(), make_account()
    claim = claimed(one, "a", "b")
    assert isinstance(claim, Reservation)
    assert claimed(other, "b", "c") == Taken(frozenset(marks_of("b")))
    one.finish(claim, one.vectors(FAMILY), "m", Settlement())  # the request failed
    again = claimed(other, "b", "c")
    assert isinstance(again, Reservation)
    other.finish(again, other.vectors(FAMILY), "m", Settlement(answer=answer_of("b", "c")))
    assert claimed(one, "c") == Taken(frozenset(marks_of("c")))
    assert marks_of("b")[0] in one.vectors(FAMILY)


def test_what_a_dead_process_claimed_is_free(tmp_path):
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    account = make_account()
    if (child := os.fork()) == 0:
        claimed(account, "a", price=0.5)
        os._exit(0)
    os.waitpid(child, 0)
    assert isinstance(claimed(account, "a"), Reservation)


def test_a_rate_is_held_over_any_number_of_units():
    rate, now, sent = Rate(600.0), 100.0, []
    for _ in range(200):
        now += rate.wait(1, now)
        sent.append(now)
    # one second's worth at once, then ten per second
    assert sent[9] == 100.0 and sent[-1] == pytest.approx(100 + (200 - 11) / 10, abs=0.11)
    assert Rate(None).wait(1e9, 0.0) == 0.0


def test_processes_share_a_rate_and_tokens_are_corrected():
    one, other = make_account(), make_account()
    table = one.vectors(FAMILY)
    waits = []
    for i, account in enumerate([one, other] * 3):
        request = Request(marks_of(str(i)), tokens=10.0, tokens_per_minute=600.0)
        claim = account.claim(table, request, 100.0)
        waits.append(claim.wait)
        account.finish(claim, table, "m", Settlement(tokens=20.0 if i == 2 else 10.0))
    # ten per second, one second's worth at once, ten more for the third request
    assert waits == pytest.approx([0.0, 0.0, 1.0, 3.0, 4.0, 5.0])


def test_usage_counts_texts_and_requests():
    account = make_account()
    delivered(account, "a", "b", seconds=0.5)
    delivered(account, "c", seconds=1.5)
    table = delivered(account, "long", tokens=-6.0, truncated=1, seconds=2.5)
    with account.services.counting() as outer:
        account.use(table.read(marks_of("a", "b", "c")), 0.01)
        with account.services.counting() as inner:
            account.use(table.read(marks_of("long")), 0.01)
            account.sending(1, 0.5)
    facts = outer.facts()
    assert (facts["tokens"], facts["texts"], facts["requests"]) == (12, 4, 3)
    assert facts["price"] == pytest.approx(0.12)
    assert facts["request_seconds_median"] == 1.5
    assert facts["request_seconds_p95"] == pytest.approx(2.4)
    assert facts["tokens_estimated"] and facts["truncated"] == 1
    assert inner.facts()["texts_per_second"] == 2.0 and not inner.facts()["tokens"] == 12
    assert Usage().facts() == {}


def test_a_budget_is_never_passed():
    account = make_account(budget=1.0)
    other = as_in_another_process(account)
    first = claimed(account, "a", price=0.6)
    assert isinstance(first, Reservation) and claimed(other, "b", price=0.6) == Taken(frozenset())
    table = account.vectors(FAMILY)
    account.finish(first, table, "m", Settlement(charged=0.3, tokens=30, price=0.3))
    second = claimed(other, "b", price=0.6)
    other.finish(second, table, "m", Settlement(charged=0.6, tokens=60, price=0.6))
    with pytest.raises(OverBudget, match=r"\$0\.90 of the budget of \$1\.00"):
        claimed(account, "c", price=0.2)
    third = claimed(account, "c", price=0.1)
    account.finish(third, table, "m", Settlement())  # the request failed
    assert account.sent() == {"m": (2, 90.0, pytest.approx(0.9))}


def test_what_a_dead_process_reserved_counts_as_spent():
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    account = as_in_another_process(make_account(budget=1.0))
    if (child := os.fork()) == 0:
        claimed(account, "a", price=0.9)
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(OverBudget, match=r"\$0\.90 of"):
        claimed(account, "b", price=0.2)


def test_a_lost_answer_counts_for_the_budget_and_not_for_the_bill():
    account = make_account(budget=1.0)
    claim = claimed(account, "a", price=0.9)
    account.finish(claim, account.vectors(FAMILY), "m", Settlement(charged=0.9))
    assert account.sent() == {}
    with pytest.raises(OverBudget, match=r"\$0\.90 of"):
        claimed(account, "b", price=0.2)


def test_a_run_whose_record_is_gone_spends_nothing_more():
    account = make_account(budget=1.0)
    claim = claimed(account, "a", price=0.5)
    account.finish(
        claim, account.vectors(FAMILY), "m", Settlement(charged=0.5, tokens=5, price=0.5)
    )
    for file in account.database.folder.iterdir():  # as by karat cache --clear
        file.unlink()
    with pytest.raises(OverBudget, match="does not tell any more what this run has spent"):
        claimed(account, "b", price=0.1)


def test_without_a_budget_nothing_is_refused():
    account = make_account()
    claim = claimed(account, "a", price=1e9)
    account.finish(claim, account.vectors(FAMILY), "m", Settlement(charged=1e9, tokens=5))
    assert account.sent() == {"m": (1, 5, None)}


def test_the_bill_of_all_processes_is_seen_in_the_folder_of_the_run(tmp_path):
    account = make_account(tmp_path)
    other = as_in_another_process(account)
    assert account.sent() == {}
    delivered(other, "a")
    assert account.sent() == {"m": (1, 1.0, None)}


def test_nothing_is_created_before_a_request(tmp_path):
    account = make_account()
    assert marks_of("a")[0] not in account.vectors(FAMILY)
    assert account.sent() == {} and not (tmp_path / "cache").exists()


def test_conspicuous_vectors_are_named():
    assert remarks_of(np.array([[1.0, 2.0], [2.0, 1.0]])) == []
    assert remarks_of(np.zeros((1, 4))) == ["1 of 1 vectors of the endpoint are zero"]
    assert len(remarks_of(np.zeros((3, 4)))) == 2


def test_encoders_use_the_account_of_their_run(tmp_path):
    before = current_account()
    with use_account(make_account(tmp_path)) as account:
        assert current_account() is account
    assert current_account() is before


def test_no_other_request_takes_the_room_of_an_answer_that_arrived(tmp_path, monkeypatch):
    account = make_account(store=tmp_path)
    claim, database = claimed(account, "a"), account.database
    write, use_room = database.write, database.use_room
    other = threading.Thread(target=lambda: database.make_room(2, 1000))

    def write_with_room(action):
        if database._room.path.exists():
            raise Unwritable("No space left on device")
        return write(action)

    def give_room():
        use_room()
        other.start()
        other.join(0.2)  # takes the room, if it may

    monkeypatch.setattr(database, "write", write_with_room)
    monkeypatch.setattr(database, "use_room", give_room)
    table = account.vectors(FAMILY)
    account.finish(claim, table, "model", Settlement(tokens=1.0, answer=answer_of("a")))
    other.join()
    table.refresh()
    assert table.unsaved == 0 and text_mark("", "a") in table
