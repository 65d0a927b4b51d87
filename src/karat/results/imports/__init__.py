"""Import of result files of other systems as run folders."""

from karat.results.imports.reading import SYSTEMS, Imported, import_results

__all__ = ["SYSTEMS", "Imported", "import_results"]
