"""Files written by the GEval interface can be imported; exporting its run gives the same files."""

from __future__ import annotations

import pandas as pd
import pytest

import karat
from karat.compat.geval import FrameworkManager, gold
from karat.results.exports import export

from .geval_gold import vectors, write_gold, write_text


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    place = tmp_path_factory.mktemp("geval")
    write_gold(place / "gold")
    write_text(place / "vectors.txt", vectors())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gold, "REPEATS", 1)
        return FrameworkManager().evaluate(
            str(place / "vectors.txt"),
            gold_directory_path=place / "gold",
            result_directory_path=place / "results",
            tasks=["Class", "Clu", "DocSim", "EntRel", "SemAn"],
        )


def compared(path) -> pd.DataFrame:
    keys = ["task_name", "gold_standard_file", "model", "model_configuration", "metric"]
    table = pd.read_csv(path, keep_default_na=False, na_values=[""])
    table = table.fillna({name: "" for name in keys})
    return table.set_index(keys)["score_value"].dropna().sort_index()


def test_result_files_and_comparison_give_the_same_scores(result, tmp_path):
    done = karat.import_results(result.parent / "comparison.csv", tmp_path / "a")
    (by_id,) = done.runs
    assert by_id.model.endswith("vectors_6_cosine_2_1") and not done.problems
    done = karat.import_results(list(result.glob("*_results.csv")), tmp_path / "b", model="own")
    (by_file,) = done.runs
    one, other = (
        run.scores().groupby(["task", "metric"])["value"].mean() for run in (by_id, by_file)
    )
    both = one.index.intersection(other.index)
    # penalized relatedness is only in the comparison
    assert {metric for _, metric in one.index.difference(both)} == {"kendall"}
    assert not len(other.index.difference(both))
    assert one[both].to_dict() == pytest.approx(other[both].to_dict(), rel=1e-12)
    assert {"cities-nb", "teams-kmeans", "kore", "lp50"} <= set(one.index.get_level_values("task"))


def test_import_of_the_whole_folder_skips_its_run_folder(result, tmp_path):
    done = karat.import_results(result.parent, tmp_path / "out")
    assert not done.problems and len(done.runs) == 2  # its files, and its id in both comparisons
    assert any("run folders" in note for note in done.notes)
    assert any(note.startswith("comparison_ranking.csv") for note in done.notes)


def test_export_gives_the_same_scores(result, tmp_path):
    export(result / "karat", "geval", tmp_path)
    ours, theirs = (compared(folder / "comparison_values.csv") for folder in (tmp_path, result))
    both = ours.index.intersection(theirs.index)
    assert set(theirs.index) == set(both)
    assert ours[both].to_dict() == pytest.approx(theirs[both].to_dict(), rel=1e-12)
    for name in ("classification_Cities", "entityRelatedness_KORE", "semanticAnalogies"):
        exported, written = (
            pd.read_csv(folder / f"{name}_results.csv", keep_default_na=False)
            for folder in (tmp_path, result)
        )
        shared = [
            column for column in written.columns if column in exported and column != "coverage"
        ]
        pd.testing.assert_frame_equal(
            exported[shared], written[shared], check_dtype=False, rtol=1e-12
        )
