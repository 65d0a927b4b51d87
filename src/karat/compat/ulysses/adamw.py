"""Names that users import from here; they are in ``karat.ext.compat.ulysses.adamw``."""

from karat.ext.compat.ulysses.adamw import *  # noqa: F403
