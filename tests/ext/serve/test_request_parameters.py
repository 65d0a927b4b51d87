import pytest
from pydantic import ValidationError

from karat.ext.serve.request_parameters import BoardQuery, Paging


def test_a_page_is_a_part_of_a_list_with_the_number_of_all():
    page = Paging(offset=2, limit=3).page(list("abcdefg"))
    assert page == {"total": 7, "offset": 2, "items": ["c", "d", "e"]}


@pytest.mark.parametrize("wrong", [{"offset": -1}, {"limit": 0}, {"limit": 10_001}])
def test_limits_of_a_page(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        Paging(**wrong)


def test_what_is_not_sent_is_no_part_of_the_schema_of_a_parameter():
    assert BoardQuery().format is None
    described = BoardQuery.model_json_schema()["properties"]["format"]
    assert "null" not in str(described)
