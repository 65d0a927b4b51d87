"""Runs on several machines: shards of a plan, a job array of Slurm, and a cluster of Dask."""
