"""Tables in the place of OpenML's, where it cannot be reached."""

from __future__ import annotations

import numpy as np
import pytest

from karat.errors import KaratWarning, Unavailable
from karat.ext.compat.amlb.openml_tasks import openml_or_local_folds, openml_or_local_table


def test_a_local_table_of_the_name_takes_the_place_with_a_note(tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KARAT_DATA", str(tmp_path))
    with pytest.raises(Unavailable, match=r"3913 .* put kc2.csv into a folder of data"):
        openml_or_local_table("kc2", 3913)
    rows = "".join(f"{i},{'ab'[i % 2]}\n" for i in range(20))
    (tmp_path / "kc2.csv").write_text(f"x,class\n{rows}")
    with pytest.warns(KaratWarning, match="with other folds"):
        data = openml_or_local_table("kc2", 3913)
    assert len(data) == 20 and data.classes == ("a", "b")
    folds = list(openml_or_local_folds(data, np.random.default_rng(0), 3913, folds=2))
    assert [len(fold.test) for fold in folds] == [10, 10]
