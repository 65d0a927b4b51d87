"""Names that users import from here; they are in ``karat.ext.compat.taco.benchmark``."""

from karat.ext.compat.taco.benchmark import *  # noqa: F403
