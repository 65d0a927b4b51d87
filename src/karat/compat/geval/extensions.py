"""Names that users import from here; they are in ``karat.ext.compat.geval.extensions``."""

from karat.ext.compat.geval.extensions import *  # noqa: F403
