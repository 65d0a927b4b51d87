"""What this extension adds to Karat."""

from karat.core.extension import Command, Extension

_HERE = "karat.ext.plots"
extension = Extension(
    "plots",
    {
        "command": {
            "plot": Command(
                f"{_HERE}.commands:plot", "Plot runs as an SVG, PDF or PNG file.", "Understand"
            )
        },
        "name": {name: f"{_HERE}.figures:{name}" for name in ("Plot", "plot")},
    },
)
