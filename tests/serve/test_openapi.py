"""The description of the API is valid, complete and true."""

import re

import pytest

from karat.serve.endpoints import BASE, ENDPOINTS
from karat.serve.openapi import describe
from karat.serve.schemas import SCHEMAS


def test_every_endpoint_is_described_and_every_description_is_an_endpoint(looker):
    told = looker.get(f"{BASE}/openapi.json").json()
    assert told["openapi"] == "3.1.0"
    assert told == describe()
    described = {(m.upper(), path) for path, each in told["paths"].items() for m in each}
    assert described == {(each.method, BASE + each.path) for each in ENDPOINTS}
    names = [each["operationId"] for path in told["paths"].values() for each in path.values()]
    assert len(set(names)) == len(names)


def test_what_changes_something_needs_the_token_and_nothing_else_does():
    for endpoint in ENDPOINTS:
        assert endpoint.token == (endpoint.method != "GET")


def test_references_lead_somewhere():
    text = str(describe())
    assert set(re.findall(r"#/components/schemas/(\w+)", text)) <= set(SCHEMAS)


def test_the_page_for_people_names_every_endpoint_and_parameter(looker):
    page = looker.get("/api").text
    for endpoint in ENDPOINTS:
        assert f"{endpoint.method} {BASE}{endpoint.path}" in page
        for parameter in endpoint.parameters:
            assert f"<dt>{parameter.name}" in page


def test_it_is_valid_openapi():
    schemathesis = pytest.importorskip("schemathesis")
    made = schemathesis.openapi.from_dict(describe())
    made.validate()
