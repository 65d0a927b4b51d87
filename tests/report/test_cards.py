from karat.report.bundle import make_bundle

ABOUT = {
    **{"source": "package index, x.whl", "licence": "CC0-1.0", "citation": "Fisher (1936)"},
    **{"title": "Iris", "homepage": "https://example.org", "sha256": "ab12"},
}


def test_a_card_per_data_set_with_the_places_of_its_tasks(make_run):
    same = {"dataset": "iris", "fingerprint": "f1", "about": ABOUT, "modality": "table"}
    other = {"dataset": "wine", "fingerprint": "f2"}
    run = make_run(
        "m", {"t": [0.5], "u": [0.5], "v": [0.5]}, tasks={"t": same, "u": other} | {"v": same}
    )
    iris, wine = make_bundle(run)["cards"]
    assert iris == {
        "dataset": "iris",
        **ABOUT,
        **{"fingerprint": "f1", "items": None, "questions": None, "columns": None},
        **{"kind": "table", "tasks": [0, 2]},
    }
    assert (wine["dataset"], wine["tasks"], wine["licence"]) == ("wine", [1], None)
    assert wine["kind"] == "classification"


def test_facts_of_the_task_override_those_of_the_dataset(make_run):
    told = {"licence": "MIT", "items": 150, "questions": 140, "columns": 4, "about": ABOUT}
    (card,) = make_bundle(make_run("m", {"t": [0.5]}, tasks={"t": told}))["cards"]
    assert (card["licence"], card["source"]) == ("MIT", "package index, x.whl")
    assert (card["items"], card["questions"], card["columns"]) == (150, 140, 4)


def test_other_data_of_one_name_have_their_own_card(make_run):
    runs = [
        make_run(name, {"t": [0.5]}, tasks={"t": {"dataset": "iris", "fingerprint": name}})
        for name in ("one", "two")
    ]
    found = make_bundle(runs)
    assert [card["fingerprint"] for card in found["cards"]] == ["one", "two"]
    assert [card["tasks"] for card in found["cards"]] == [[0], [1]]


def test_odd_facts_never_stop_the_page(make_run):
    odd = {"about": ["no", "mapping"], "items": "many", "fingerprint": None}
    (card,) = make_bundle(make_run("m", {"t": [0.5]}, tasks={"t": odd}))["cards"]
    assert (card["items"], card["fingerprint"], card["source"]) == (None, None, None)
