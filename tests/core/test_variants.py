"""Fewer dimensions and bits: hand-computed numbers, no leak, names and bad values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from karat.core.dataset import Dataset
from karat.core.embeddings import (
    RESCORED,
    Variant,
    Vectors,
    make_variants,
    split_name,
    vector_bytes,
)
from karat.errors import DefinitionError


def dataset(rows: int) -> Dataset:
    frame = pd.DataFrame({"x": range(rows), "y": ["a", "b"] * (rows // 2) + ["a"] * (rows % 2)})
    return Dataset.from_table(frame, target="y", name="toy", kind="classification")


def compress(matrix, variant: Variant, train: list[int] | None = None) -> np.ndarray:
    """Return the compressed rows; the compression is fitted on the rows of the train questions."""
    matrix = np.asarray(matrix, dtype=np.float32)
    vectors, data = Vectors(matrix, np.arange(len(matrix))), dataset(len(matrix))
    fold = data if train is None else data.take(np.array(train))
    return variant.fit(fold, vectors).apply(vectors).matrix


def test_shorter_vectors_have_norm_1_again_if_the_whole_ones_have():
    rows = [[0.6, 0.0, 0.8], [0.48, 0.64, 0.6], [0.0, 0.0, 1.0]]
    got = compress(rows, Variant(2))
    # 0.48 and 0.64 have the norm 0.8; the last row has nothing in the first two dimensions
    np.testing.assert_allclose(got, [[1, 0], [0.6, 0.8], [0, 0]], atol=1e-7)
    longer = np.array(rows) * 2
    np.testing.assert_array_equal(compress(longer, Variant(2)), longer[:, :2].astype(np.float32))


def test_all_dimensions_in_32_bits_are_the_vectors_themselves():
    rows = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    np.testing.assert_array_equal(compress(rows, Variant(7)), rows)
    np.testing.assert_array_equal(compress(rows / 3, Variant(None)), rows / 3)


def test_8_bits_by_hand():
    # the first dimension ranges from 0 to 255, so that a step is 1; the second from -1 to 1.55,
    # so that a step is 0.01; the third is constant in the train rows
    rows = [[0, -1, 5], [255, 1.55, 5], [10.4, 0.014, 7], [300, -9, 5], [np.nan] * 3]
    variant = Variant(precision="int8")
    got = compress(rows, variant, train=[0, 1])
    expected = [[0, -1, 5], [255, 1.55, 5], [10, 0.01, 5], [255, -1, 5], [np.nan] * 3]
    np.testing.assert_allclose(got, expected, atol=1e-5)
    vectors = Vectors(np.asarray(rows, dtype=np.float32), np.arange(5))
    codes = variant.fit(dataset(5).take(np.array([0, 1])), vectors).codes(vectors.matrix)
    np.testing.assert_array_equal(
        codes, [[-128, -128, 0], [127, 127, 0], [-118, -27, 0], [127, -128, 0], [np.nan] * 3]
    )


def test_variants_of_the_same_dimensions_share_the_shortened_vectors():
    rows = np.random.default_rng(2).normal(size=(9, 5)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    vectors, fold = Vectors(rows, np.arange(9)), dataset(9).take(np.array([0, 3, 4, 7]))
    kept: dict[str, Vectors] = {}

    def keep(name, make):
        if name not in kept:
            kept[name] = make()
        return kept[name]

    for precision in ("float32", "float16", "int8", "binary"):
        variant = Variant(3, precision)
        shared = variant.fit(fold, vectors, keep).apply(vectors, keep)
        alone = variant.fit(fold, vectors).apply(vectors)
        np.testing.assert_array_equal(shared.matrix, alone.matrix)
    assert len(kept) == 1
    np.testing.assert_array_equal(next(iter(kept.values())).matrix, compress(rows, Variant(3)))


def test_test_rows_do_not_change_the_scale_of_the_train_rows():
    rows = np.random.default_rng(1).normal(size=(8, 4)).astype(np.float32)
    train = [0, 2, 3, 5, 6]
    before = compress(rows, Variant(3, "int8"), train)
    others = np.setdiff1d(np.arange(8), train)
    rows[others] = rows[others] * 1000 + 7
    after = compress(rows, Variant(3, "int8"), train)
    np.testing.assert_array_equal(before[train], after[train])
    assert after[others].max() <= before[train].max()  # clipped


def test_queries_do_not_set_the_scale_of_a_search():
    items = pd.Series({"q": "query", "d": "one", "e": "two"})
    questions = pd.DataFrame({"query": ["q"]})
    data = Dataset("search", items, questions, np.array(["d"]), "items", "text")
    vectors = Vectors(np.array([[99.0], [0.0], [1.0]], dtype=np.float32), np.arange(3))
    fitted = Variant(precision="int8").fit(data.blind(), vectors)
    assert (fitted.low, fitted.high) == (0.0, 1.0)
    whole = (pd.Index(["d", "x"]), np.array([[0.0], [4.0]], dtype=np.float32))
    fitted = Variant(precision="int8").fit(data, Vectors(vectors.matrix, vectors.rows, whole))
    assert fitted.high == 4.0  # what is searched is the vocabulary


def test_16_bits_are_those_of_numpy_without_infinity():
    got = compress([[0.1, 1e6], [2 / 3, -1e-9]], Variant(precision="float16"))
    np.testing.assert_array_equal(
        got, np.float32([[np.float16(0.1), 65504], [np.float16(2 / 3), 0]])
    )


def test_1_bit_is_the_sign_and_its_cosine_the_hamming_distance():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(20, 13)).astype(np.float32)
    rows[3, 4] = 0.0
    got = compress(rows, Variant(precision="binary"))
    np.testing.assert_array_equal(got, np.where(rows > 0, 1, -1))
    packed = np.packbits(rows > 0, axis=1)
    assert packed.shape[1] == vector_bytes(13, "binary") == 2
    hamming = np.unpackbits(packed[:, None] ^ packed[None], axis=2).sum(axis=2)
    np.testing.assert_array_equal(got @ got.T / 13, np.float32(1 - 2 * hamming / 13))


@pytest.mark.parametrize("precision", ["float16", "int8", "binary"])
def test_an_item_without_a_vector_has_none_in_any_precision(precision):
    got = compress([[1.0, 2.0], [np.nan, np.nan], [3.0, -4.0]], Variant(1, precision))
    assert np.isnan(got).all(axis=1).tolist() == [False, True, False]
    nothing = compress([[np.nan, np.nan]] * 2, Variant(1, precision))
    assert np.isnan(nothing).all()


@given(arrays(np.float32, (6, 3), elements=st.floats(-1000, 1000, width=32)))
def test_8_bits_are_within_half_a_step(rows):
    got = compress(rows, Variant(precision="int8"))
    step = (rows.max(axis=0) - rows.min(axis=0)) / 255
    assert (np.abs(got - rows) <= step / 2 + 1e-3).all()


def test_more_dimensions_than_the_vectors_have():
    with pytest.raises(DefinitionError, match="4.* have 3"):
        compress(np.ones((2, 3)), Variant(4))


def test_every_combination_but_the_encoder_itself():
    labels = [each.label for each in make_variants([64, 128, 64], ["float32", "binary"], True)]
    assert labels == ["64d", "64d-binary-rescore", "128d", "128d-binary-rescore"]
    assert [each.label for each in make_variants((), ["float32", "int8"])] == ["int8"]
    assert make_variants(8, "binary", 7) == [Variant(8, "binary", 7)]
    assert make_variants() == make_variants(None, None) == []
    assert make_variants(8, "binary", True)[0].params == {
        **{"dimensions": 8, "precision": "binary", "rescore": RESCORED}
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (([0], []), ["dimensions", "0"]),
        (([True], []), ["dimensions", "True"]),
        (([1.5], []), ["dimensions", "1.5"]),
        ((["many"], []), ["dimensions", "many"]),
        (([], ["int4"]), ["precision", "int4", "int8"]),
        (([], [["int8"]]), ["precision", "['int8']"]),
        (([], ["int8"], True), ["rescore", "binary"]),
        (([], ["binary"], -1), ["rescore", "-1"]),
        (([-1], ["int4"]), ["-1", "int4"]),  # both mistakes
    ],
)
def test_wrong_values_are_refused(given, words):
    with pytest.raises(DefinitionError) as error:
        make_variants(*given)
    assert all(word in str(error.value) for word in words)


@pytest.mark.parametrize("variant", make_variants([64], ["float32", "int8", "binary"], True))
def test_a_name_states_its_variant(variant):
    assert split_name(f"a@b@{variant.label}") == ("a@b", variant)


@pytest.mark.parametrize("name", ["a", "a@", "a@b", "@64d", "a@64", "a@0d", "a@64d-", "a@rescore"])
def test_other_names_are_no_variants(name):
    assert split_name(name) is None
