"""Names of models that do not exist: what they lead to is there."""

import pytest

from karat.config.catalog import Catalog
from karat.config.model_names import COMMON_NAMES, ELSEWHERE, no_such_model
from karat.core.registry import load_object
from karat.errors import DefinitionError


def test_common_names_lead_to_models_of_karat():
    names = Catalog().definitions.names("models")
    assert {*COMMON_NAMES.values()} <= {*names}
    assert not {*COMMON_NAMES, *ELSEWHERE} & {*names}


def test_classes_of_scikit_learn_exist():
    paths = {path for _, path in ELSEWHERE.values() if path.startswith("sklearn.")}
    for path in paths:
        module, _, name = path.rpartition(".")
        assert isinstance(load_object(f"{module}:{name}"), type)


@pytest.mark.parametrize("name", ["rf", "RF", "random_Forest_Classifier"])
def test_case_and_hyphens_do_not_matter(name):
    assert '"random-forest"' in str(no_such_model(name, []))


def test_a_hub_name_and_several_names():
    assert "sentence-transformers:org/name" in str(no_such_model("org/name", ["onehot"]))
    assert "-m a -m b" in str(no_such_model("a,b", []))


def test_a_name_like_nothing_has_no_suggestion():
    message = str(no_such_model("zzzz", ["onehot"]))
    assert "Did you mean" not in message and "karat list models" in message


def test_python_gets_the_same_messages():
    with pytest.raises(DefinitionError, match="random-forest"):
        Catalog().model("rf")
