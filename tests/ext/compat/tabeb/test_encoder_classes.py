"""TabEB's encoders as classes."""

from __future__ import annotations

import pandas as pd
import pytest
from sklearn.base import clone

from karat.errors import DefinitionError
from karat.ext.compat.tabeb import CARTEEncoder, RandomEncoder, SkrubEncoder, get_model


def test_encoders_are_classes_of_the_same_names_and_arguments():
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "w": ["x", "y", "x"]})
    one = RandomEncoder(embedding_size=8, random_state=3).fit(table).transform(table)
    other = get_model("random_encoder", embedding_size=8, random_state=3).transform(table)
    assert one.shape == (3, 8) and (one == other).all()
    network = CARTEEncoder(task="classification", random_state=1, num_models=2)
    wanted = get_model("carte_encoder", task="classification", random_state=1, num_models=2)
    assert isinstance(network, type(wanted)) and network.options == wanted.options
    with pytest.raises(DefinitionError, match="task must be regression or classification"):
        CARTEEncoder(task="ranking")


def test_encoder_classes_can_be_cloned_and_changed():
    network = clone(CARTEEncoder(num_models=2))
    assert network.get_params()["random_state"] is None and len(network.options) == 1
    assert network.set_params(task="classification").task == "classification"
    assert len(network.options) == 1
    vectorizer = clone(SkrubEncoder(random_state=4))
    assert vectorizer.get_params() == {"random_state": 4} and vectorizer.name == "skrub_encoder"
