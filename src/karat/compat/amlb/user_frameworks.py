"""Names that users import from here; they are in ``karat.ext.compat.amlb.user_frameworks``."""

from karat.ext.compat.amlb.user_frameworks import *  # noqa: F403
