"""Clusterers: the k-means of the TabEB document."""

import numpy as np
import pytest

from karat.errors import DefinitionError
from karat.heads.transductive import kmeans


def test_far_groups_are_found():
    rng = np.random.default_rng(0)
    centres = np.repeat([[0, 0], [50, 0], [0, 50]], 20, axis=0)
    found = kmeans(3, random_state=1).fit_predict(centres + rng.standard_normal((60, 2)))
    groups = [set(found[i : i + 20]) for i in (0, 20, 40)]
    assert [len(group) for group in groups] == [1, 1, 1]
    assert len(set.union(*groups)) == 3


def test_it_is_a_mini_batch_of_32():
    head = kmeans(4, random_state=3)
    assert type(head).__name__ == "MiniBatchKMeans"
    assert (head.batch_size, head.n_clusters, head.random_state) == (32, 4, 3)


def test_data_without_classes_must_say_how_many():
    with pytest.raises(DefinitionError, match="kmeans needs n_clusters"):
        kmeans(0)
