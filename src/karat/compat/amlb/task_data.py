"""Names that users import from here; they are in ``karat.ext.compat.amlb.task_data``."""

from karat.ext.compat.amlb.task_data import *  # noqa: F403
