"""The pytest plugin of Karat: the fixture ``karat_gate`` tests a model against a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from karat.ext.decide.gate import Gate


@dataclass(frozen=True)
class GateFixture:
    """What ``karat_gate`` is; ``root`` is pytest's root folder, ``output`` that of new runs."""

    root: Path
    output: Path

    def not_worse(
        self,
        new: object,
        than: str | Path,
        *,
        margin: float = 0.01,
        tasks: str | Sequence[str] = (),
        cannot_tell: str = "fail",
    ) -> Gate:
        """Fail the test unless a model is not worse than a baseline by a margin or more.

        Parameters
        ----------
        new
            A run folder, a folder of runs, or a model in any form that ``karat.evaluate`` takes,
            which is run first, as the baseline was.
        than
            Run folder or folder of runs of the baseline, relative to the current folder or to
            pytest's root folder.
        margin, tasks
            As of ``karat.gate``.
        cannot_tell
            What to do if the data do not decide: ``"fail"``, ``"pass"`` or ``"skip"``.
        """
        import karat

        if cannot_tell not in ("fail", "pass", "skip"):
            raise karat.DefinitionError(
                f'cannot_tell must be "fail", "pass" or "skip", got {cannot_tell!r}.'
            )
        baseline = Path(than) if Path(than).exists() else self.root / than
        how = karat.NewRuns(output=self.output)
        verdict = karat.gate(new, baseline, margin=margin, tasks=tasks, run=how)
        undecided = verdict.outcome == "cannot tell"
        if undecided and cannot_tell == "skip":
            pytest.skip(verdict.sentence)
        if verdict.outcome == "failed" or (undecided and cannot_tell == "fail"):
            pytest.fail(str(verdict), pytrace=False)
        return verdict


@pytest.fixture
def karat_gate(request: pytest.FixtureRequest, tmp_path: Path) -> GateFixture:
    """Compare a model with a baseline: ``karat_gate.not_worse(new, than="baselines/main")``."""
    return GateFixture(request.config.rootpath, tmp_path / "results")
