"""Runs of one task, written by hand."""

import functools

import pytest

from ..score_data import write_run

FACTS = {"kind": "", "dataset": "d", "modality": "table", "probe": {"use": "trained"}}
SIZES = {"train_questions": 10, "questions": 10}


@pytest.fixture
def write(tmp_path):
    """Write a run into the folder of the test; see ``write_run``."""
    return functools.partial(write_run, tmp_path)


@pytest.fixture
def made(write):
    """Write a run of the task "t": a score per fold, None where it failed; ``task`` are facts."""

    def make(model, scores, *, task=None, metric="acc", higher=True, record=None, **about):
        facts = {**FACTS, "metrics": [metric], "higher_is_better": {metric: higher}, **(task or {})}
        about = {"role": "encoder", **about}
        return write(model, {"t": scores}, task=facts, record={**SIZES, **(record or {})}, **about)

    return make
