"""GEval over HTTP: orders of names only, results as JSON and as GEval's files, and comparisons."""

from __future__ import annotations

import csv
import io
import json
import threading
import warnings
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

if not all(map(find_spec, ("fastapi", "uvicorn", "httpx"))):
    pytest.skip("needs karat[serve]", allow_module_level=True)

from karat.ext.compat.geval import FrameworkManager
from karat.ext.compat.geval.served import GevalServer
from karat.ext.serve.server import ApiError, ServerSettings
from karat.ext.serve.submissions import Evaluation, GevalOrder, geval_arguments

from .geval_gold import run_geval, vectors, write_gold, write_hdf5, write_text

API = "/api/v1"
TOKEN = "0123456789abcdef-token"
BYTES = {"content-type": "application/octet-stream"}
YAML = """
constraints:
  small: {max_runtime_seconds: 9000, max_mem_size_mb: 4096, cores: 1}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with gold standards, vector files and a run of the command line."""
    folder = tmp_path_factory.mktemp("geval served")
    run_geval(folder, tasks="EntRel")
    write_hdf5(folder / "v.h5", vectors())
    (folder / "broken.txt").write_text("a 1.0 2.0\nb 1.0\n")
    (folder / "my.yaml").write_text(YAML)
    return folder


@pytest.fixture(scope="module")
def client(place):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from starlette.testclient import TestClient

        from karat.ext.serve.routes import make_app
    settings = ServerSettings(
        place / "results",
        token=TOKEN,
        geval_gold=place / "gold",
        constraint="small",
        define=(place / "my.yaml",),
        max_upload=200_000,
    )
    with TestClient(make_app(settings), base_url="http://localhost") as made:
        made.headers["authorization"] = f"Bearer {TOKEN}"
        yield made


def upload(client, name, content):
    return client.post(f"{API}/vectors", params={"name": name}, content=content, headers=BYTES)


def start(client, **order):
    return client.post(f"{API}/geval", json=order)


def wait(client, answer):
    """Wait for the end of an evaluation that was accepted, and return it."""
    assert answer.status_code == 202, answer.text
    with client.stream("GET", f"{API}/events?evaluation={answer.json()['id']}") as events:
        found = [line[6:] for line in events.iter_lines() if line.startswith("data: {")]
    return json.loads([each for each in found if "status" in each][-1])


@pytest.fixture(scope="module")
def finished(client, place):
    """An evaluation of an HDF5 file, compared with the run of the command line."""
    upload(client, "v.h5", (place / "v.h5").read_bytes())
    order = {"vectors": "v.h5", "tasks": ["EntRel", "Clu"], "vector_size": 6}
    return wait(client, start(client, **order))


def test_options_have_names_and_the_gold_standards_that_are_here(client):
    found = client.get(f"{API}/geval").json()
    assert [task["short"] for task in found["tasks"]] == [
        *("Class", "Reg", "Clu", "DocSim", "EntRel", "SemAn")
    ]
    here = {gold["name"] for gold in found["gold_standards"] if gold["available"]}
    assert here == {"Cities", "teams_cluster", "KORE", "LP50", "currency_entities"}
    assert {"txt", "hdf5"} <= set(found["formats"]) and "cosine" in found["similarity_metrics"]
    assert found["analogy_functions"] == ["default"] and found["message"] == ""


def test_an_evaluation_ends_with_results(client, finished):
    assert (finished["status"], finished["code"]) == ("finished", 0)
    assert finished["progress"]["done"] == 5 and finished["progress"]["failed"] == 0
    assert finished["result"] == f"result_{finished['id']}"
    found = client.get(f"{API}/geval/results/{finished['result']}").json()
    assert set(found["tables"]) == {
        *("clustering_teams_cluster_results.csv", "entityRelatedness_KORE_results.csv")
    }
    table = found["tables"]["clustering_teams_cluster_results.csv"]
    models = [row[table["columns"].index("model_name")] for row in table["rows"]]
    assert len(models) == table["total"] == 4 and "KMeans" in models
    assert found["run"] == "v_6_cosine_2_1" and found["vectors"] == "v.h5"
    assert found["problems"] == [] and "TESTED CONFIGURATION" in found["log"]


def test_scores_are_those_of_the_command_line(client, finished, place):
    """The text file on the command line and the HDF5 file over HTTP have the same vectors."""
    found = client.get(f"{API}/geval/comparison", params={"run": "v_6_cosine_2_1"}).json()
    values = pd.DataFrame(found["values"])
    values = values[values["task_name"] == "EntityRelatedness"]
    assert set(values["test_name"]) == {"my vectors_6_cosine_2_1", "v_6_cosine_2_1"}
    for _, part in values.groupby("metric"):
        assert part["score_value"].nunique() == 1
    ranks = pd.DataFrame(found["ranks"])
    own = ranks[ranks["task_name"] == "EntityRelatedness"]
    assert own["ranking"].tolist() == [1, 1] and own["absolute_total"].tolist() == [2, 2]
    assert own["relative_total"].tolist() == [1, 1]


def test_files_are_those_of_the_folder_in_a_zip(client, finished, place):
    answer = client.get(f"{API}/geval/results/{finished['result']}/files.zip")
    assert answer.headers["content-type"] == "application/zip"
    folder = place / "results" / finished["result"]
    with zipfile.ZipFile(io.BytesIO(answer.content)) as packed:
        contents = {Path(name).name: packed.read(name).decode() for name in packed.namelist()}
    assert set(contents) == {path.name for path in folder.iterdir() if path.is_file()}
    for name in ("entityRelatedness_KORE_results.csv", "clustering_teams_cluster_ignoredData.txt"):
        assert contents[name] == (folder / name).read_text()
    # the run of the command line has the path of its vector file
    assert not any(str(place) in text for text in contents.values())
    assert "my vectors_6_cosine_2_1" in contents["comparison_values.csv"]
    separator = " " if "," not in contents["comparison_values.csv"].splitlines()[0] else ","
    rows = list(csv.DictReader(io.StringIO(contents["comparison_values.csv"]), delimiter=separator))
    assert {row["test_name"] for row in rows} == {"v_6_cosine_2_1", "my vectors_6_cosine_2_1"}


def test_results_and_runs_are_listed(client, finished):
    results = client.get(f"{API}/geval/results").json()
    assert results["total"] >= 2 and finished["result"] in [r["name"] for r in results["items"]]
    assert {r["run"] for r in results["items"]} >= {"v_6_cosine_2_1", "my vectors_6_cosine_2_1"}
    runs = {run["id"]: run for run in client.get(f"{API}/geval/runs").json()["items"]}
    assert runs["v_6_cosine_2_1"]["tasks"] == ["EntityRelatedness", "Clustering"]
    assert runs["v_6_cosine_2_1"]["gold_standards"] == 2


def test_an_evaluation_is_compared_with_the_chosen_runs_only(client, finished):
    order = {"vectors": "v.h5", "tasks": ["EntRel"], "compare_with": ["my vectors_6_cosine_2_1"]}
    found = wait(client, start(client, **order))
    values = client.get(f"{API}/geval/results/{found['result']}").json()["comparison_values"]
    names = {row[values["columns"].index("test_name")] for row in values["rows"]}
    assert names == {"my vectors_6_cosine_2_1", "v_6_cosine_2_2"}


def test_two_uploads_at_the_same_time_are_evaluated_one_after_the_other(client, place):
    stock = vectors()
    answers = {}

    def send(name, size):
        lines = [" ".join([k, *map(str, v[:size])]) for k, v in stock.items()]
        sent = upload(client, name, "\n".join(lines).encode())
        started = start(client, vectors=name, tasks=["EntRel"], vector_size=size)
        answers[name] = (sent.status_code, started)

    threads = [threading.Thread(target=send, args=(f"at-once-{n}.txt", n)) for n in (4, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ended = {name: wait(client, started) for name, (_, started) in answers.items()}
    for name, found in ended.items():
        assert answers[name][0] == 201 and found["status"] == "finished"
        result = client.get(f"{API}/geval/results/{found['result']}").json()
        assert result["vectors"] == name and result["vector_size"] == name[8]
    one, other = sorted(ended.values(), key=lambda each: each["started"])
    assert one["ended"] <= other["started"]


def test_a_broken_file_and_a_wrong_size_fail_with_a_reason(client, place, finished):
    upload(client, "broken.txt", (place / "broken.txt").read_bytes())
    for order in ({"vectors": "broken.txt"}, {"vectors": "v.h5", "vector_size": 7}):
        found = wait(client, start(client, **order, tasks=["EntRel"]))
        assert (found["status"], found["code"], found["result"]) == ("failed", 2, "")
        assert order["vectors"] in found["output"] and "Traceback" not in found["output"]
        assert str(place) not in found["output"]


def test_a_running_evaluation_can_be_cancelled_and_run_again(client, finished):
    started = start(client, vectors="v.h5", tasks=["EntRel", "Class"])
    path = f"{API}/evaluations/{started.json()['id']}"
    assert client.post(f"{path}/cancel").status_code == 202
    assert wait(client, started)["status"] == "cancelled"
    again = client.post(f"{path}/resume")
    assert again.status_code == 202
    assert client.post(f"{path}/cancel").status_code == 202
    assert wait(client, again)["status"] == "cancelled"


def test_a_file_that_was_deleted_meanwhile_fails(client, finished, place):
    upload(client, "gone.txt", (place / "my vectors.txt").read_bytes())
    first = start(client, vectors="v.h5", tasks=["EntRel"])
    second = start(client, vectors="gone.txt", tasks=["EntRel"])
    assert client.delete(f"{API}/vectors/gone.txt").status_code == 200
    assert wait(client, first)["status"] == "finished"
    found = wait(client, second)
    assert found["status"] == "failed" and "gone.txt" in found["output"]


REFUSED = [
    ({"vectors": "nobody.txt"}, 404, "vectors"),
    ({"vectors": "../my.yaml"}, 404, "vectors"),
    ({"tasks": ["Clas"]}, 422, "tasks"),
    ({"tasks": ["os:system"]}, 422, "tasks"),
    ({"tasks": ["Class:../Clustering/teams_cluster"]}, 422, "tasks"),
    ({"tasks": ["<script>alert(1)</script> x"]}, 422, "tasks"),
    ({"tasks": ["Class:AAUP"]}, 422, "tasks"),
    ({"similarity_metric": "os:system"}, 422, "similarity_metric"),
    ({"similarity_metric": "cosin"}, 422, "similarity_metric"),
    ({"analogy_function": "os:system"}, 422, "analogy_function"),
    ({"analogy_function": "none"}, 422, "analogy_function"),
    ({"vector_file_format": "json:load"}, 422, "vector_file_format"),
    ({"vector_file_format": "--define=x"}, 422, "vector_file_format"),
    ({"compare_with": ["nothing"]}, 404, "compare_with"),
    ({"vector_size": 0}, 400, "vector_size"),
    ({"top_k": "2"}, 400, "top_k"),
    ({"protocol": "old"}, 400, "protocol"),
    ({"define": ["x"]}, 400, "define"),
]


@pytest.mark.parametrize(("order", "status", "field"), REFUSED, ids=lambda each: str(each)[:40])
def test_orders_that_are_refused(client, finished, order, status, field):
    before = client.get(f"{API}/evaluations").json()["total"]
    answer = start(client, **{"vectors": "v.h5", **order})
    assert (answer.status_code, answer.json()["field"]) == (status, field), answer.text
    assert client.get(f"{API}/evaluations").json()["total"] == before


def test_names_with_spaces_and_markup_are_refused_or_stay_text(client):
    name = "a <script>alert(1)</script>.txt"
    assert upload(client, name, b"a 1 2\n").status_code == 400
    for path in ("results", "results/x/files.zip"):
        answer = client.get(f"{API}/geval/{path.replace('x', '..%2f..%2fetc')}")
        assert answer.status_code in (200, 404)
    answer = client.get(f"{API}/geval/results/{name.replace('/', '')}")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")
    answer = client.get(f"{API}/geval/comparison", params={"run": name})
    assert answer.status_code == 404


def test_links_out_of_the_folder_are_not_followed(client, place, tmp_path):
    (tmp_path / "log.txt").write_text("secret")
    (place / "results" / "result_linked").symlink_to(tmp_path)
    assert client.get(f"{API}/geval/results/result_linked").status_code == 404
    names = [r["name"] for r in client.get(f"{API}/geval/results").json()["items"]]
    assert "result_linked" not in names
    (place / "results" / "result_linked").unlink()


def test_a_server_without_gold_standards_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_DATA", str(tmp_path))
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    server = GevalServer(ServerSettings(tmp_path))
    assert "--geval-gold" in server.options()["message"]
    with pytest.raises(ApiError) as caught:
        server.check(GevalOrder(vectors="v.txt", tasks=["Class"]))
    assert caught.value.status == 422 and "--geval-gold" in caught.value.hint
    assert server.runs() == [] and server.results() == []
    # a folder of KARAT_DATA may have them, if their content is that of GEval
    monkeypatch.setenv("KARAT_DATA", str(tmp_path / "data"))
    write_gold(tmp_path / "data" / "geval")
    found = {g["name"] for g in server.options()["gold_standards"] if g["available"]}
    assert "KORE" in found and "AAUP" not in found


def test_arguments_of_the_child_process(tmp_path):
    order = GevalOrder(vectors="v.txt", vector_size=3, compare_with=["x"], analogy_function="")
    names = {"tasks": ["Clustering:teams_cluster"], "compare_with": ["/a/x"]}
    settings = ServerSettings(tmp_path, geval_gold=tmp_path / "gold", workers=2)
    given = geval_arguments(order, names, "result_1", settings)
    assert given[0] == "geval" and all(each.startswith("--") for each in given[1:])
    options = dict(each[2:].split("=", 1) for each in given[1:])
    assert options["vector_file"] == "v.txt" and options["tasks"] == "Clustering:teams_cluster"
    assert options["compare_with"] == "/a/x" and options["constraint"] == "served"
    assert options["gold_directory_path"] == str(tmp_path / "gold")
    assert "analogy_function" not in options and "token" not in options


def test_stored_evaluations_keep_the_kind_of_their_order():
    stored = Evaluation(id="1", order=GevalOrder(vectors="v.txt"))
    again = Evaluation.model_validate_json(stored.model_dump_json())
    assert isinstance(again.order, GevalOrder) and again.order.vectors == "v.txt"


def test_damaged_files_are_reported(tmp_path):
    server = GevalServer(ServerSettings(tmp_path))
    (tmp_path / "comparison.csv").write_text("not a table\n")
    with pytest.raises(ApiError) as caught:
        server.runs()
    assert caught.value.status == 422
    (tmp_path / "result_x").mkdir()
    (tmp_path / "result_x" / "log.txt").write_text("")
    (tmp_path / "result_x" / "a_results.csv").write_text("")
    with pytest.raises(ApiError):
        server.result("result_x")


def test_the_page_of_the_interface_needs_no_stored_scores(client, place):
    path = place / "results" / "comparison.csv"
    before = path.read_bytes()
    path.write_text("not a table\n")
    assert client.get("/docs").status_code == 200
    path.write_bytes(before)


def test_a_result_may_have_any_letters(client, place):
    folder = place / "results" / "result_größe_大小"
    folder.mkdir()
    (folder / "log.txt").write_text("TESTED CONFIGURATION\n")
    (folder / "comparison_values.csv").write_bytes(b"test_name,score\n\xff,1\n")
    found = client.get(f"{API}/geval/results/{folder.name}").json()
    assert found["comparison_values"]["columns"] == ["test_name", "score"]
    answer = client.get(f"{API}/geval/results/{folder.name}/files.zip")
    assert answer.status_code == 200
    names = zipfile.ZipFile(io.BytesIO(answer.content)).namelist()
    assert f"{folder.name}/log.txt" in names


def test_equal_names_in_several_folders_stay_apart(tmp_path):
    write_gold(tmp_path / "gold")
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        path = write_text(tmp_path / folder / "v.txt", vectors())
        FrameworkManager().evaluate(
            str(path),
            tasks="EntRel",
            gold_directory_path=tmp_path / "gold",
            result_directory_path=tmp_path / "out",
        )
    server = GevalServer(ServerSettings(tmp_path / "out"))
    names = [run["id"] for run in server.runs()]
    assert names == ["v_6_cosine_2_1", "v_6_cosine_2_1 (2)"]
    assert server.stored_ids(names[1:]) == [f"{tmp_path}/two/v_6_cosine_2_1"]
