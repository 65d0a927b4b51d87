"""What this extension adds to Karat."""

from karat.core.extension import Extension

_HERE = "karat.ext.models"
_MOVED = ("carte", "foundation_models", "graph_libraries", "sentence_models")
extension = Extension(
    "models",
    {
        "adapter": {
            "gensim": f"{_HERE}.recognized:gensim_vectors",
            "pykeen": f"{_HERE}.graph_libraries:pykeen_result",
            "sentence-transformers": f"{_HERE}.recognized:sentence_transformer",
        },
        "model_source": {"sentence-transformers": f"{_HERE}.recognized:named_transformer"},
        "name": {
            "models.SentenceTransformerEncoder": f"{_HERE}.sentence_models:"
            "SentenceTransformerEncoder",
            "models.pykeen_vectors": f"{_HERE}.graph_libraries:pykeen_vectors",
        },
        "moved_module": {
            **{f"karat.models.contrib.{name}": f"{_HERE}.{name}" for name in _MOVED},
            "karat.models.automl": f"{_HERE}.automl",
        },
    },
    definitions=tuple(
        f"{_HERE}:{name}.yaml" for name in ("automl", "foundation", "graphs", "sentences")
    ),
)
