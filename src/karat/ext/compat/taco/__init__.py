"""TACO's interface: change the imports of a script, and it runs on Karat.

``from tabular_c.api import run_benchmark`` becomes ``from karat.compat.taco import run_benchmark``,
and ``python -m tabular_c.cli`` becomes ``python -m karat.compat.taco``. All other names of TACO's
modules are here too; those that Karat does not have say what to use in their place.
"""

from karat.ext.compat.taco.benchmark import (
    run_benchmark,
    run_classification_suite,
    run_regression_suite,
)
from karat.ext.compat.taco.corruption_functions import (
    CORRUPTION_FUNCS,
    apply_categorical_remap,
    apply_missingness,
    apply_noise_injection,
    apply_rare_class_dilution,
    apply_scaling_errors,
)
from karat.ext.compat.taco.script_functions import (
    DECLINED,
    build_classifiers,
    build_preprocessor,
    build_regressors,
    evaluate_classifier,
    evaluate_regressor,
    infer_types,
    load_adult,
    load_diabetes_130,
    load_ieee_cis,
    load_nyc_property_sales,
    load_porto_seguro,
    plot_bar_clean,
    plot_degradation,
)

__all__ = [
    "CORRUPTION_FUNCS",
    "apply_categorical_remap",
    "apply_missingness",
    "apply_noise_injection",
    "apply_rare_class_dilution",
    "apply_scaling_errors",
    "build_classifiers",
    "build_preprocessor",
    "build_regressors",
    "evaluate_classifier",
    "evaluate_regressor",
    "infer_types",
    "load_adult",
    "load_diabetes_130",
    "load_ieee_cis",
    "load_nyc_property_sales",
    "load_porto_seguro",
    "plot_bar_clean",
    "plot_degradation",
    "run_benchmark",
    "run_classification_suite",
    "run_regression_suite",
]


def __getattr__(name: str) -> object:
    """Say what replaces a name of TACO's code that Karat does not have."""
    if name in DECLINED:
        raise ImportError(f"karat.compat.taco has no {name}: {DECLINED[name]}.")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
