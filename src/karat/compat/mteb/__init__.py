"""Names that users import from here; they are in ``karat.ext.compat.mteb``."""

from karat.ext.compat.mteb import *  # noqa: F403
from karat.ext.compat.mteb import __all__ as __all__
