"""What this extension adds to Karat."""

from karat.core.extension import Command, Extension

_HERE = "karat.ext.publish"
extension = Extension(
    "publish",
    {
        "command": {
            "site": Command(
                f"{_HERE}.commands:site",
                "Write a static site with a page per model and task.",
                hidden=True,
            ),
            "verify": Command(
                f"{_HERE}.commands:verify",
                "Check that the results of runs can be trusted.",
                "Share",
            ),
        },
        "name": {
            "site": f"{_HERE}.site:site",
            "track": f"{_HERE}.tracking:track",
            "Verification": f"{_HERE}.verification:Verification",
            "verify": f"{_HERE}.verification:verify",
        },
        "report_format": {"site": f"{_HERE}.site:site"},
        "exporter": {
            "every-eval-ever": f"{_HERE}.publishing:every_eval_ever_records",
            "model-card": f"{_HERE}.publishing:model_cards",
        },
        "tracker": {name: f"{_HERE}.trackers:{name}" for name in ("mlflow", "trackio", "wandb")},
    },
)
