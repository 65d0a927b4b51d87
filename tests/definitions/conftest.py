from pathlib import Path

import pytest

from karat.definitions import Definitions, loader
from karat.errors import DefinitionError


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """Only the files of the test count; they are named relative to its folder."""
    monkeypatch.setattr(loader, "builtin_files", lambda: ([], []))
    monkeypatch.setattr(loader, "installed_files", lambda: ([], []))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def load(alone):
    """Load one or more texts as files: ``load(text)``, ``load(**{"a": text, "b": text})``."""

    def loaded(text="", **texts):
        texts = texts or {"my": text}
        for name, content in texts.items():
            Path(alone, f"{name}.yaml").write_text(content)
        return Definitions.load([Path(f"{name}.yaml") for name in texts])

    return loaded


@pytest.fixture
def mistakes(load):
    """Return the messages that loading raises; none is a failure of the test."""

    def told(text="", **texts):
        with pytest.raises(DefinitionError) as caught:
            load(text, **texts)
        return list(caught.value.messages)

    return told
