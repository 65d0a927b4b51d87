"""Exceptions: hierarchy, messages and pickling."""

import pickle

import pytest

from karat import errors
from karat.errors import (
    ContractError,
    DataError,
    Declined,
    DefinitionError,
    DiskFull,
    JobsFailed,
    KaratError,
    KaratWarning,
    MissingExtra,
    NoVectors,
    Postponed,
    Unavailable,
    did_you_mean,
    unknown,
)


def test_everything_a_person_can_mend_is_a_karat_error():
    kinds = [getattr(errors, name) for name in dir(errors)]
    found = {k for k in kinds if isinstance(k, type) and issubclass(k, Exception)}
    listed = {KaratError, DefinitionError, DataError, Unavailable, ContractError}
    assert found == listed | {
        MissingExtra,
        Declined,
        NoVectors,
        JobsFailed,
        Postponed,
        DiskFull,
        KaratWarning,
    }
    assert all(issubclass(kind, KaratError) for kind in found - {KaratWarning})
    assert issubclass(Unavailable, DataError)


def test_messages():
    error = DefinitionError("first.", "second.")
    assert error.messages == ("first.", "second.")
    assert str(error) == "first.\nsecond."
    line = 'skrub is not installed: pip install "karat[tables]"'
    assert str(MissingExtra("skrub", "tables")) == line
    assert str(unknown("suite", "quikstart", ["quickstart"])) == (
        'there is no suite "quikstart". Did you mean "quickstart"?   (karat list suites)'
    )


@pytest.mark.parametrize(
    "error",
    [
        DefinitionError("first.", "second."),
        DataError("bad.", value="column"),
        MissingExtra("skrub", "tables"),
        ContractError("broken."),
        Declined("no."),
        JobsFailed("one.", ["run"]),
    ],
)
def test_an_error_survives_the_way_to_another_process(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("onehott", ["onehot", "random"], ' Did you mean "onehot"?'),
        ("ONEHOT", ["onehot"], ' Did you mean "onehot"?'),
        ("penalise", ("ignore", "penalize"), ' Did you mean "penalize"?'),
        ("zzz", ["onehot"], ""),
        ("anything", [], ""),
        (None, ["zebra"], ""),
        ("col1", ["Col1", 2], ' Did you mean "Col1"?'),
    ],
)
def test_the_nearest_name_is_offered(name, known, hint):
    assert did_you_mean(name, known) == hint
