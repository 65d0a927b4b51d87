"""What extensions and components are made of, at the place where users import it from.

Nothing is imported before it is used, so that ``karat --help`` can read an extension quickly.
"""

from karat.core import lazy_names

_MODULES = {
    "analysis.checks": "Hit Rule",
    "core.extension": "Command Extension",
    "core.predictions": "Predictions",
    "core.registry": "analogy_function composer corruption dataset encoder head measure "
    "predictor probe query_generator reader splitter vector_format",
    "errors": "ContractError DataError DefinitionError JobsFailed KaratError KaratWarning",
    "execution.runner": "Progress",
    "execution.splits": "Fold",
    "metrics.metric": "Metric metric",
    "models.model": "StatelessEncoder",
    "reporting.page_section": "PageData PlainSection",
}
__getattr__ = lazy_names("karat", _MODULES)
