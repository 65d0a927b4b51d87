"""Names that users import from here; they are in ``karat.ext.compat.geval.result_files``."""

from karat.ext.compat.geval.result_files import *  # noqa: F403
