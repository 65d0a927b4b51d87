"""Names that users import from here; they are in ``karat.ext.compat.geval.manager``."""

from karat.ext.compat.geval.manager import *  # noqa: F403
