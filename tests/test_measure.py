"""Meters: phases add up, and each job has a peak of its own."""

import sys
import time

import numpy as np
import pytest

from karat import measure
from karat.measure import Meter, peak_memory


def test_phases_add_up_even_when_one_raises(monkeypatch):
    clock = iter([0.0, 1.0, 3.0, 10.0, 14.0, 100.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    meter = Meter()
    with meter.phase("fit"):
        pass
    with pytest.raises(ValueError), meter.phase("fit"):
        raise ValueError
    costs = meter.costs()
    assert costs["fit_seconds"] == 2 + 4
    assert costs["seconds"] == 100


def test_sleeping_costs_wall_time_and_no_cpu():
    meter = Meter()
    time.sleep(0.05)
    costs = meter.costs()
    assert costs["seconds"] >= 0.05
    assert costs["cpu_seconds"] < costs["seconds"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep one peak per process")
def test_the_peak_is_reset_for_each_job():
    meter = Meter()
    big = np.ones(200 * 2**17)  # 200 MB
    with_big = meter.costs()["peak_memory_mb"]
    del big
    without = Meter().costs()["peak_memory_mb"]
    assert with_big - without > 150
    assert peak_memory() < with_big


def test_peak_memory_without_proc(monkeypatch):
    def refused(*_, **__):
        raise OSError

    monkeypatch.setattr(measure, "open", refused, raising=False)
    assert Meter().costs()["peak_memory_mb"] > 1
