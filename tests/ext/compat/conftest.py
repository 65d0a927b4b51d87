"""Small files in the format of Ulysses SentEval, and a sentence model without a library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

#: the file of each task, in the order of the document
FILES = {
    "F1A": "masked_law_name_in_summaries",
    "F1B": "masked_law_name_in_news",
    "F2": "code_estatutes_cf88",
    "F3": "oab_first_part",
    "F4": "oab_second_part",
    "F5": "trf_examinations",
    "F6": "stj_summary",
    "G1": "bill_summary_to_topics",
    "G2A": "sts_state_news",
    "G2B": "summary_vs_bill",
    "G3": "faqs",
    "G4": "ulysses_sd",
    "T1A": "hatebr_offensive_lang",
    "T1B": "offcombr2",
    "T2A": "factnews_news_bias",
    "T2B": "factnews_news_factuality",
    "T3": "fakebr_size_normalized",
    "T4": "tampered_leg",
}
WORDS = (
    ("lei", "norma", "artigo", "decreto", "inciso"),
    ("gol", "jogo", "time", "bola", "campo"),
    ("sol", "chuva", "vento", "nuvem", "frio"),
    ("arroz", "feijão", "milho", "trigo", "café"),
)
#: few folds and epochs, no progress bar
QUICK = {"n_repeats": 1, "k_fold": 2, "n_epochs": 3, "show_progress_bar": False}


class Sentences:
    """A sentence model that counts the words of each class."""

    def __init__(self) -> None:
        self.seen: list[list[str]] = []
        self.arguments: list[dict] = []

    def encode(self, texts: list[str], **arguments: object) -> np.ndarray:
        assert isinstance(texts, list)
        self.seen.append(texts)
        self.arguments.append(arguments)
        words = [word for group in WORDS for word in group]
        return np.array([[text.split().count(w) for w in words] for text in texts], np.float32)


class SentEvalFolder:
    """A folder of CSV files, each with an index, one or two texts, and the label."""

    files = FILES
    words = WORDS
    quick = QUICK
    model = Sentences

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rng = np.random.default_rng(0)

    def sentence(self, label: int) -> str:
        """Return a text in which words of the class are frequent."""
        shares = [0.7 if i == label else 0.1 for i in range(len(WORDS))]
        groups = self.rng.choice(len(WORDS), 8, p=np.array(shares) / sum(shares))
        return " ".join(WORDS[group][self.rng.integers(5)] for group in groups)

    def write(self, task: str, columns: dict[str, Sequence]) -> pd.DataFrame:
        """Write a file of these columns, and return them."""
        frame = pd.DataFrame(columns)
        frame.to_csv(self.path / f"{FILES[task]}.csv")
        return frame

    def single(self, task: str, rows: int = 60, classes: int = 2) -> pd.DataFrame:
        """Write texts of some classes."""
        labels = np.arange(rows) % classes
        return self.write(task, {"text": [self.sentence(i) for i in labels], "label": labels})

    def pairs(self, task: str, rows: int = 60) -> pd.DataFrame:
        """Write pairs of the same or of different kinds."""
        labels = np.arange(rows) % 2
        kinds = self.rng.integers(0, 2, rows)
        a, b = map(self.sentence, kinds), map(self.sentence, (kinds + 1 - labels) % 2)
        return self.write(task, {"a": list(a), "b": list(b), "label": labels})

    def options(self, task: str, rows: int = 60, many: int = 3) -> pd.DataFrame:
        """Write questions with options; one of them is of the question's kind."""
        labels = np.arange(rows) % many
        joined = [
            " [SEP] ".join(self.sentence(0 if i == label else 1) for i in range(many))
            for label in labels
        ]
        return self.write(task, {"a": ["qual lei ?"] * rows, "b": joined, "label": labels})


@pytest.fixture
def senteval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SentEvalFolder:
    """An empty folder of files, without downloads."""
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    monkeypatch.delenv("KARAT_DATA", raising=False)
    (tmp_path / "files").mkdir()
    return SentEvalFolder(tmp_path / "files")
