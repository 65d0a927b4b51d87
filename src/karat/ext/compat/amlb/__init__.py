"""Compatibility with the AutoML Benchmark's user folder and command line.

Every Karat command also accepts its definition files with ``--define``.
"""

from karat.core import lazy_names

__all__ = ["Overrides", "files_of", "read_overrides"]  # noqa: F822
# the command turns off the search for cycles before it imports them
__getattr__ = lazy_names(__name__, {"definitions": "Overrides files_of read_overrides"})
