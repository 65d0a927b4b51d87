"""Compatibility with the AutoML Benchmark's user folder and command line.

Every Karat command also accepts its definition files with ``--define``.
"""

from karat.ext.compat.amlb.definitions import Overrides, files_of, read_overrides

__all__ = ["Overrides", "files_of", "read_overrides"]
