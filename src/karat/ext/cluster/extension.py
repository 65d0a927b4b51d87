"""What this extension adds to Karat."""

from karat.core.extension import Command, Extension

_HERE = "karat.ext.cluster"
extension = Extension(
    "cluster",
    {
        "command": {
            "gather": Command(
                f"{_HERE}.commands:gather", "Merge the runs of several machines.", "Scale"
            ),
            "slurm": Command(f"{_HERE}.commands:slurm", "Write a job script for Slurm.", "Scale"),
        },
        "engine": {"dask": f"{_HERE}.dask_engine:DaskEngine"},
        "plan_parts": {"shards": f"{_HERE}.shards:ShardParts"},
        "name": {name: f"{_HERE}.gather:{name}" for name in ("Gathering", "gather")},
    },
)
