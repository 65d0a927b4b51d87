"""Names that users import from here; they are in ``karat.ext.compat.tabeb.readers``."""

from karat.ext.compat.tabeb.readers import *  # noqa: F403
