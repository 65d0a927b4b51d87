"""Names that users import from here; they are in ``karat.ext.compat.mteb.result_files``."""

from karat.ext.compat.mteb.result_files import *  # noqa: F403
