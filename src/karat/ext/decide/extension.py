"""What this extension adds to Karat."""

from karat.core.extension import Command, Extension

_HERE = "karat.ext.decide"
_COMMANDS = {
    "cheapest": ("Decide", "Find the cheapest model that is as good as the best one."),
    "gate": ("Decide", "Test that a new model is not worse than a baseline."),
    "race": ("Evaluate", "Find the best model with fewer jobs."),
    "same": ("Decide", "Test whether B is still the same encoder as A."),
    "shrink": ("Decide", "Find few tasks that keep the order of models."),
}
_NAMES = {
    "cheapest": ("Cheapest", "cheapest"),
    "gate": ("Gate", "GateRates", "NewRuns", "calibrate_gate", "gate"),
    "power": ("Power", "power"),
    "race": ("Race", "RaceReplay", "race", "replay_race"),
    "same_encoder": ("Fingerprint", "Same", "same"),
    "shrink": ("Shrunk", "shrink"),
}
extension = Extension(
    "decide",
    {
        "command": {
            name: Command(f"{_HERE}.commands:{name}", text, group)
            for name, (group, text) in _COMMANDS.items()
        },
        "name": {
            name: f"{_HERE}.{module}:{name}" for module, names in _NAMES.items() for name in names
        },
        "page_section": {
            "cheapest": f"{_HERE}.page_sections:CheapestSection",
            "races": f"{_HERE}.page_sections:RaceSection",
        },
        "plan_note": {"detect": f"{_HERE}.detectable:show_detectable"},
        "plot": {"cheapest": f"{_HERE}.cheapest_plot:cheapest"},
    },
)
