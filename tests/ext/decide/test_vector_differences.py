"""Planted differences of vectors have their cause named; equal ones have none."""

from __future__ import annotations

import numpy as np
import pytest

from karat.ext.decide.vector_differences import (
    ProbeItems,
    gram_difference,
    neighbor_agreement,
    vector_difference,
)

COUNT, WIDTH = 200, 16
LENGTHS = np.repeat([5, 20, 80, 150, 400], COUNT // 5)
LANGUAGES = np.tile(np.array(["en", "de", "ja", "ru"], dtype=object), COUNT // 4)
ROLES = np.where(np.arange(COUNT) % 5 == 0, "query", "").astype(object)
ITEMS = ProbeItems(LENGTHS.astype(float), LANGUAGES, ROLES)


def vectors(seed=0):
    rows = np.random.default_rng(seed).standard_normal((COUNT, WIDTH)) + 0.5
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def changed(where):
    """Return vectors of which some rows are others."""
    return np.where(where[:, None], vectors(1), vectors())


def rotation():
    return np.linalg.qr(np.random.default_rng(2).standard_normal((WIDTH, WIDTH)))[0]


def noisy(size):
    return vectors() + size / np.sqrt(WIDTH) * np.random.default_rng(3).standard_normal(
        (COUNT, WIDTH)
    )


PLANTED = {
    "none": vectors() * (1 + 1e-7),
    "order": np.roll(vectors(), 1, axis=0),
    "scale": vectors() * np.linspace(1, 5, COUNT)[:, None],
    "permutation": vectors()[:, ::-1],
    "rotation": vectors() @ rotation(),
    "length": changed(LENGTHS > 100),
    "queries": changed(ROLES == "query"),
    "languages": changed(np.isin(LANGUAGES, ["ja", "ru"])),
    "noise": noisy(0.01),
    "model": np.random.default_rng(9).standard_normal((COUNT, WIDTH)),
    "truncated": vectors()[:, :8] * 2,
    "width": np.random.default_rng(9).standard_normal((COUNT, 8)),
    "coverage": np.where(np.arange(COUNT)[:, None] < 3, np.nan, vectors()),
}


@pytest.mark.parametrize("code", PLANTED)
def test_the_planted_cause_is_named(code):
    assert vector_difference(vectors(), PLANTED[code], ITEMS).code == code


@pytest.mark.parametrize("code", ["order", "permutation", "rotation", "length", "languages"])
def test_causes_are_named_in_both_directions(code):
    assert vector_difference(PLANTED[code], vectors(), ITEMS).code == code


def test_the_length_at_which_texts_are_cut_is_estimated():
    found = vector_difference(vectors(), changed(LENGTHS > 100), ITEMS)
    assert " 80 words" in found.sentence  # the longest texts that are equal


@pytest.mark.parametrize(
    ("size", "name"), [(2e-4, "float16"), (0.01, "bfloat16"), (0.034, "8-bit"), (0.3, "4-bit")]
)
def test_noise_is_named_by_its_size(size, name):
    found = vector_difference(vectors(), noisy(size), ITEMS)
    assert found.code == "noise"
    assert name in found.sentence


def test_a_larger_tolerance_hides_rounding_only():
    kept = vectors().astype(np.float16).astype(float)
    assert vector_difference(vectors(), kept, ITEMS).code == "noise"
    assert vector_difference(vectors(), kept, ITEMS, rounding=2e-3).code == "none"
    assert vector_difference(vectors(), noisy(0.01), ITEMS, rounding=2e-3).code == "noise"


def test_relative_difference_and_cosine_by_hand():
    a, b = np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([[3.0, 0.0], [0.0, 0.0]])
    found = vector_difference(a, b, ProbeItems.of(["x", ""]))
    assert found.relative.tolist() == [0.8, 0.0]  # 4 of 5
    assert found.cosine.tolist() == pytest.approx([0.6, 1.0])


def test_inner_products_do_not_change_by_a_rotation():
    assert gram_difference(vectors(), vectors() @ rotation()) < 1e-12
    assert gram_difference(vectors(), 2 * vectors()) == pytest.approx(3.0)


def test_neighbors_by_hand():
    # on a circle: the nearest of 0° and 10° are each other, and of 90° it is 100°
    a, b = (
        np.array([[np.cos(x), np.sin(x)] for x in np.radians(angles)])
        for angles in ([0, 10, 90, 100], [0, 95, 90, 100])
    )
    assert neighbor_agreement(a, a, k=1).overlap.tolist() == [1, 1, 1, 1]
    assert neighbor_agreement(a, b, k=1).overlap.tolist() == [0, 0, 0, 0]
    same = neighbor_agreement(a, a @ np.array([[0.0, 1.0], [-1.0, 0.0]]), k=2)
    assert same.overlap.tolist() == [1, 1, 1, 1]
    assert same.correlation.tolist() == pytest.approx([1, 1, 1, 1])


def test_rank_correlation_equals_spearman():
    from scipy.stats import spearmanr

    a, b = vectors()[:12], noisy(0.5)[:12]
    found = neighbor_agreement(a, b, k=3).correlation
    units = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (a, b)]
    similar = [each @ each.T for each in units]
    others = np.arange(12) != 0
    assert found[0] == pytest.approx(spearmanr(*(s[0, others] for s in similar))[0])
