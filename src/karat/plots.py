"""Plots of runs, at the place where users import them from."""

from karat.ext.plots.figures import Plot as Plot
from karat.ext.plots.figures import plot as plot
