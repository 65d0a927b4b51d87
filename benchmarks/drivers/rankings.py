"""Ranking metrics of scored lists by one library; prints CPU seconds and scores."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np

Scores = dict[str, float]
#: Karat's names of the metrics
NAMES = ("ndcg@10", "map", "mrr", "recall@100", "precision@10")


def dictionaries(scores: np.ndarray, relevant: np.ndarray) -> tuple[dict, dict]:
    """Return the relevances and the scores by list and document."""
    run = {
        f"q{row}": {f"d{column}": score for column, score in enumerate(values)}
        for row, values in enumerate(scores.tolist())
    }
    judged = {
        f"q{row}": {f"d{column}": 1 for column in np.flatnonzero(values).tolist()}
        for row, values in enumerate(relevant)
    }
    return judged, run


def pytrec_eval(scores: np.ndarray, relevant: np.ndarray) -> Callable[[], Scores]:
    import pytrec_eval

    judged, run = dictionaries(scores, relevant)
    names = ("ndcg_cut_10", "map", "recip_rank", "recall_100", "P_10")
    asked = {"ndcg_cut.10", "map", "recip_rank", "recall.100", "P.10"}

    def work() -> Scores:
        lists = pytrec_eval.RelevanceEvaluator(judged, asked).evaluate(run).values()
        return {
            ours: sum(found[theirs] for found in lists) / len(lists)
            for ours, theirs in zip(NAMES, names, strict=True)
        }

    return work


def ir_measures(scores: np.ndarray, relevant: np.ndarray) -> Callable[[], Scores]:
    import ir_measures as ir

    judged, run = dictionaries(scores, relevant)
    asked = [ir.nDCG @ 10, ir.AP, ir.RR, ir.R @ 100, ir.P @ 10]

    def work() -> Scores:
        found = ir.calc_aggregate(asked, judged, run)
        return {ours: found[theirs] for ours, theirs in zip(NAMES, asked, strict=True)}

    return work


def ranx(scores: np.ndarray, relevant: np.ndarray) -> Callable[[], Scores]:
    from ranx import Qrels, Run, evaluate

    judged, run = dictionaries(scores, relevant)

    def work() -> Scores:
        found = evaluate(Qrels(judged), Run(run), list(NAMES))
        return {name: float(found[name]) for name in NAMES}

    return work


def karat(scores: np.ndarray, relevant: np.ndarray) -> Callable[[], Scores]:
    from karat.core.predictions import Predictions
    from karat.metrics import score

    lists = np.array([f"q{row}" for row in range(len(scores))], dtype=object)
    group = np.repeat(lists, scores.shape[1])

    def work() -> Scores:
        answers = Predictions(scores.ravel(), relevant.ravel(), group=group)
        return {name: score(name, answers)[0] or 0.0 for name in NAMES}

    return work


def main() -> None:
    """Time one library."""
    path, library = sys.argv[1:]
    with np.load(path) as arrays:
        work = globals()[library](arrays["scores"], arrays["relevant"])
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        found = work()
        seconds.append(time.process_time() - begun)
    print(f"cpu_seconds={min(seconds):.3f}")
    print("scores=" + json.dumps(found))


if __name__ == "__main__":
    main()
