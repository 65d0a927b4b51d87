"""Ulysses SentEval's interface: change the import of a script, and it runs on Karat.

``import ulysses_senteval`` becomes ``from karat.compat import ulysses as ulysses_senteval``.
"""

from karat.compat.ulysses.evaluator import UlyssesSentEval, UlyssesSentEvalLazy

__all__ = ["UlyssesSentEval", "UlyssesSentEvalLazy"]
