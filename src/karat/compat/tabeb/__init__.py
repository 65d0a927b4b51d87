"""Names that users import from here; they are in ``karat.ext.compat.tabeb``."""

from karat.ext.compat.tabeb import *  # noqa: F403
from karat.ext.compat.tabeb import __all__ as __all__
