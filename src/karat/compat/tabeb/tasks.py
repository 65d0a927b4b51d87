"""Names that users import from here; they are in ``karat.ext.compat.tabeb.tasks``."""

from karat.ext.compat.tabeb.tasks import *  # noqa: F403
