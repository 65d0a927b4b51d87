"""Names that users import from here; they are in ``karat.ext.compat.tabeb.encoders``."""

from karat.ext.compat.tabeb.encoders import *  # noqa: F403
