"""Run the benchmarks and print one table: what was measured, against what, and the limit."""

from __future__ import annotations

import sys
from importlib import import_module

PARTS = (
    "startup",
    "endpoint",
    "serve",
    "scheduling",
    "engines",
    "board",
    "significance",
    "pairs",
    "ranking",
    "search",
    "analogies",
    "against_mteb",
    "mteb_leaderboard",
    "encoding",
    "corruptions",
    "vector_files",
    "relatedness",
    "heads",
    "node_heads",
    "variants",
    "install_size",
)


def main() -> int:
    chosen = sys.argv[1:] or PARTS
    print(f"{'what':<46}{'measured':>14}{'limit':>12}   against")
    late = 0
    for part in chosen:
        for what, value, limit, unit, against in import_module(part).measure():
            late += value > limit
            mark = "" if value <= limit else "   OVER"
            print(f"{what:<46}{value:>10.3g} {unit:<3}{limit:>8g} {unit:<3}   {against}{mark}")
            sys.stdout.flush()
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
