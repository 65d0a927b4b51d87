"""Claims: no work is taken twice, that of a dead owner is taken over."""

import os
import threading
import time

import pytest

from karat.errors import DefinitionError
from karat.execution.claims import Claims

KEYS = [f"key-{number}" for number in range(60)]


def test_several_owners_divide_the_work(tmp_path):
    taken = []

    def work(start):
        order = [(start + step) % len(KEYS) for step in range(len(KEYS))]
        with Claims(tmp_path, 300, KEYS) as claims:
            for place, claim in claims.take(order):
                taken.append(place)
                claim.finish()

    threads = [threading.Thread(target=work, args=(10 * number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(len(KEYS)))
    assert len(list(tmp_path.glob("*.done"))) == len(KEYS)
    assert not list(tmp_path.glob(".clock*"))


def test_the_claim_of_a_dead_owner_is_taken_over_once_it_expires(tmp_path):
    with Claims(tmp_path, 300, ["a"]) as first, Claims(tmp_path, 300, ["a"]) as second:
        ((_, claim),) = first.take([0])
        assert list(second.take([0])) == []
        claim._ended.set()  # it dies
        os.utime(claim.path, (time.time() - 301,) * 2)
        ((_, later),) = second.take([0])
        assert (claim.generation, later.generation) == (1, 2)
        assert list(Claims(tmp_path, 300, ["a"]).__enter__().take([0])) == []
        later.finish()
        assert list(first.take([0])) == []


def test_the_lease_is_that_of_the_owner(tmp_path):
    with Claims(tmp_path, 1000, ["a"]) as first, Claims(tmp_path, 1, ["a"]) as second:
        ((_, claim),) = first.take([0])
        claim._ended.set()
        os.utime(claim.path, (time.time() - 100,) * 2)
        assert list(second.take([0])) == []


def test_a_released_claim_can_be_taken_at_once_by_others(tmp_path):
    with Claims(tmp_path, 300, ["a"]) as first, Claims(tmp_path, 300, ["a"]) as second:
        taking = first.take([0])
        _, claim = next(taking)
        claim.release()
        assert list(taking) == []  # not by itself: it would try for ever
        assert len(list(second.take([0]))) == 1


def test_an_owner_renews_its_claim(tmp_path):
    with Claims(tmp_path, 0.4, ["a"]) as claims:
        ((_, claim),) = claims.take([0])
        os.utime(claim.path, (1, 1))
        end = time.monotonic() + 30
        while claim.path.stat().st_mtime == 1 and time.monotonic() < end:
            time.sleep(0.02)
        assert claim.path.stat().st_mtime > 1
        claim.finish()


def test_claims_of_another_plan_are_refused(tmp_path):
    with Claims(tmp_path, 300, ["a", "b"]):
        pass
    with pytest.raises(DefinitionError, match="another plan"), Claims(tmp_path, 300, ["a", "c"]):
        pass


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DefinitionError, match="--claim"), Claims(tmp_path / "file", 300, ["a"]):
        pass


def test_a_damaged_claim_expires_like_others(tmp_path):
    (tmp_path / "a.1").write_text("{")
    os.utime(tmp_path / "a.1", (1, 1))
    with Claims(tmp_path, 300, ["a"]) as claims:
        ((_, claim),) = claims.take([0])
        assert claim.generation == 2
