"""Names that users import from here; they are in ``karat.ext.compat.amlb.result_files``."""

from karat.ext.compat.amlb.result_files import *  # noqa: F403
