"""Names that users import from here; they are in ``karat.ext.compat``."""

from karat.core import lazy_names

_MODULES = {"convert": "Imported export_results import_results read_scores"}
__getattr__ = lazy_names(__name__, _MODULES)
