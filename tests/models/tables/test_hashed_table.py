"""Hashed words, against scikit-learn."""

import numpy as np

from karat.models.tables.hashed_table import HashedTable

from .test_target_table import WORDS


def test_hashing_is_scikit_learns_feature_hasher():
    from sklearn.feature_extraction import FeatureHasher

    rows = [{"w": w, "v": v} for w, v in zip(WORDS["w"], WORDS["v"], strict=True)]
    expected = FeatureHasher(16).transform(rows).toarray()
    np.testing.assert_array_equal(HashedTable(16).fit_transform(WORDS), expected)
