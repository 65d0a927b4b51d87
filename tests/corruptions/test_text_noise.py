"""Typing and copying errors."""

from __future__ import annotations

import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.core.dataset import Dataset
from karat.corruptions.needs import unmet_reason
from karat.corruptions.text_noise import (
    accents,
    case,
    misspellings,
    truncation,
    typos,
    whitespace,
    word_drop,
    word_swap,
)
from karat.errors import DefinitionError

ALL = [typos, case, accents, whitespace, word_drop, word_swap, truncation]
steady = settings(deadline=None, derandomize=True, max_examples=60)
severities = st.floats(0, 1)
sentences = st.lists(st.text(st.sampled_from("ab Cé\u0301🙂\t"), max_size=12), min_size=1)
LIST = """their thier Their ther?
because becouse becuse
I i
we've weve we'v
because becouse bcause
"""


def changed(corrupt, texts, severity=1.0, seed=3):
    texts = pd.Series(texts, dtype=object)
    return corrupt(texts, None, severity, np.random.default_rng(seed))[0].tolist()


@pytest.mark.parametrize(
    ("corrupt", "before", "after"),
    [
        (typos, ["abcdef", "abc", "a", "", "xy", "🙂é"], ["badcfe", "bac", "a", "", "yx", "é🙂"]),
        (case, ["Paris in May", "USA 2 état", "straße"], ["PARIS IN MAY", "usa 2 ÉTAT", "STRASSE"]),
        (case, ["", "123 ?!", "a  b\tc", "🙂 x"], ["", "123 ?!", "A  B\tC", "🙂 X"]),
        (accents, ["Été à", "Größe", "øßł", "e\u0301te\u0301"], ["Ete a", "Große", "øßł", "ete"]),
        (accents, ["ếộ", "", "日本語 がぎ", "हिन्दी", "❤️"], ["eo", "", "日本語 がぎ", "हिन्दी", "❤️"]),
        (whitespace, ["one two", "one", "", " a\tb "], [" one  two ", " one ", " ", "  a \tb  "]),
        (word_swap, ["a b c d", "a  b\tc", "one", " a b "], ["b a d c", "b  a\tc", "one", " b a "]),
    ],
)
def test_every_place_changes_at_severity_one(corrupt, before, after):
    assert changed(corrupt, before) == after


@steady
@given(st.lists(st.text(max_size=12), min_size=1, max_size=5), severities, severities)
def test_no_letter_is_lost_and_what_slips_slips_again(texts, one, other):
    low, high = sorted([one, other])
    few, many = changed(typos, texts, low), changed(typos, texts, high)
    for text, less, more in zip(texts, few, many, strict=True):
        assert sorted(text) == sorted(less) == sorted(more)
        for i in range(0, len(text) - 1, 2):
            if less[i : i + 2] != text[i : i + 2]:
                assert more[i : i + 2] == less[i : i + 2]
    assert changed(typos, texts, 0.0) == texts


def without_accents(text):
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


@steady
@given(sentences, severities)
def test_what_accents_whitespace_and_swaps_do_not_change(texts, severity):
    for text, found in zip(texts, changed(accents, texts, severity), strict=True):
        assert without_accents(text) == without_accents(found)
        assert len(found) <= len(text)
    for text, found in zip(texts, changed(whitespace, texts, severity), strict=True):
        assert found.split() == text.split()
    for text, found in zip(texts, changed(word_swap, texts, severity), strict=True):
        assert sorted(found.split()) == sorted(text.split())
        assert len(found) == len(text)


@steady
@given(sentences, severities, severities)
def test_dropped_words_stay_dropped_and_one_stays(texts, one, other):
    low, high = sorted([one, other])
    few, many = changed(word_drop, texts, low), changed(word_drop, texts, high)
    for text, less, more in zip(texts, few, many, strict=True):
        words, some, least = text.split(), less.split(), more.split()
        for part, whole in ((least, some), (some, words)):
            left = iter(whole)
            assert all(word in left for word in part)  # a part of it, in its order
        assert bool(least) == bool(words)
    for text, found in zip(texts, changed(word_drop, texts), strict=True):
        assert len(found.split()) == min(len(text.split()), 1)


def test_the_share_of_dropped_words_is_the_severity_and_any_word_stays():
    found = changed(word_drop, ["word " * 100] * 50, 0.2)
    dropped = 1 - sum(len(text.split()) for text in found) / 5000
    assert dropped == pytest.approx(0.2, abs=5 * np.sqrt(0.16 / 5000))
    assert set(changed(word_drop, ["a b c"] * 60)) == {"a ", "b ", "c"}


@pytest.mark.parametrize(
    ("severity", "expected"), [(0.1, "abcdefghi"), (0.25, "abcdefgh"), (0.5, "abcde"), (1.0, "a")]
)
def test_the_end_is_cut_off(severity, expected):
    assert changed(truncation, ["abcdefghij", "", "🙂"], severity) == [expected, "", "🙂"]


@pytest.mark.parametrize("corrupt", ALL)
@pytest.mark.parametrize("dtype", [object, "str", "string", "category"])
def test_index_name_type_and_missing_texts_stay(corrupt, dtype, rng):
    texts = pd.Series(["ab Cé", None, "ef Gà"], index=[7, 8, 9], name="title", dtype=dtype)
    y = pd.Series([1, 2, 3], index=[7, 8, 9])
    found, same = corrupt(texts, y, 1.0, rng())
    assert same is y
    assert found.index.tolist() == [7, 8, 9] and found.name == "title"
    assert found.isna().tolist() == [False, True, False]
    assert (found != texts.astype(object)).tolist()[::2] == [True, True]
    assert texts.dropna().tolist() == ["ab Cé", "ef Gà"]
    if dtype != "category":
        assert found.dtype == texts.dtype
    assert isinstance(found.dtype, pd.CategoricalDtype) == (dtype == "category")


@pytest.mark.parametrize("corrupt", ALL)
def test_in_a_table_only_columns_of_text_have_letters(corrupt, rng):
    X = pd.DataFrame(
        {
            "word": ["ab Cé", "ef Gà"],
            5: [1, 2],
            "kind": pd.Categorical(["ab é", "cd é"]),
            "mixed": pd.Series(["ab Cé", 3], dtype=object),
            "date": pd.to_datetime(["2020-01-01"] * 2),
        }
    )
    before = X.copy(deep=True)
    found, _ = corrupt(X, None, 1.0, rng())
    assert (found["word"] != X["word"]).all()
    assert found["mixed"][0] != "ab Cé" and found["mixed"][1] == 3
    others = [5, "kind", "date"]
    pd.testing.assert_frame_equal(found[others], X[others])
    pd.testing.assert_frame_equal(X, before)
    with pytest.raises(DefinitionError, match="text"):
        corrupt(X[others], None, 0.5, rng())


@pytest.fixture
def word_list(tmp_path, monkeypatch):
    path = tmp_path / "misspellings" / "spelling_en.txt"
    path.parent.mkdir()
    path.write_text(LIST, encoding="utf-8")
    monkeypatch.setenv("KARAT_DATA", str(tmp_path))


def test_listed_words_are_misspelled_as_in_the_list(word_list):
    texts = ["Their house, because I said so.", "THEIR we've", "theirs", "", None, "42 ?!"]
    found = [changed(misspellings, texts, seed=seed) for seed in range(60)]
    # "i" differs in case only and "ther?" has another character: both are left out
    firsts = {f"Thier house, {word} I said so." for word in ("becouse", "becuse", "bcause")}
    assert {texts[0] for texts in found} == firsts
    assert {texts[1] for texts in found} == {"THIER weve", "THIER we'v"}
    assert all(texts[2:] == ["theirs", "", None, "42 ?!"] for texts in found)


def test_share_of_misspelled_words(word_list):
    texts = ["because"] * 4000
    clean, few, many = (changed(misspellings, texts, s) for s in (0.0, 0.2, 0.6))
    assert clean == texts
    assert abs(sum(text != "because" for text in few) / 4000 - 0.2) < 0.025  # 4 standard errors
    assert all(more == less for less, more in zip(few, many, strict=True) if less != "because")
    share = sum(text == "becuse" for text in changed(misspellings, texts)) / 4000
    assert abs(share - 1 / 3) < 0.03


def test_misspellings_of_a_table_are_those_of_its_text_columns(word_list):
    X = pd.DataFrame({"n": [1, 2], "t": ["because", "no"], "c": pd.Categorical(["their", "x"])})
    found = misspellings(X, None, 1.0, np.random.default_rng(0))[0]
    assert found["t"].tolist()[0] in ("becouse", "becuse", "bcause")
    assert found[["n", "c"]].equals(X[["n", "c"]]) and found["t"][1] == "no"


def test_a_missing_list_is_an_error_that_names_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path))
    monkeypatch.delenv("KARAT_DATA", raising=False)
    with pytest.raises(DefinitionError, match="unset KARAT_OFFLINE"):
        changed(misspellings, ["because"])
    assert changed(misspellings, ["because"], 0.0) == ["because"]
    data = Dataset.from_columns(
        pd.DataFrame({"t": ["because", "no"], "y": ["a", "b"]}), ["t"], "y", name="two"
    )
    assert "misspellings_en" in unmet_reason("misspellings", data)
