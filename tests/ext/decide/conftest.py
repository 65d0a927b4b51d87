"""The fixtures of runs and jobs, for tests of decisions."""

from ...analysis.conftest import made, write  # noqa: F401 (fixtures)
from ...execution.conftest import contents, models, until  # noqa: F401 (fixtures)
