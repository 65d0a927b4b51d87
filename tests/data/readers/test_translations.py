"""Translations in PO files."""

from __future__ import annotations

from pathlib import Path

import pytest

from karat.data.load_dataset import DataSpec
from karat.data.readers.translations import read_translations
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
def po_file(tmp_path: Path) -> Path:
    path = tmp_path / "messages.po"
    path.write_text(MESSAGES, encoding="utf-8")
    return path


def translations(path: Path, **options) -> dict[str, str]:
    data = read_translations(path, DataSpec(name="mine", options=options))
    assert data.kind == "items" and data.fields == ["translation"]
    asked = data.items[data.questions["translation"]]
    return dict(zip(asked, data.items[data.target], strict=True))


def test_translations_are_queries_for_originals(po_file):
    assert translations(po_file) == {
        "Guten Morgen allerseits": "Good morning to all",
        "Schließen": "Close",
        'Eine lange Meldung in zwei "Zeilen"': "A long message in two lines",
        "%(count)d Seite ist da": "%(count)d page is there",
        "Zuerst <b>das</b> lesen": "Read <b>this</b> first",
    }


def test_options_of_translations(po_file):
    plain = ["Good morning to all", "A long message in two lines"]
    assert list(translations(po_file, words=3, plain=True).values()) == plain
    with pytest.raises(DefinitionError, match="words"):
        translations(po_file, words=0)
    with pytest.raises(DefinitionError, match='no option "word"'):
        translations(po_file, word=3)


def catalog(*pairs: tuple[str, str]) -> str:
    return "\n\n".join(f'msgid "{one}"\nmsgstr "{other}"' for one, other in pairs)


def test_messages_of_all_files_of_a_folder(tmp_path):
    for place, pairs in {
        "b/django.po": [("Save this page", "Seite speichern"), ("Log out", "Abmelden")],
        "a/django.po": [("Log out", "Abmelden"), ("Page not found", "Seite fehlt")],
        "a/notes.txt": [("Not a catalog", "Kein Katalog")],
    }.items():
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(catalog(*pairs), encoding="utf-8")
    found = {"Abmelden": "Log out", "Seite fehlt": "Page not found"}
    assert translations(tmp_path) == {**found, "Seite speichern": "Save this page"}
    with pytest.raises(DataError, match=r"\.po"):
        (tmp_path / "none").mkdir()
        translations(tmp_path / "none")


def test_each_translation_has_one_right_answer(tmp_path):
    pairs = [
        *[("Log out", "Abmelden"), ("Log out", "Ausloggen"), ("log  OUT.", "Raus hier")],
        *[("Delete it", "Weg damit"), ("Remove it", "weg damit!")],
        *[("Server Error", "server error"), ("Go on", "Weiter")],
    ]
    (tmp_path / "de.po").write_text(catalog(*pairs), encoding="utf-8")
    found = {"Abmelden": "Log out", "Weiter": "Go on"}
    assert translations(tmp_path / "de.po", unique=True) == found
    assert len(translations(tmp_path / "de.po")) == 7


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"text,label\na,b\n", "is not a gettext file"),
        (b'"text alone"\n', "is not a gettext file"),
        (b'msgid "a\\x"\nmsgstr "b"\n', "invalid string"),
        (b'msgid ""' + b"-" * 100_000 + b'""\n', "is not a gettext file"),
        (b"", "translated"),
        (b'msgid "a"\nmsgstr "b"\n', "translated"),
        (b"\xff\xfe\x00", "not a UTF-8"),
    ],
)
def test_invalid_messages(tmp_path, content, word):
    path = tmp_path / "messages.po"
    path.write_bytes(content)
    with pytest.raises(DataError, match=word):
        translations(path)
