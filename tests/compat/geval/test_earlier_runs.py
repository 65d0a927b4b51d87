"""Comparison with earlier runs: ids, metric directions, ties and selected runs."""

import math
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

from karat.compat.geval import FrameworkManager
from karat.compat.geval.earlier_runs import COMPARED, Store, compared, next_number
from karat.compat.geval.gold import ranking
from karat.errors import DataError, DefinitionError

from .geval_gold import read_compared, vectors, write_gold, write_text


def row(value, task="Classification", metric="accuracy", coverage=1.0, model="NB"):
    return {
        "task_name": task,
        "gold_standard_file": "Cities",
        "coverage": coverage,
        "model": model,
        "model_configuration": "",
        "metric": metric,
        "score_value": value,
    }


def ranks(values, own, **given):
    rows = [{"test_name": str(i), **row(value, **given)} for i, value in enumerate(values)]
    return ranking(pd.DataFrame(rows, columns=list(COMPARED)), str(own)).iloc[0]


@pytest.mark.parametrize(
    ("values", "own", "rank", "total", "distinct"),
    [
        ([0.7, 0.9, 0.8], 0, 3, 3, 3),
        ([0.7, 0.9, 0.8], 1, 1, 3, 3),
        ([0.8, 0.9, 0.8], 0, 2, 3, 2),  # ties share the better rank
        ([0.8, 0.9, 0.9, 0.8], 3, 3, 4, 2),
        ([math.nan, 0.9], 0, -1, 1, 1),
        ([0.7, math.nan], 0, 1, 1, 1),
        ([0.7], 0, 1, 1, 1),
    ],
)
def test_ranks_start_at_one_and_ties_share(values, own, rank, total, distinct):
    found = ranks(values, own)
    assert found["ranking"] == rank
    assert (found["absolute_total"], found["relative_total"]) == (total, distinct)


def test_lower_error_ranks_first():
    found = ranks([10.0, 12.0], 0, task="Regression", metric="root_mean_squared_error")
    assert found["ranking"] == 1


def test_run_numbers_are_compared_as_numbers():
    names = [f"cities_200_cosine_2_{i}" for i in range(1, 12)]
    assert next_number("cities_200_cosine_2", names) == 12
    assert next_number("cities_200_cosine_20", names) == 1  # a prefix is not the same file
    assert next_number("cities_200", [*names, "cities_200_x"]) == 1


def test_store_with_blanks_and_quotes_in_names(tmp_path):
    store = Store(tmp_path)
    name = store.add('my "best" vectors/v 1', [row(0.5), row(math.nan, model="")])
    assert name.endswith("v 1_1")
    assert store.add('my "best" vectors/v 1', [row(0.6)]).endswith("v 1_2")
    table = store.read()
    assert list(table.columns) == list(COMPARED)
    assert table["score_value"].tolist()[::2] == [0.5, 0.6]
    assert math.isnan(table["score_value"][1])
    assert set(table["test_name"]) == {'my "best" vectors/v 1_1', 'my "best" vectors/v 1_2'}


def test_concurrent_writers(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda i: Store(tmp_path).add("v", [row(i / 10)]), range(10)))
    assert sorted(names) == sorted(f"v_{i}" for i in range(1, 11))
    assert len(Store(tmp_path).read()) == 10
    assert not (tmp_path / "comparison.lock").exists()


def test_compare_with_selected_runs(tmp_path):
    store = Store(tmp_path)
    first, second, own = (store.add("v", [row(value)]) for value in (0.9, 0.8, 0.7))
    table = store.read()
    assert compared(table, own, ["_all"])["test_name"].tolist() == [first, second, own]
    assert compared(table, own, [second])["test_name"].tolist() == [second, own]
    assert compared(table, own, [])["test_name"].tolist() == [own]
    with pytest.raises(DefinitionError, match=r'"v_4".*Did you mean'):
        store.check(["v_4"])


def test_damaged_store(tmp_path):
    (tmp_path / "comparison.csv").write_text("test_name task_name\nx\n")
    with pytest.raises(DataError, match="damaged"):
        Store(tmp_path).read()


def test_second_run_is_compared_with_the_first(tmp_path):
    write_gold(tmp_path / "gold")
    asked = {
        "tasks": ["EntRel", "SemAn"],
        "gold_directory_path": tmp_path / "gold",
        "result_directory_path": tmp_path / "out",
    }
    path = write_text(tmp_path / "v.txt", vectors())
    FrameworkManager().evaluate(str(path), **asked)
    write_text(path, vectors(lost=()))  # now every entity has a vector
    second = FrameworkManager().evaluate(str(path), **asked)
    values = read_compared(second / "comparison_values.csv")
    assert values["test_name"].nunique() == 2
    tau = values[values["metric"] == "kendalltau_correlation"]
    assert tau["score_value"].tolist() == pytest.approx([0.5, 1.0])
    assert tau["coverage"].tolist() == pytest.approx([2 / 3, 1.0])
    ranked = read_compared(second / "comparison_ranking.csv").set_index("metric")
    assert ranked.loc["kendalltau_correlation", "ranking"] == 1
    assert ranked.loc["kendalltau_correlation", "lowest_coverage"] == pytest.approx(2 / 3)
    chosen = FrameworkManager().evaluate(
        str(path), **asked, compare_with=[values["test_name"].iloc[0]]
    )
    assert read_compared(chosen / "comparison_values.csv")["test_name"].nunique() == 2
