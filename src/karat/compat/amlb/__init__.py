"""Names that users import from here; they are in ``karat.ext.compat.amlb``."""

from karat.ext.compat.amlb import *  # noqa: F403
from karat.ext.compat.amlb import __all__ as __all__
