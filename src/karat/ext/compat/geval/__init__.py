"""GEval's entry points (Evaluation-Framework), carried out by Karat.

``FrameworkManager().evaluate(vector_filename=…)`` takes GEval's parameters and writes its files.
"""

from karat.ext.compat.geval.manager import FrameworkManager

__all__ = ["FrameworkManager"]
