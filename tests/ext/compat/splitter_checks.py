"""What the splitter of a system promises: its folds, the same for every seed of the run."""

import numpy as np
import pandas as pd
import pytest

from karat.core.dataset import Dataset
from karat.errors import DefinitionError
from karat.execution.splits import split


class SplitterChecks:
    """The tests of a splitter; a class of them in a test file says its name."""

    name: str

    @pytest.fixture
    def letters(self):
        frame = pd.DataFrame({"x": range(60), "y": ["a", "b", "b"] * 20})
        return Dataset.from_table(frame, "y", name="letters")

    def test_the_folds_do_not_depend_on_the_seed(self, letters):
        how = {"use": self.name, "folds": 5, "repeats": 2}
        first, again = (list(split(letters, how, seed)) for seed in (1, 2))
        assert len(first) == 10
        for one, other in zip(first, again, strict=True):
            np.testing.assert_array_equal(one.test, other.test)
            np.testing.assert_array_equal(one.train, other.train)
            assert not set(one.train) & set(one.test)

    def test_a_wrong_number_of_folds_is_refused(self, letters):
        with pytest.raises(DefinitionError, match="folds must be an integer >= 2"):
            list(split(letters, {"use": self.name, "folds": 1}, 1))
