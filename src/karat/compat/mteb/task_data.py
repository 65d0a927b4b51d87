"""Names that users import from here; they are in ``karat.ext.compat.mteb.task_data``."""

from karat.ext.compat.mteb.task_data import *  # noqa: F403
