"""What this extension adds to Karat."""

from karat.core.extension import Command, Extension

_HERE = "karat.ext.compat"
_MTEB = f"{_HERE}.mteb.mteb_tasks"
extension = Extension(
    "compat",
    {
        "command": {
            "export": Command(
                f"{_HERE}.commands:export",
                "Write scores in the file format of another benchmark.",
                "Share",
            ),
            "geval": Command(
                f"{_HERE}.commands:geval",
                "Evaluate node embeddings on the six GEval tasks.",
                hidden=True,
            ),
            "import": Command(
                f"{_HERE}.commands:import_",
                "Import result files of other systems as run folders.",
                "Share",
            ),
        },
        "definition_format": {"amlb": f"{_HERE}.amlb.definitions:FORMAT"},
        "head": {"adamw": f"{_HERE}.ulysses.adamw:AdamW"},
        "interchange": {
            "import": f"{_HERE}.convert:import_results",
            "is_results_folder": f"{_HERE}.mteb.result_files:is_results_folder",
        },
        "moved_module": {
            "karat.compat": _HERE,
            "karat.probes.adamw": f"{_HERE}.ulysses.adamw",
        },
        "name": {
            "Imported": f"{_HERE}.convert:Imported",
            "import_results": f"{_HERE}.convert:import_results",
        },
        "probe": {
            "bitext": f"{_MTEB}:Bitext",
            "candidates": f"{_MTEB}:Candidates",
            "mteb-clustering": f"{_MTEB}:Clustering",
            "mteb-pairs": f"{_MTEB}:Pairs",
        },
        "reader": {
            "senteval": f"{_HERE}.ulysses.result_files:read_senteval",
            "taco": f"{_HERE}.taco.benchmark:read_taco",
        },
        "result_folder": {"mteb": f"{_HERE}.mteb.result_files:open_results"},
        "served_system": {"geval": f"{_HERE}.geval.served:GevalServer"},
        "splitter": {
            "each-group": f"{_MTEB}:each_group",
            "few-shot": f"{_MTEB}:few_shot",
            "geval": f"{_HERE}.geval.splitter:geval_folds",
            "senteval": f"{_HERE}.ulysses.splitter:senteval",
        },
        "suite_source": {"mteb": f"{_MTEB}:suite"},
    },
)
