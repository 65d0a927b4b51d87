"""Names that users import from here; they are in ``karat.ext.compat.taco.result_files``."""

from karat.ext.compat.taco.result_files import *  # noqa: F403
