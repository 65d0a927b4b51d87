"""GEval's entry points (Evaluation-Framework), carried out by Karat.

``FrameworkManager().evaluate(vector_filename=…)`` takes GEval's parameters and writes its files.
The managers of single tasks are here too.
"""

from karat.ext.compat.geval.extensions import default_analogy_function
from karat.ext.compat.geval.manager import FrameworkManager
from karat.ext.compat.geval.task_managers import (
    ClassificationManager,
    ClusteringManager,
    DocumentSimilarityManager,
    EntityRelatednessManager,
    RegressionManager,
    SemanticAnalogiesManager,
)

__all__ = [
    "ClassificationManager",
    "ClusteringManager",
    "DocumentSimilarityManager",
    "EntityRelatednessManager",
    "FrameworkManager",
    "RegressionManager",
    "SemanticAnalogiesManager",
    "default_analogy_function",
]
