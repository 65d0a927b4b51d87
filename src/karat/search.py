"""Search models and the user's own documents, at the place where users import them from."""

from karat.ext.search.corpus import corpus_dataset as corpus_dataset
from karat.ext.search.search_models import BM25 as BM25
from karat.ext.search.search_models import Fusion as Fusion
from karat.ext.search.search_models import Reranker as Reranker
