"""Make src/karat/analysis/probe_texts.json: real texts on which two encoders are compared.

The texts are messages of Django in 20 languages, and questions, paragraphs and whole pages of its
documentation, from the source archive of one release (BSD-3-Clause):

    pip download --no-deps --no-binary :all: django==5.2.19
    python scripts/probe_texts.py django-5.2.19.tar.gz
"""

from __future__ import annotations

import gettext
import hashlib
import io
import json
import re
import sys
import tarfile
from pathlib import Path

OUTPUT = Path(__file__).parent.parent / "src/karat/analysis/probe_texts.json"
SHA256 = "ad03d8abc51dbff95ebf34b27123cf0c26a3b62db7ba0cd520783686362533d1"
CATALOGS = [
    f"django/{part}/locale/{{language}}/LC_MESSAGES/django.mo"
    for part in ("conf", "contrib/auth", "contrib/admin")
]
LANGUAGES = (
    *("ar", "cs", "de", "el", "es", "fr", "he", "hi", "it", "ja", "ko", "nl", "pl", "pt_BR"),
    *("ru", "sv", "tr", "uk", "zh_Hans"),
)
#: texts per group: messages per language, questions, paragraphs, pages by their number of words
MESSAGES, QUESTIONS, PARAGRAPHS = 14, 60, 104
LENGTHS = (*range(30, 260, 5), *range(260, 520, 20), 600, 800, 1000, 1500, 2000, 3000)


def messages(archive: tarfile.TarFile, root: str) -> list[dict[str, str]]:
    """Return the longest messages that all languages translate, in English and in each."""
    found: dict[str, dict[str, str]] = {}
    for language in LANGUAGES:
        for catalog in CATALOGS:
            file = archive.extractfile(f"{root}/{catalog.format(language=language)}")
            assert file is not None
            entries = gettext.GNUTranslations(io.BytesIO(file.read()))._catalog
            for source, text in entries.items():
                if isinstance(source, str) and _is_prose(source) and text != source:
                    found.setdefault(source, {})[language] = text
    common = [source for source, texts in found.items() if len(texts) == len(LANGUAGES)]
    chosen = sorted(sorted(common), key=len)[-MESSAGES:]
    rows = [{"text": source, "language": "en"} for source in chosen]
    rows += [{"text": found[s][name], "language": name} for name in LANGUAGES for s in chosen]
    return rows


def _is_prose(text: str) -> bool:
    return not re.search(r"[%{}<>\x04\n]", text) and len(text.split()) >= 4


def documentation(archive: tarfile.TarFile, root: str) -> tuple[list[str], list[str]]:
    """Return the questions and the paragraphs of the documentation."""
    questions, paragraphs = [], []
    for member in sorted(archive.getmembers(), key=lambda each: each.name):
        name = member.name.removeprefix(f"{root}/docs/")
        if not name.endswith(".txt") or not name.startswith(("faq/", "topics/", "howto/")):
            continue
        file = archive.extractfile(member)
        assert file is not None
        page = file.read().decode()
        questions += re.findall(r"^(\S[^\n]{15,90}\?)\n[=-]+$", page, re.MULTILINE)
        for block in re.split(r"\n\s*\n", page):
            if re.match(r"[A-Z]", block) and not re.search(r"\n\s|^[=~-]{3,}$|::$", block, re.M):
                paragraphs.append(_plain(block))
    return [_plain(question) for question in dict.fromkeys(questions)], paragraphs


def _plain(text: str) -> str:
    """Return a text without the markup of reStructuredText."""
    text = re.sub(r":[\w:+-]+:`([^`<]*?)\s*(?:<[^`]*>)?`", r"\1", text)
    text = re.sub(r"`([^`<]+?)\s*<[^`]*>`_+|``([^`]*)``", r"\1\2", text)
    return " ".join(text.split())


def pages(paragraphs: list[str]) -> list[str]:
    """Return consecutive paragraphs, joined and cut to the lengths in words."""
    words, position, texts = " ".join(paragraphs).split(), 0, []
    for length in LENGTHS:
        texts.append(" ".join(words[position : position + length]))
        position += length
    return texts


def main(path: str) -> None:
    """Write the file."""
    content = Path(path).read_bytes()
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise SystemExit(f"{path} is not the archive of django 5.2.19.")
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        root = archive.getnames()[0].partition("/")[0]
        rows = messages(archive, root)
        questions, paragraphs = documentation(archive, root)
        license_file = archive.extractfile(f"{root}/LICENSE")
        assert license_file is not None
        notice = license_file.read().decode()
    rows += [{"text": text, "language": "en", "role": "query"} for text in questions[:QUESTIONS]]
    short = [text for text in dict.fromkeys(paragraphs) if 5 <= len(text.split()) <= 40]
    short = short[:: len(short) // PARAGRAPHS][:PARAGRAPHS]
    rows += [{"text": text, "language": "en"} for text in (*short, *pages(paragraphs))]
    rows += [{"text": text, "language": ""} for text in ("", " ", "a", "?", "42")]
    made = {
        "source": f"Django 5.2.19, source archive with SHA-256 {SHA256}",
        "license": "BSD-3-Clause",
        "notice": notice,
        "texts": rows,
    }
    OUTPUT.write_text(json.dumps(made, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    print(f"{OUTPUT}: {len(rows)} texts, {OUTPUT.stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
