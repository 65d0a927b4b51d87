"""Power that is reached when the number of tasks comes from a pilot, with known truth.

    python benchmarks/power.py

Differences of tasks are normal with a standard deviation of 1. A pilot estimates it, Karat states
how many tasks are needed for a power of 80 %, and the power of that many tasks is exact.
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy

from karat.stats.paired_tests import _t_power, needed_pairs

PILOTS = (6, 10, 20, 40)
EFFECTS = (0.3, 0.5, 0.8)


def reached_power(tasks: int, effect: float, pilots: int, variance_known: bool = False) -> float:
    """Return the mean power of the numbers of tasks that pilots of this many tasks ask for.

    ``variance_known`` takes the standard deviation of the pilot for the true one.
    """
    freedom = tasks - 1
    # equally probable standard deviations of pilots
    shares = (np.arange(pilots) + 0.5) / pilots
    spreads = np.sqrt(scipy.special.chdtri(freedom, shares) / freedom)
    pilot = np.inf if variance_known else freedom
    needed = np.array([needed_pairs(spread, effect, pilot) for spread in spreads])
    return float(_t_power(needed - 1, effect * np.sqrt(needed)).mean())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pilots", type=int, default=500, help="pilots of each size")
    arguments = parser.parse_args()
    print("| tasks of the pilot | difference / sd | power reached | with the pilot's variance |")
    print("|---:|---:|---:|---:|")
    for tasks in PILOTS:
        for effect in EFFECTS:
            now = reached_power(tasks, effect, arguments.pilots)
            before = reached_power(tasks, effect, arguments.pilots, variance_known=True)
            print(f"| {tasks} | {effect} | {now:.3f} | {before:.3f} |")


if __name__ == "__main__":
    main()
