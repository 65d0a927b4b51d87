"""Imports: result files of other systems as run folders, which stand beside our own."""

from karat.results.imports.reading import SYSTEMS, Imported, import_results

__all__ = ["SYSTEMS", "Imported", "import_results"]
