"""Models: encoders and predictors, ours and yours, behind scikit-learn's fit/transform/predict."""

from karat.core import lazy_names

_MODULES = {
    "adapters": "FittedPredictor",
    "column_encoders": "PooledRows TableSentences",
    "out_of_fold": "OutOfFold",
    "text_encoders": "UniversalSentenceEncoder",
}
__getattr__ = lazy_names(__name__, _MODULES)
