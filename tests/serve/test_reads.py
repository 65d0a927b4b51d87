"""What can be read: runs, jobs, logs, scores, predictions, boards, comparisons, pages."""

import csv
import io
import json

import pandas as pd
import pytest

from karat.analysis.leaderboard import leaderboard
from karat.results.run import open_runs

API = "/api/v1"


def named(folder, model):
    return next(run for run in open_runs([folder]) if run.model == model)


def got(client, path, **query):
    answer = client.get(f"{API}{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(client, path, status, **query):
    answer = client.get(f"{API}{path}", params=query)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"error", "hint"}
    return answer.json()


def test_runs(client, folder):
    told = got(client, "/runs")
    assert told["total"] == 2
    assert [each["model"] for each in told["items"]] == ["dummy", "onehot"]
    first = told["items"][0]
    assert first["id"] == named(folder, "dummy").folder.name
    assert (first["planned"], first["ok"], first["left"], first["state"]) == (4, 4, 0, "finished")
    assert got(client, "/runs", offset=1, limit=1)["items"] == told["items"][1:]


def test_one_run_tells_what_was_planned(client, folder):
    run = named(folder, "onehot")
    told = got(client, f"/runs/{run.folder.name}")
    assert told["about"] == run.about
    assert "onehot" in refused(client, "/runs/onehot", 404)["error"]


def test_jobs_are_the_records(client, folder):
    run = named(folder, "onehot")
    told = got(client, f"/runs/{run.folder.name}/jobs")
    assert told["items"] == run.records()
    one = got(client, f"/runs/{run.folder.name}/jobs", task="line", fold=1)
    assert [(r["task"], r["fold"]) for r in one["items"]] == [("line", 1)]
    assert got(client, f"/runs/{run.folder.name}/jobs", status="failed")["total"] == 0


def test_a_log_is_text_and_never_markup(client, folder):
    run = named(folder, "onehot").folder.name
    answer = client.get(f"{API}/runs/{run}/log", params={"task": "halves", "fold": 0})
    assert answer.text == "Traceback <script>alert(1)</script>\n"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    refused(client, f"/runs/{run}/log", 404, task="halves", fold=1)


def test_scores_are_the_tidy_table(client, folder):
    tables = [run.scores().assign(run=run.folder.name) for run in open_runs([folder])]
    whole = pd.concat(tables, ignore_index=True)
    told = got(client, "/scores")
    assert told["total"] == len(whole)
    assert told["items"][0] == whole.iloc[0].to_dict()
    few = got(client, "/scores", model="onehot", task="line", metric="rmse", fold=0)
    wanted = whole.query("model == 'onehot' and task == 'line' and metric == 'rmse' and fold == 0")
    assert [row["value"] for row in few["items"]] == wanted["value"].tolist()
    clean = got(client, "/scores", corruption="", epoch=-1)
    assert clean["total"] == (whole["corruption"] == "").sum()
    assert got(client, "/scores", corruption="noise_gaussian")["total"] > 0
    both = client.get(f"{API}/scores?metric=acc&metric=rmse").json()
    assert {row["metric"] for row in both["items"]} == {"acc", "rmse"}


def test_scores_are_paged(looker):
    whole = got(looker, "/scores")
    parts = [
        got(looker, "/scores", offset=i, limit=5)["items"] for i in range(0, whole["total"], 5)
    ]
    assert sum(parts, []) == whole["items"]
    assert got(looker, "/scores", offset=10_000)["items"] == []


def test_scores_as_csv_by_accept_or_by_format(looker):
    whole = got(looker, "/scores")
    answer = looker.get(f"{API}/scores", headers={"accept": "text/csv"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == whole["total"] == int(answer.headers["x-total-count"])
    assert float(rows[3]["value"]) == whole["items"][3]["value"]
    assert looker.get(f"{API}/scores?format=csv").text == answer.text
    nothing = looker.get(f"{API}/scores", headers={"accept": "image/png"})
    assert nothing.status_code == 406
    browser = "text/html,application/xhtml+xml,*/*;q=0.8"
    assert looker.get(f"{API}/scores", headers={"accept": browser}).json()["total"]


def test_predictions_are_the_file(client, folder):
    run = named(folder, "onehot")
    asked = {"task": "halves", "fold": 1}
    file = run.folder / "predictions" / "halves" / "1" / "predictions.csv"
    rows = list(csv.reader(file.open()))
    told = got(client, f"/runs/{run.folder.name}/predictions", **asked)
    assert (told["columns"], told["items"], told["total"]) == (rows[0], rows[1:], 10)
    assert told["classes"] == ["high", "low"]
    part = got(client, f"/runs/{run.folder.name}/predictions", **asked, offset=8, limit=5)
    assert part["items"] == rows[9:]
    answer = client.get(f"{API}/runs/{run.folder.name}/predictions.csv", params=asked)
    assert answer.content == file.read_bytes()
    some = {"range": "bytes=5-24"}
    cut = client.get(f"{API}/runs/{run.folder.name}/predictions.csv", params=asked, headers=some)
    assert (cut.status_code, cut.content) == (206, file.read_bytes()[5:25])


def test_predictions_through_a_view(client, folder):
    run = named(folder, "onehot")
    asked = {"task": "halves", "fold": 1, "view": "noise_gaussian@0.5"}
    told = got(client, f"/runs/{run.folder.name}/predictions", **asked)
    file = run.folder / "predictions" / "halves" / "1" / "noise_gaussian@0.5" / "predictions.csv"
    assert told["items"] == list(csv.reader(file.open()))[1:]
    refused(
        client,
        f"/runs/{run.folder.name}/predictions",
        404,
        **{**asked, "view": "noise_gaussian@0.7"},
    )


def test_damaged_predictions_are_said_to_be(client, folder):
    run = named(folder, "onehot")
    place = run.folder / "predictions" / "halves" / "1"
    (place / "predictions.csv").write_bytes(b"a,b\n\xff,1\n")
    refused(client, f"/runs/{run.folder.name}/predictions", 422, task="halves", fold=1)
    (place / "metadata.json").write_text("{")
    refused(client, f"/runs/{run.folder.name}/predictions", 422, task="halves", fold=1)


def test_the_board_is_the_leaderboard(client, folder):
    board = leaderboard(folder)
    told = got(client, "/board")
    assert [row["model"] for row in told["items"]] == list(board.index)
    assert [row["rank"] for row in told["items"]] == board["rank"].tolist()
    assert told["tasks"] == ["halves", "line"]
    assert told["higher_is_better"] == {"halves": True, "line": False}
    by_task = got(client, "/board", by="task", metric="halves=auc", sort="seconds")
    assert {row["task"] for row in by_task["items"]} == {"halves", "line"}
    assert by_task["metrics"]["halves"] == "auc"
    text = client.get(f"{API}/board", headers={"accept": "text/markdown"})
    assert text.headers["content-type"] == "text/markdown; charset=utf-8"
    assert "| onehot" in text.text
    table = pd.read_csv(io.StringIO(client.get(f"{API}/board?format=csv").text))
    assert table["model"].tolist() == list(board.index)


def test_a_board_of_some_runs(client, folder):
    run = named(folder, "onehot").folder.name
    assert [row["model"] for row in got(client, "/board", run=run)["items"]] == ["onehot"]
    refused(client, "/board", 404, run="../onehot")


@pytest.mark.parametrize(
    "query",
    [
        {"sort": "nothing"},
        {"missing": "so"},
        {"normalize": "so"},
        {"metric": "halves=nothing"},
        {"metric": "nothing"},
        {"columns": "nothing"},
    ],
)
def test_mistakes_in_the_options_of_a_board_are_told(client, folder, query):
    told = refused(client, "/board", 422, **query)
    assert str(folder) not in told["error"]
    assert next(iter(query.values())).rpartition("=")[2] in told["error"]


def test_a_board_is_computed_once(client, monkeypatch):
    import karat.analysis.leaderboard as module

    made = []
    make = module.leaderboard
    monkeypatch.setattr(module, "leaderboard", lambda *a, **k: made.append(1) or make(*a, **k))
    for _ in range(3):
        got(client, "/board")
    assert len(made) == 1


def test_two_models_compared(looker):
    told = got(looker, "/compare", a="onehot", b="dummy")
    assert (told["first"], told["second"]) == ("onehot", "dummy")
    by_task = {row["task"]: row for row in told["tasks"]}
    scores = got(looker, "/scores", task="halves", metric="acc", corruption="")["items"]
    means = pd.DataFrame(scores).groupby("model")["value"].mean()
    assert by_task["halves"]["first"] == pytest.approx(means["onehot"])
    assert by_task["halves"]["second"] == pytest.approx(means["dummy"])
    assert isinstance(told["verdict"], str)
    back = got(looker, "/compare", a="dummy", b="onehot")
    assert back["overall"]["wins"] == told["overall"]["losses"]


def test_names_that_look_like_paths_are_not_taken_for_paths(client, folder, tmp_path, tools):
    outside = tools.write_run(tmp_path / "outside", "secret").folder
    for name in (str(outside), str(outside.parent), "../outside", "."):
        refused(client, "/compare", 404, a=name, b="dummy")
    refused(client, "/compare", 422, a="dummy", b="dummy")


def test_the_bundle_is_what_the_page_shows(client, folder):
    from karat.reporting.bundle import make_bundle

    told = got(client, "/bundle")
    progress = told.pop("progress")
    assert progress == {"done": 8, "running": [], "failed": 0, "left": 0}
    assert progress == got(client, "/progress")
    assert told == json.loads(json.dumps(make_bundle(folder)))
    answer = client.get(f"{API}/bundle")
    again = client.get(f"{API}/bundle", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_pages(looker):
    page = looker.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "/api/v1/bundle" in page.text
    assert "onehot" in page.text
    policy = page.headers["content-security-policy"]
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "script-src 'sha256-" in policy
    assert "'unsafe-eval'" not in policy
    file = looker.get("/report.html")
    assert file.headers["content-disposition"] == 'attachment; filename="report.html"'
    assert "connect-src 'none'" in file.headers["content-security-policy"]
    assert "/api/v1/bundle" not in file.text.partition("<body")[0]
    part = looker.get("/report.html", headers={"range": "bytes=0-14"})
    assert (part.status_code, part.text) == (206, "<!doctype html>")
    human = looker.get("/api")
    assert "POST /api/v1/evaluations" in human.text
    assert looker.get("/favicon.ico").headers["content-type"] == "image/svg+xml"


def test_an_empty_folder_is_a_page_that_waits(tmp_path, tools):
    with tools.opened(tmp_path) as client:
        told = got(client, "/bundle")
        assert told["models"] == []
        assert client.get("/").status_code == 200
        assert got(client, "/runs")["total"] == got(client, "/scores")["total"] == 0
        refused(client, "/board", 409)
        tools.write_run(tmp_path, "a")
        client.service.state.forget()
        tools.wait_until(lambda: got(client, "/bundle")["models"], 10)
        assert got(client, "/board")["total"] == 1


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("limit=0", "limit"),
        ("limit=99999", "limit"),
        ("limit=ten", "limit"),
        ("limit=1&limit=2", "twice"),
        ("offset=-1", "offset"),
        ("offset=١", "offset"),
        ("lmit=5", "lmit"),
    ],
)
def test_wrong_parameters_are_named(looker, query, said):
    answer = looker.get(f"{API}/runs?{query}")
    assert answer.status_code == 400
    assert said in answer.json()["error"]


def test_a_parameter_nearly_right_gets_a_hint(looker):
    assert 'Did you mean "limit"?' in looker.get(f"{API}/runs?lmit=5").json()["hint"]


def test_what_is_not_there_and_what_is_not_done(looker):
    assert looker.get("/nothing").json() == {
        "error": "not found",
        "hint": "/api tells what there is",
    }
    answer = looker.post(f"{API}/board")
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD"}
    both = looker.put(f"{API}/vectors", headers={"content-type": "application/json"})
    assert set(both.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}
