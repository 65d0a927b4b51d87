"""Two models paired by task and fold."""

from __future__ import annotations

import pytest

from karat.analysis.check_facts import Facts
from karat.analysis.leaderboard import fold_ratios
from karat.analysis.pairing import pair
from karat.results.load import gather_scores

from ..score_data import write_run

#: instead of 80 and 20
OTHER_SIZES = {"train_questions": 70, "questions": 30}


def test_comparisons_leaderboards_and_checks_use_one_ratio(tmp_path):
    # a repeated holdout: not 1 / (k - 1)
    runs = [
        write_run(tmp_path, name, {"t": scores}, record=OTHER_SIZES)
        for name, scores in {"one": [0.9, 0.8], "other": [0.7, 0.6]}.items()
    ]
    (paired,) = pair(runs, "one", "other", None, "folds").tasks
    assert paired.ratio == fold_ratios(gather_scores(runs), ["t"])[0] == Facts.of(runs).ratios["t"]
    assert paired.ratio == pytest.approx(30 / 70)
