"""TabEB's interface: change the imports of a script, and it runs on Karat.

``from tabeb.tasks import …`` becomes ``from karat.compat.tabeb.tasks import …``, and
``tabeb.interface`` likewise; all names can also be imported from here.
"""

from karat.ext.compat.tabeb.encoder_classes import CARTEEncoder, RandomEncoder, SkrubEncoder
from karat.ext.compat.tabeb.encoders import TabEBBaseEncoder
from karat.ext.compat.tabeb.interface import display, get_leaderboard, get_model
from karat.ext.compat.tabeb.tasks import (
    TabEBAnomalyDetectionTask,
    TabEBBaseTask,
    TabEBClassificationTask,
    TabEBClusteringTask,
    TabEBDeduplicationTask,
    TabEBRankingTask,
    TabEBRegressionTask,
)

__all__ = [
    "CARTEEncoder",
    "RandomEncoder",
    "SkrubEncoder",
    "TabEBAnomalyDetectionTask",
    "TabEBBaseEncoder",
    "TabEBBaseTask",
    "TabEBClassificationTask",
    "TabEBClusteringTask",
    "TabEBDeduplicationTask",
    "TabEBRankingTask",
    "TabEBRegressionTask",
    "display",
    "get_leaderboard",
    "get_model",
]
