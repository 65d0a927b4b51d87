"""Names that users import from here; they are in ``karat.ext.compat.geval.gold``."""

from karat.ext.compat.geval.gold import *  # noqa: F403
