"""Names that users import from here; they are in ``karat.ext.compat.ulysses``."""

from karat.ext.compat.ulysses import *  # noqa: F403
from karat.ext.compat.ulysses import __all__ as __all__
