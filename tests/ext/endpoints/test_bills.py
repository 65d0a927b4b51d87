"""What a plan would send to endpoints: each text once, and nothing that is in the cache."""

import pytest

import karat
from karat.config.catalog import Catalog
from karat.core.embeddings import Variant
from karat.errors import DefinitionError
from karat.execution.plan import make_plan
from karat.ext.endpoints.bills import bill_lines, estimate_bills
from karat.ext.endpoints.endpoint_encoder import EndpointEncoder

from ...endpoint_server import serving

VARIANTS = {"dimensions": [2, 4], "precision": ["float32", "float16", "int8", "binary"]}


def test_variants_of_an_endpoint_send_nothing_twice(tmp_path, words):
    pytest.importorskip("httpx")
    with serving(width=8) as server:
        made = EndpointEncoder(f"{server.url}/v1", "words-small", price_per_million_tokens=1.0)
        plan = make_plan(Catalog().models({"e": made}, [Variant(2), Variant(4)]), [words()])
        assert [(bill.model, bill.texts) for bill in estimate_bills(plan)] == [("e", 20)]
        runs = karat.evaluate(karat.Variants({"e": made}, **VARIANTS), words(), output=tmp_path)
        assert server.stats()["texts"] == 20
        assert len({run.results()["price"].sum() for run in runs}) == 1
        own = EndpointEncoder(f"{server.url}/v1", "words-small", dimensions=8)
        with pytest.raises(DefinitionError, match="dimensions"):
            karat.evaluate(karat.Variants({"e": own}, dimensions=[2]), words(), output=tmp_path)
        compressed = karat.Variants({"e": own}, precision="int8")
        assert len(karat.evaluate(compressed, words(), output=tmp_path)) == 2


def test_a_bill_names_what_is_missing_and_its_price(words):
    encoder = EndpointEncoder("http://localhost:1/v1", price_per_million_tokens=10.0)
    plan = make_plan(Catalog().models({"e": encoder, "random": "random"}), [words()])
    assert plan.services() == ["endpoints"]
    (bill,) = estimate_bills(plan)
    assert bill.texts == bill.missing == 20 and bill.price == bill.tokens * 10.0 / 1e6
    (line,) = bill_lines(plan)
    assert line.startswith("e would send about ") and "20 of 20 texts are not in the" in line


def test_no_service_is_used_by_other_models(words):
    plan = make_plan(Catalog().models({"random": "random"}), [words()])
    assert plan.services() == estimate_bills(plan) == []
    with pytest.raises(DefinitionError, match="budget has no effect"):
        karat.evaluate("random", words(), workers=karat.Machines(budget=1.0))
