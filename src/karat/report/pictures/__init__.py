"""Pictures of runs for papers and notebooks, drawn with matplotlib: one module per kind or two."""
