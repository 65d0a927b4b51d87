"""Names that users import from here; they are in ``karat.ext.compat.taco``."""

from karat.ext.compat.taco import *  # noqa: F403
from karat.ext.compat.taco import __all__ as __all__
from karat.ext.compat.taco import __getattr__ as __getattr__
from karat.ext.compat.taco.script_functions import DECLINED as DECLINED
