"""Names that users import from here; they are in ``karat.ext.compat.ulysses.result_files``."""

from karat.ext.compat.ulysses.result_files import *  # noqa: F403
