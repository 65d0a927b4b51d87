"""Search models of users: recognized by their methods, with stages that are encoders."""

import numpy as np

from karat.models.searchers import (
    EncoderSearch,
    as_searcher,
    descending_ranks,
    scored_pairs,
    stage_encoders,
)
from karat.models.text_encoders import TfIdf


class Staged:
    """A search model with two stages, as an extension may have."""

    def __init__(self, *stages):
        self.stages = list(stages)

    def index(self, documents):
        return self

    def scores(self, queries):
        return np.zeros((len(queries), 1))


def test_stages_of_any_search_model_are_found():
    first, second = TfIdf(), TfIdf()
    assert stage_encoders(Staged(first, Staged(second))) == [first, second]
    assert stage_encoders(TfIdf()) == []


def test_an_object_with_index_and_scores_searches_itself():
    own = Staged()
    assert as_searcher(own) is own
    assert scored_pairs(own) == (0, 0)


def test_an_encoder_searches_by_the_cosine():
    class Lengths:
        def encode(self, texts):
            return np.array([[len(text), 1.0] for text in texts])

    search = EncoderSearch(Lengths()).index(["a", "aaaa"])
    assert search.scores(["aaaa"]).argmax() == 1


def test_ranks_of_ties_are_equal():
    assert descending_ranks(np.array([[2.0, 3.0, 2.0]])).tolist() == [[1, 0, 1]]
