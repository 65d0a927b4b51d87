"""Questions made by a query generator: named after it, the same for the same seed."""

import pandas as pd
import pytest

from karat.core.dataset import Dataset
from karat.core.registry import query_generator
from karat.data.queries import generate_queries
from karat.errors import ContractError


@pytest.fixture
def table():
    frame = pd.DataFrame({"city": list("abcdefgh"), "size": range(8), "y": [0, 1] * 4})
    return Dataset.from_table(frame, "y", name="cities")


def test_the_same_seed_gives_the_same_questions(table):
    how = {"use": "partial-rows", "queries": 4}
    first, again, other = (generate_queries(table, how, seed) for seed in (1, 1, 2))
    assert first.name == "cities partial-rows" and len(first) >= 4
    assert first.fingerprint == again.fingerprint != other.fingerprint


def test_what_is_no_dataset_is_refused(table, clean_registry):
    query_generator("nothing")(lambda data, rng: None)
    with pytest.raises(ContractError, match="must return a karat.Dataset, got NoneType"):
        generate_queries(table, {"use": "nothing"}, 1)
