"""What jobs used of services: the fields of a record."""

from karat.core.usage import combined_usage, job_usage

EMBEDDED = {"tokens": 10, "price": 1.0, "truncated": 2, "texts": 3, "requests": 1}
OWN = {"tokens": 5, "price": 0.5, "truncated": 0, "texts": 1, "requests": 1, "remarks": ["odd"]}


class Counter:
    """What was counted, given."""

    def __init__(self, facts):
        self._facts = facts

    def facts(self):
        return self._facts


def test_a_job_has_the_usage_of_its_data_and_its_own():
    facts = job_usage({**EMBEDDED, "remarks": ["strange", "odd"]}, Counter(OWN))
    assert (facts["tokens"], facts["price"], facts["embed_tokens"]) == (15, 1.5, 10)
    assert (facts["texts"], facts["requests"], facts["truncated"]) == (4, 2, 2)
    assert facts["remarks"] == ["strange", "odd"]
    assert job_usage(None, Counter({})) == {}
    assert job_usage({**EMBEDDED, "price": None}, Counter({}))["price"] is None


def test_an_estimate_of_one_part_makes_the_whole_an_estimate():
    parts = [{**EMBEDDED, "tokens_estimated": False}, {**OWN, "tokens_estimated": True}]
    assert combined_usage(parts)["tokens_estimated"]
    assert combined_usage([]) == {}
