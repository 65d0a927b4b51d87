"""Results of extensions that have no table, in every form of output."""

from __future__ import annotations

import json

import pytest

from karat.ext.cluster.gather import Gathering
from karat.ext.compat.convert import Imported
from karat.output.result import Result

RESULTS = [
    Gathering([], 4, missing=[("a", "t", 0)], commands={"karat run x --resume": "1 job"}),
    Imported([], notes=["One row was skipped."], problems=["a.csv cannot be read."]),
]


@pytest.mark.parametrize("found", RESULTS, ids=lambda found: type(found).__name__)
def test_every_form_of_a_result_without_tables(found, tmp_path):
    assert isinstance(found, Result)
    lines = [found.sentence, *found.details, *getattr(found, "notes", [])]
    assert max(map(len, repr(found).splitlines())) <= 80
    for line in lines:
        assert line in repr(found) and line in found._repr_html_()
        assert line.split()[0] in found.render("markdown")
        assert line.split()[0] in found.render("latex")
    facts = json.loads(found.render("json"), parse_constant=pytest.fail)
    assert facts["sentence"] == found.sentence and facts["runs"] == []
    assert found.to_csv(tmp_path) == [] and found.render("csv").strip() == ""
