"""``python -m karat.compat.geval``: GEval's tasks with its parameters and files."""

from __future__ import annotations

import sys

from karat.cli.app import main as run_command_line


def main() -> None:
    """Run the command with the arguments of this process."""
    sys.argv.insert(1, "geval")
    run_command_line()


if __name__ == "__main__":
    main()
