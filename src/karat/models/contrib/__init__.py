"""Models that need an outside library, one module per library or kind of library."""
