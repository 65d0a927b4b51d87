"""TACO's interface: change the imports of a script, and it runs on Karat.

``from tabular_c.api import run_benchmark`` becomes ``from karat.compat.taco import run_benchmark``,
and ``python -m tabular_c.cli`` becomes ``python -m karat.compat.taco``.
"""

from karat.ext.compat.taco.benchmark import (
    CORRUPTION_FUNCS,
    run_benchmark,
    run_classification_suite,
    run_regression_suite,
)

__all__ = ["CORRUPTION_FUNCS", "run_benchmark", "run_classification_suite", "run_regression_suite"]
