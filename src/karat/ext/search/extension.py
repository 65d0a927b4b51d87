"""What this extension adds to Karat."""

from karat.core.extension import Extension

_HERE = "karat.ext.search"
extension = Extension(
    "search",
    {
        "corpus": {
            "dataset": f"{_HERE}.corpus:corpus_dataset",
            "layout": f"{_HERE}.corpus:corpus_layout",
        },
        "moved_module": {
            "karat.data.query_generators": f"{_HERE}.query_generators",
            "karat.data.readers.corpus": f"{_HERE}.corpus",
            "karat.models.searchers": f"{_HERE}.search_models",
        },
        "name": {
            f"models.{name}": f"{_HERE}.search_models:{name}"
            for name in ("BM25", "Fusion", "Reranker")
        },
        "query_generator": {
            "partial-rows": f"{_HERE}.query_generators:partial_rows",
            "text-queries": f"{_HERE}.query_generators:text_queries",
        },
        "reader": {
            "corpus": f"{_HERE}.corpus:read_corpus",
            "tables": f"{_HERE}.table_corpus:read_tables",
        },
    },
    definitions=(f"{_HERE}:search.yaml",),
    requires=("models",),
)
