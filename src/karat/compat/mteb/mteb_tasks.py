"""Names that users import from here; they are in ``karat.ext.compat.mteb.mteb_tasks``."""

from karat.ext.compat.mteb.mteb_tasks import *  # noqa: F403
