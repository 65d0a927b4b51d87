"""What this extension adds to Karat."""

from karat.core.extension import Command, Extension

_HERE = "karat.ext.serve"
extension = Extension(
    "serve",
    {
        "command": {
            "serve": Command(
                f"{_HERE}.commands:serve", "Serve the report with a JSON API.", "Share"
            ),
        },
    },
)
