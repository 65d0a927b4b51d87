"""Compatibility with the AutoML Benchmark's user folder and command line.

Every Karat command also accepts its definition files with ``--define``.
"""

from karat.compat.amlb.overrides import Overrides, read_overrides
from karat.compat.amlb.userdir import files_of

__all__ = ["Overrides", "files_of", "read_overrides"]
