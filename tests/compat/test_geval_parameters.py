"""The XML file of parameters: real booleans, both spellings, nothing that a parser can abuse."""

import pytest

from karat.compat.geval import FrameworkManager
from karat.compat.geval.parameters import TASKS, Parameters, from_xml, task_names
from karat.errors import DataError, DefinitionError

DOCUMENT = """<?xml version="1.0"?>
<parameters>
  <vector_filename>{file}</vector_filename>
  <vector_file_format>TXT</vector_file_format>
  <vector_size>200</vector_size>
  <tasks><value>Classification</value><value>SemAn</value></tasks>
  <similarity_function>euclidean</similarity_function>
  <top_k>3</top_k>
  <parallel>false</parallel>
  <debugging_mode>False</debugging_mode>
  <compare_with><value/></compare_with>
</parameters>
"""


@pytest.fixture
def write(tmp_path):
    def writes(text):
        path = tmp_path / "parameters.xml"
        path.write_text(text, encoding="utf-8")
        return path

    return writes


def test_the_file_of_the_document(write, tmp_path):
    vectors = tmp_path / "v.txt"
    vectors.write_text("a 1\n")
    found = from_xml(write(DOCUMENT.format(file=vectors))).checked()
    assert found.tasks == ["Classification", "SemanticAnalogies"]
    assert found.vector_file_format == "txt"
    assert found.vector_size == 200
    assert found.similarity_metric == "euclidean"
    assert found.top_k == 3
    assert found.parallel is False
    assert found.debugging_mode is False
    assert found.compare_with == ["_all"]  # nothing inside is not "nothing", nor [None]


def test_both_spellings_of_a_tag(write):
    inside = "<vector_file>v.txt</vector_file><similarity_metric>l1</similarity_metric>"
    text = f"<parameters>{inside}</parameters>"
    assert from_xml(write(text)) == Parameters("v.txt", similarity_metric="l1")
    assert FrameworkManager().get_parameters_xmlFile(write(text)).vector_filename == "v.txt"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<parameters><vector_filename>v</vector_filename>", "not a sound XML file"),
        ("<params/>", "the root is <params>"),
        ("<parameters/>", "<vector_filename> is missing"),
        ("<parameters><vector_fil>v</vector_fil></parameters>", 'Did you mean "vector_file"'),
        ("<parameters><top_k>1</top_k><top_k>2</top_k></parameters>", "stands twice"),
        ("<parameters><a><b><c/></b></a></parameters>", "means nothing here"),
        ('<!DOCTYPE parameters [<!ENTITY x "y">]><parameters>&x;</parameters>', "no document type"),
        (
            '<!DOCTYPE p [<!ENTITY f SYSTEM "file:///etc/hostname">]><parameters>&f;</parameters>',
            "no document type",
        ),
    ],
)
def test_what_is_wrong_with_a_file(write, text, said):
    with pytest.raises((DataError, DefinitionError), match=said):
        from_xml(write(text))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        from_xml(tmp_path / "none.xml")


def test_names_of_tasks_long_short_and_in_any_case():
    for long, short in TASKS.items():
        assert task_names("tasks", [short]) == task_names("tasks", long.lower()) == [long]
    assert task_names("tasks", "_all") == list(TASKS)
    assert task_names("tasks", ["SemAn", "Class"]) == ["Classification", "SemanticAnalogies"]


def test_all_mistakes_are_told_at_once():
    with pytest.raises(DefinitionError) as told:
        Parameters("no such file", top_k=-1, tasks="Klass", parallel="perhaps").checked()  # type: ignore[arg-type]
    assert len(told.value.messages) == 4
