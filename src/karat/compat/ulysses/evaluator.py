"""Names that users import from here; they are in ``karat.ext.compat.ulysses.evaluator``."""

from karat.ext.compat.ulysses.evaluator import *  # noqa: F403
