"""GEval's entry points (Evaluation-Framework), carried out by Karat.

``FrameworkManager().evaluate(vector_filename=…)`` takes GEval's parameters and writes its files.
The managers of single tasks are here too.
"""

from karat.compat.geval.extensions import default_analogy_function
from karat.compat.geval.manager import FrameworkManager
from karat.compat.geval.task_managers import (
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
