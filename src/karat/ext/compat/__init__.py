"""Drop-ins: the public interfaces of other benchmarks, on Karat's own data, probes and metrics."""

from karat.core import lazy_names

_MODULES = {"convert": "Imported export_results import_results read_scores"}
__getattr__ = lazy_names(__name__, _MODULES)
