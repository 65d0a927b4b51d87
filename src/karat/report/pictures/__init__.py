"""Plots of runs for papers and notebooks, made with matplotlib."""
