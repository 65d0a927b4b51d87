"""Objects of other libraries become models; Karat's own need no extension."""

import subprocess
import sys

from karat.ext.models.recognized import gensim_vectors, named_transformer, sentence_transformer
from karat.models.adapters import adapt


def test_other_objects_are_not_theirs():
    assert gensim_vectors(3) is sentence_transformer(object()) is None


def test_a_name_with_the_prefix_is_a_model_of_the_library():
    name, encoder = named_transformer("sentence-transformers:some/model")
    assert name == "model" and encoder.name == "some/model"


def test_an_object_of_another_library_is_adapted():
    class SentenceTransformer:
        """Looks like that of the library."""

        def encode(self, texts):
            return [[1.0]] * len(texts)

    SentenceTransformer.__module__ = "sentence_transformers.model"
    model = adapt(SentenceTransformer(), "st")
    assert type(model.prototype).__name__ == "SentenceTransformerObject"


def test_models_of_karat_need_no_extension():
    code = "import sys; from karat.models.adapters import adapt\n"
    code += "from karat.models.text_encoders import TfIdf; adapt(TfIdf())\n"
    code += "print([name for name in sys.modules if name.startswith('karat.ext')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
