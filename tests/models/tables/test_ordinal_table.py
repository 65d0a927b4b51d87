"""Ordinal codes."""

import numpy as np
import pandas as pd

from karat.models.tables.ordinal_table import OrdinalTable


def test_ordinal_numbers_the_words_and_scales_the_numbers():
    train = pd.DataFrame({"w": ["c", "a", "b"], "n": [1.0, 2.0, 3.0]})
    step = np.sqrt(1.5)  # 0, 1, 2 have the mean 1 and the variance 2/3
    encoder = OrdinalTable().fit(train)
    np.testing.assert_allclose(
        encoder.transform(train), np.array([[-1, 1], [0, -1], [1, 0]]) * step
    )
    unseen = encoder.transform(pd.DataFrame({"w": ["z"], "n": [None]}))
    np.testing.assert_allclose(unseen, [[0, (-1 - 1) * step]])
