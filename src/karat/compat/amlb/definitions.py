"""Names that users import from here; they are in ``karat.ext.compat.amlb.definitions``."""

from karat.ext.compat.amlb.definitions import *  # noqa: F403
