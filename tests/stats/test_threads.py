"""One thread for products of small matrices."""

from __future__ import annotations

from threadpoolctl import threadpool_info

from karat.stats.threads import single_thread


def blas_threads():
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


def test_threads_are_limited_inside_and_restored_after():
    before = blas_threads()
    with single_thread():
        assert blas_threads() and set(blas_threads()) == {1}
    assert blas_threads() == before
