"""MTEB both ways: its tasks in Karat, Karat's models in mteb, and its result files.

``suite("STSBenchmark")`` returns tasks of mteb, ``Encoder(model)`` is an encoder for mteb.
"""

from karat.ext.compat.mteb.mteb_tasks import Encoder, suite

__all__ = ["Encoder", "suite"]
