"""Rules: numbered checks of runs, ``KRT001`` and so on, that read tables only."""

from karat.results.rules.base import Finding as Finding
from karat.results.rules.base import Findings as Findings
from karat.results.rules.base import Rule as Rule
from karat.results.rules.check import RULES as RULES
from karat.results.rules.check import check_runs as check_runs
from karat.results.rules.check import explain as explain
