"""The live page of a folder of runs with a JSON API; imported by ``karat serve`` only."""
