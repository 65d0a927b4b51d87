"""Plots of runs for papers: SVG, PDF and PNG files."""
