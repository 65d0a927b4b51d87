"""The compiled parser of text vector files reads every decimal as Python does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.errors import DataError
from karat.models.vectors import vector_text
from karat.models.vectors.vector_formats import read_vectors

pytest.importorskip("numba")


@pytest.fixture(autouse=True, scope="module")
def compiled():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_text, "COMPILED_BYTES", 0)
        yield


def read(path, text):
    path.write_text(text)
    return read_vectors(path)


def decimals():
    """Return decimal texts: short, long, in the middle of two float32, tiny, huge."""
    digits = st.text("0123456789", min_size=1, max_size=25)
    parts = st.tuples(
        st.sampled_from(["", "-", "+"]),
        digits,
        st.one_of(st.just(""), digits.map(lambda d: f".{d}"), st.just(".")),
        st.one_of(st.just(""), st.integers(-60, 30).map(lambda e: f"e{e}")),
    ).map("".join)
    singles = st.floats(width=32, allow_nan=False, allow_infinity=False).map(np.float32)
    middles = singles.map(lambda x: repr(float(x) * (1 + 2.0**-24)))
    wholes = st.integers(-(2**60), 2**60).map(str)
    doubles = st.floats(-3e38, 3e38).map(repr)
    return st.one_of(parts, middles, wholes, doubles, doubles.map(lambda t: t + "0000000"))


@settings(max_examples=300, deadline=None)
@given(st.lists(decimals(), min_size=1, max_size=8))
def test_every_decimal_is_what_python_makes_of_it(tmp_path_factory, texts):
    with np.errstate(over="ignore"):
        known = np.array([float(text) for text in texts]).astype(np.float32)
    # behind a tab, so that one number is no header
    path = tmp_path_factory.getbasetemp() / "decimals.txt"
    line = "\t".join(["x", *texts])
    if not np.isfinite(known).all():
        with pytest.raises(DataError, match="line 1: NaN"):
            read(path, line)
        return
    _, vectors = read(path, line)
    # the bits, so that minus zero is not zero
    assert vectors.view(np.uint32).tolist() == [known.view(np.uint32).tolist()]


def test_compiled_loops_read_exponents_and_all_digits(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    known = rng.normal(size=(50, 40)) * 10.0 ** rng.integers(-30, 30, (50, 40))
    text = "\n".join(f"e{i} " + " ".join(map(repr, row.tolist())) for i, row in enumerate(known))
    monkeypatch.setattr(vector_text.TextVectors, "parse", None)
    _, vectors = read(tmp_path / "v.txt", text)
    np.testing.assert_array_equal(vectors, known.astype(np.float32))
