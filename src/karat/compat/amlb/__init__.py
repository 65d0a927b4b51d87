"""Names that users import from here; they are in ``karat.ext.compat.amlb``."""

from karat.ext.compat.amlb import __all__ as __all__
from karat.ext.compat.amlb import __getattr__ as __getattr__
