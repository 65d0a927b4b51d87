"""Serve: the page of a folder of runs, live, and a JSON API; imported only by ``karat serve``."""
