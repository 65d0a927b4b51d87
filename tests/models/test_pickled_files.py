"""Pickles of other libraries: refused by name, with the definition that would load them."""

import pytest

from karat.errors import DataError
from karat.models.pickled_files import refuse_pickle


@pytest.mark.parametrize(("name", "model"), [("a.kv", "gensim"), ("trained_model.pkl", "pykeen")])
def test_a_pickle_is_refused_if_it_is_there(tmp_path, name, model):
    file = tmp_path / name
    refuse_pickle(file)
    file.touch()
    with pytest.raises(DataError, match=f"extends: {model}"):
        refuse_pickle(file)
