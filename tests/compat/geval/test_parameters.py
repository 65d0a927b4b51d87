"""The XML parameter file: booleans, both spellings, no document types."""

import pytest

from karat.compat.geval import FrameworkManager
from karat.compat.geval.parameters import TASKS, Parameters, from_xml, gold_names, task_names
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


def test_documented_file(write, tmp_path):
    vectors = tmp_path / "v.txt"
    vectors.write_text("a 1\n")
    found = from_xml(write(DOCUMENT.format(file=vectors))).checked()
    assert found == Parameters(
        str(vectors),
        vector_size=200,
        tasks=["Classification", "SemanticAnalogies"],
        similarity_metric="euclidean",
        top_k=3,
        compare_with=["_all"],  # an empty value means the default
        datasets=["_all"],
    )


def test_the_parameters_of_a_file_are_indexed_by_tag(write):
    """GEval's example scripts read each value by the name of its element."""
    given = FrameworkManager().get_parameters_xmlFile(write(DOCUMENT.format(file="v.txt")))
    tags = ("vector_filename", "vector_file_format", "vector_size", "tasks", "similarity_function")
    tags += ("top_k", "parallel", "debugging_mode", "compare_with")
    values = ["v.txt", "TXT", 200, ["Classification", "SemAn"], "euclidean", 3, False, False]
    assert [given[tag] for tag in tags] == [*values, "_all"]
    assert given["vector_file"] == given.get("vectors_file") == "v.txt"
    assert "similarity_function" in given and "similarity" not in given
    assert Parameters(**given) == given  # evaluate(**given)
    with pytest.raises(KeyError):
        given["similarity"]


def test_gold_standards_by_name_in_any_case():
    assert gold_names("datasets", "kore, CITIES") == ["Cities", "KORE"]
    assert gold_names("datasets", ["LP50", "_all"]) == ["_all"]
    for wrong in ("Citys", []):
        with pytest.raises(DefinitionError):
            gold_names("datasets", wrong)


@pytest.mark.parametrize("tag", ["vector_size", "top_k", "parallel", "debugging_mode"])
def test_a_value_of_another_type(write, tag):
    text = f"<parameters><vector_file>v.txt</vector_file><{tag}>maybe</{tag}></parameters>"
    with pytest.raises(DefinitionError, match=tag):
        from_xml(write(text))


def test_both_spellings_of_a_tag(write):
    inside = "<vector_file>v.txt</vector_file><similarity_metric>l1</similarity_metric>"
    text = f"<parameters>{inside}</parameters>"
    assert from_xml(write(text)) == Parameters("v.txt", similarity_metric="l1")
    assert FrameworkManager().get_parameters_xmlFile(write(text)).vector_filename == "v.txt"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("<parameters><vector_filename>v</vector_filename>", "XML"),
        ("<params/>", "<params>"),
        ("<parameters/>", "<vector_filename>"),
        ("<parameters><vector_fil>v</vector_fil></parameters>", 'Did you mean "vector_file"'),
        ("<parameters><top_k>1</top_k><top_k>2</top_k></parameters>", "<top_k>"),
        ("<parameters><a><b><c/></b></a></parameters>", "<a>"),
        ('<!DOCTYPE parameters [<!ENTITY x "y">]><parameters>&x;</parameters>', "DOCTYPE"),
        (
            '<!DOCTYPE p [<!ENTITY f SYSTEM "file:///etc/hostname">]><parameters>&f;</parameters>',
            "DOCTYPE",
        ),
    ],
)
def test_invalid_files(write, text, match):
    with pytest.raises((DataError, DefinitionError), match=match):
        from_xml(write(text))


def test_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"none\.xml"):
        from_xml(tmp_path / "none.xml")


def test_task_names_long_short_and_in_any_case():
    for long, short in TASKS.items():
        assert task_names("tasks", [short]) == task_names("tasks", long.lower()) == [long]
    assert task_names("tasks", "_all") == list(TASKS)
    assert task_names("tasks", ["SemAn", "Class"]) == ["Classification", "SemanticAnalogies"]


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(DefinitionError) as caught:
        Parameters("no such file", top_k=-1, tasks="Klass", parallel="perhaps").checked()  # type: ignore[arg-type]
    assert len(caught.value.messages) == 4


@pytest.mark.parametrize("encoding", ["klingon", "utf-32", "shift_jis", "hex"])
def test_unsupported_encodings_of_xml(write, encoding):
    text = "<parameters><vector_filename>v.txt</vector_filename></parameters>"
    with pytest.raises(DataError):
        from_xml(write(f'<?xml version="1.0" encoding="{encoding}"?>{text}'))
