from pathlib import Path

import pytest

from karat.config import loading as loader
from karat.config.loading import Definitions
from karat.errors import DefinitionError


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """Use only the files of the test, named relative to its folder."""
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
    """Return the messages that loading raises."""

    def raised(text="", **texts):
        with pytest.raises(DefinitionError) as caught:
            load(text, **texts)
        return list(caught.value.messages)

    return raised


@pytest.fixture
def reports(mistakes):
    """Assert that loading reports exactly these mistakes: place and key path, and a word."""

    def check(text, *expected):
        messages = mistakes(text)
        assert len(messages) == len(expected), messages
        for message, (place, word) in zip(messages, expected, strict=True):
            assert message.startswith(f"my.yaml:{place}: ") and word in message, message

    return check
