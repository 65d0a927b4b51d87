"""Ulysses SentEval's interface: change the import of a script to run it on Karat.

``import ulysses_senteval`` becomes ``from karat.compat import ulysses as ulysses_senteval``.
"""

from karat.ext.compat.ulysses.evaluator import UlyssesSentEval, UlyssesSentEvalLazy

__all__ = ["UlyssesSentEval", "UlyssesSentEvalLazy"]
