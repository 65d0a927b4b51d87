"""Names that users import from here; they are in ``karat.ext.compat.tabeb.interface``."""

from karat.ext.compat.tabeb.interface import *  # noqa: F403
