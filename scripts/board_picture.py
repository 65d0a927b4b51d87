"""Draw the board of run folders as docs/board.svg: python scripts/board_picture.py results."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

import karat
from karat.reporting.terminal import leaderboard_text

WIDTH = 130
#: the letters of the reader's own machine: a picture in a README may not load any
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def main() -> None:
    """Read the runs, draw the board, write the picture."""
    board = karat.leaderboard([Path(path) for path in sys.argv[1:]])
    console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False)
    console.print("$ karat run quickstart\n", style="bold")
    console.print(leaderboard_text(board, WIDTH))
    svg = console.export_svg(title="karat run quickstart", theme=MONOKAI)
    svg = re.sub(r"@font-face \{.*?\}\n", "", svg, flags=re.DOTALL)
    Path("docs/board.svg").write_text(svg.replace("Fira Code, monospace", FONTS) + "\n")


if __name__ == "__main__":
    main()
