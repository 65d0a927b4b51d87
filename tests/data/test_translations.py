from __future__ import annotations

from pathlib import Path

import pytest

from karat.data.load import DataSpec
from karat.data.translations import read_translations
from karat.errors import DataError, DefinitionError

MESSAGES = r"""
# translators of the project
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"

#: file.py:12
msgid "Good morning to all"
msgstr "Guten Morgen allerseits"

msgctxt "verb"
msgid "Close"
msgstr "Schließen"

msgid ""
"A long message "
"in two lines"
msgstr ""
"Eine lange Meldung "
"in zwei \"Zeilen\"\n"

#, python-format
msgid "%(count)d page is there"
msgid_plural "%(count)d pages are there"
msgstr[0] "%(count)d Seite ist da"
msgstr[1] "%(count)d Seiten sind da"

#, fuzzy
msgid "This is doubtful indeed"
msgstr "Das ist so"

msgid "Not translated at all"
msgstr ""

msgid "Server"
msgstr "Server"

msgid "Read <b>this</b> first"
msgstr "Zuerst <b>das</b> lesen"

#~ msgid "obsolete thing of old"
#~ msgstr "altes Ding"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "messages.po"
    path.write_text(MESSAGES, encoding="utf-8")
    return path


def pairs(path: Path, **options) -> dict[str, str]:
    data = read_translations(path, DataSpec(name="mine", options=options))
    assert data.kind == "items" and data.fields == ["translation"]
    asked = data.items[data.questions["translation"]]
    return dict(zip(asked, data.items[data.truth], strict=True))


def test_translations_are_queries_for_originals(file):
    assert pairs(file) == {
        "Guten Morgen allerseits": "Good morning to all",
        "Schließen": "Close",
        'Eine lange Meldung in zwei "Zeilen"': "A long message in two lines",
        "%(count)d Seite ist da": "%(count)d page is there",
        "Zuerst <b>das</b> lesen": "Read <b>this</b> first",
    }


def test_only_plain_sentences(file):
    assert list(pairs(file, words=3, plain=True).values()) == [
        "Good morning to all",
        "A long message in two lines",
    ]


def test_invalid_options(file):
    with pytest.raises(DefinitionError, match="words"):
        pairs(file, words=0)
    with pytest.raises(DefinitionError, match='no option "word"'):
        pairs(file, word=3)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("text,label\na,b\n", "is not a gettext file"),
        ('"text alone"\n', "is not a gettext file"),
        ('msgid "a\\x"\nmsgstr "b"\n', "invalid string"),
        ("", "translated"),
        ('msgid "a"\nmsgstr "b"\n', "translated"),
    ],
)
def test_invalid_messages(tmp_path, content, word):
    path = tmp_path / "messages.po"
    path.write_text(content)
    with pytest.raises(DataError, match=word):
        pairs(path)


def test_file_of_bytes(tmp_path):
    (tmp_path / "x.po").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not a UTF-8"):
        pairs(tmp_path / "x.po")
