"""Names that users import from here; they are in ``karat.ext.compat.convert``."""

from karat.ext.compat.convert import *  # noqa: F403
