"""Names that users import from here; they are in ``karat.ext.compat.geval``."""

from karat.ext.compat.geval import *  # noqa: F403
from karat.ext.compat.geval import __all__ as __all__
