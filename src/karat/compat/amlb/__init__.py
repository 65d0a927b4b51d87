"""Stands in for the AutoML Benchmark: its files, its frameworks and its command line.

Definitions need nothing of this: any command takes files of the AutoML Benchmark with ``--define``.
"""

from karat.compat.amlb.overrides import Overrides, read_overrides
from karat.compat.amlb.userdir import files_of

__all__ = ["Overrides", "files_of", "read_overrides"]
