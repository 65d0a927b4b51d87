"""The fixtures of jobs, for tests of runs on several machines."""

from ...execution.conftest import contents, models, until  # noqa: F401 (fixtures)
