"""Uploads are stored completely or not at all; evaluations run defined names only."""

import errno
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import psutil
import pytest

from karat.core.writing import draft_of
from karat.errors import DataError
from karat.ext.serve import guard, routes, snapshots, submissions
from karat.ext.serve.server import ApiError, ServerSettings
from karat.ext.serve.snapshots import ServedRun
from karat.ext.serve.submissions import (
    DefinedNames,
    Evaluation,
    Evaluations,
    Order,
    Uploads,
    run_arguments,
)
from karat.results.run import Run

API = "/api/v1"
BYTES = {"content-type": "application/octet-stream"}


def send(writer, what, name, content):
    return writer.post(f"{API}/{what}", params={"name": name}, content=content, headers=BYTES)


@pytest.fixture(autouse=True)
def in_process(request, monkeypatch):
    """Unpack run folders without a child process, which takes seconds to start."""
    if "child_process" in request.fixturenames:
        return

    def unpack(self, draft, scratch):
        limit = submissions.MAX_EXPANSION * self.settings.max_upload
        if why := submissions.unpack_run(draft, scratch, submissions.MAX_FILES, limit):
            raise DataError(why)

    monkeypatch.setattr(Uploads, "_unpack", unpack)


@pytest.fixture
def child_process():
    """Unpack run folders as a server does."""


def leftovers(folder):
    return list((folder / ".uploads" / "drafts").glob("*"))


@pytest.fixture
def a_run(tmp_path, tools):
    return tools.write_run(tmp_path / "elsewhere", "uploaded", {"halves": [1.0, 1.0, 1.0]}).folder


def archive(*entries):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in entries:
            out.writestr(name, content)
    return made.getvalue()


def zipped(folder, top="run/"):
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return archive(*((f"{top}{path.relative_to(folder)}", path.read_bytes()) for path in files))


def tarred(folder, mode="w:gz"):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:
        archive.add(folder, "run")
    return made.getvalue()


# -- vector files ---------------------------------------------------------------------------


def test_store_list_and_delete_a_vector_file(writer, written):
    content = b"a 1 2\nb 3 4\n"
    answer = send(writer, "vectors", "mine.txt", content)
    digest = hashlib.sha256(content).hexdigest()
    data = {"name": "mine.txt", "bytes": 12, "sha256": digest, "model": "upload:mine.txt"}
    assert (answer.status_code, answer.json()) == (201, data)
    assert (written / ".uploads" / "vectors" / "mine.txt").read_bytes() == content
    assert [each["name"] for each in writer.get(f"{API}/vectors").json()["items"]] == ["mine.txt"]
    assert send(writer, "vectors", "mine.txt", b"c 5 6\n").status_code == 409
    assert (written / ".uploads" / "vectors" / "mine.txt").read_bytes() == content
    assert writer.delete(f"{API}/vectors/mine.txt").json() == {"removed": "mine.txt"}
    assert writer.delete(f"{API}/vectors/mine.txt").status_code == 404
    assert leftovers(written) == []


def test_suffixes_of_vector_files(writer, written):
    for name in ("a.txt.gz", "b.npz", "c.VEC", "d.h5", "e.txt.zst"):
        assert send(writer, "vectors", name, b"x").status_code == 201
    for name in ("a.py", "a", "a.pkl", "a.txt.py", "a.html", "a.tar.gz", "b.so"):
        assert send(writer, "vectors", name, b"x").status_code == 400
    assert leftovers(written) == []


def test_bodies_that_are_too_large_empty_or_without_a_type(writer, written):
    assert send(writer, "vectors", "a.txt", b"x" * 200_001).status_code == 413
    answer = send(writer, "vectors", "a.txt", (b"x" * 50_000 for _ in range(5)))
    assert answer.status_code == 413
    assert "0 MB" in answer.json()["hint"]
    assert leftovers(written) == []
    assert send(writer, "vectors", "a.txt", (b"x" * 50_000 for _ in range(4))).status_code == 201
    assert send(writer, "vectors", "a.txt", b"").status_code == 400
    assert writer.post(f"{API}/vectors?name=a.txt", content=b"x").status_code == 415
    assert leftovers(written) == []


def test_all_uploads_together_have_a_limit(writer, monkeypatch):
    monkeypatch.setattr(submissions, "MAX_TOTAL", 1)
    assert send(writer, "vectors", "a.txt", b"x" * 150_000).status_code == 201
    assert send(writer, "vectors", "b.txt", b"x" * 150_000).status_code == 201
    assert send(writer, "vectors", "c.txt", b"x").status_code == 507
    writer.delete(f"{API}/vectors/a.txt")
    assert send(writer, "vectors", "c.txt", b"x").status_code == 201


def test_a_slow_upload(writer, written, monkeypatch):
    monkeypatch.setattr(submissions, "SPEED_GRACE", 0.0)
    monkeypatch.setattr(submissions.time, "monotonic", iter(range(0, 1000, 10)).__next__)
    answer = send(writer, "vectors", "a.txt", (b"x" for _ in range(5)))
    assert answer.status_code == 408
    assert leftovers(written) == []


def test_drafts_of_killed_servers_are_deleted_at_start(written, tools):
    drafts = written / ".uploads" / "drafts"
    drafts.mkdir(parents=True)
    code = "from karat.core.writing import draft_of; from pathlib import Path; import sys; "
    code += "place = Path(sys.argv[1]); draft_of(place / 'body').write_text('x'); "
    code += "draft_of(place / 'folder').mkdir()"
    subprocess.run([sys.executable, "-c", code, str(drafts)], check=True)
    draft_of(drafts / "of a living server").write_text("x")
    assert len(leftovers(written)) == 3
    with tools.opened(written, token=tools.token):
        assert leftovers(written) == [draft_of(drafts / "of a living server")]


def test_many_run_folders_at_once_are_told_to_come_back(written, writer, monkeypatch):
    archive = zipped(sorted(written.glob("*/run.json"))[0].parent)
    with monkeypatch.context() as patch:
        patch.setattr(guard.Turns, "waiting", routes.MAX_WAITING_RUNS)
        answer = send(writer, "runs", "more", archive)
    assert answer.status_code == 503 and answer.headers["retry-after"] == "30"
    assert "wait to be checked" in answer.json()["error"] and leftovers(written) == []
    assert send(writer, "runs", "more", archive).status_code == 201


# -- run folders ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "packed",
    [zipped, lambda run: zipped(run, ""), tarred, lambda run: tarred(run, "w")],
    ids=["zip", "flat zip", "tar.gz", "tar"],
)
def test_upload_a_run_folder(writer, written, a_run, packed):
    answer = send(writer, "runs", "new.run", packed(a_run))
    assert (answer.status_code, answer.json()) == (201, {"id": "new.run"})
    assert answer.headers["location"] == f"{API}/runs/new.run"
    assert writer.get(answer.headers["location"]).json()["model"] == "uploaded"
    board = writer.get(f"{API}/board").json()["items"]
    assert {row["model"] for row in board} == {"a", "b", "uploaded"}
    assert leftovers(written) == []
    assert send(writer, "runs", "new.run", packed(a_run)).status_code == 409


def test_only_records_tables_and_logs_are_stored(writer, written, a_run):
    (a_run / "models").mkdir()
    (a_run / "models" / "m.pkl").write_bytes(b"cos\nsystem\n")
    (a_run / "evil.py").write_text("1/0")
    (a_run / "page.html").write_text("<script>")
    assert send(writer, "runs", "new", zipped(a_run)).status_code == 201
    left = {path.relative_to(written / "new") for path in (written / "new").rglob("*.*")}
    assert {str(path.parent) for path in left} == {".", "jobs", "scores"}
    assert {path.suffix for path in left} == {".json", ".csv"}
    (a_run / "scores").mkdir()
    (a_run / "scores" / "scores.csv").write_text("task,value\nnonsense,1\n")
    (a_run / "scores" / "other.csv").write_text("x\n")
    assert send(writer, "runs", "newer", zipped(a_run)).status_code == 201
    assert Run(written / "newer").scores()["value"].tolist() == [1.0, 1.0, 1.0]
    assert not (written / "newer" / "scores" / "other.csv").exists()
    assert writer.get("/").status_code == 200


def with_link(a_run, target, kind):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as out:
        out.add(a_run, "run")
        link = tarfile.TarInfo("run/logs.txt")
        link.type, link.linkname = kind, target
        out.addfile(link)
    return made.getvalue()


def test_unsafe_archives(writer, written, a_run, tmp_path):
    whole = [(str(p.relative_to(a_run)), p.read_bytes()) for p in a_run.rglob("*.json")]
    for name in r"../evil.json /tmp/evil.json a/../../evil.json C:/evil.json ..\e.json".split():
        answer = send(writer, "runs", "new", archive(*whole, (name, b"{}")))
        assert answer.status_code == 422
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
        answer = send(writer, "runs", "new", with_link(a_run, "/etc/passwd", kind))
        assert answer.status_code == 422
    assert not (written / "new").exists()
    assert not list(tmp_path.rglob("evil.json"))
    assert leftovers(written) == []
    assert str(tmp_path) not in answer.text


def test_archives_that_are_too_large(writer, written, a_run, monkeypatch):
    monkeypatch.setattr(submissions, "MAX_FILES", 50)
    whole = [(str(p.relative_to(a_run)), p.read_bytes()) for p in a_run.rglob("*.json")]
    bomb = archive(*whole, ("big.csv", b"0" * 1_700_000))
    assert len(bomb) < 20_000
    assert "larger than" in send(writer, "runs", "new", bomb).json()["error"]
    packed = gzip.compress(b"0" * 40_000_000)
    assert "when unpacked" in send(writer, "runs", "new", packed).json()["error"]
    many = archive(*whole, *((f"{i}.txt", b"") for i in range(60)))
    assert "files" in send(writer, "runs", "new", many).json()["error"]
    assert leftovers(written) == []


@pytest.mark.parametrize(
    "content",
    [
        b"no archive",
        archive(("a.txt", b"x")),
        archive(("a/run.json", b"{}"), ("b/run.json", b"{}")),
        archive(("run.json", b"{}")),
        archive(("run.json", b"[]")),
        archive(("run.json", b"{" * 5000)),
        archive(("run.json", b"[" * 100_000)),
        gzip.compress(b"no tar", mtime=0),
        gzip.compress(b"x" * 1000, mtime=0)[:50],
        b"PK\x05\x06" + b"\0" * 18,
    ],
    ids=range(10),
)
def test_invalid_run_folders(writer, written, content):
    answer = send(writer, "runs", "new", content)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("cannot add the run: ")
    assert not (written / "new").exists()
    assert leftovers(written) == []


def test_runs_without_jobs_or_with_invalid_records(writer, a_run, tools):
    about = (a_run / "run.json").read_bytes()
    answer = send(writer, "runs", "n", archive(("run.json", about)))
    assert "no finished job" in answer.json()["error"]
    wrong = tools.record("uploaded", "halves", 0, 1.0) | {"views": [{"scores": {"acc": "x"}}]}
    body = archive(("run.json", about), ("jobs/halves.0.json", json.dumps(wrong)))
    assert "the record of halves: views.0" in send(writer, "runs", "n", body).json()["error"]


def test_a_child_process_unpacks(child_process, writer, written, a_run):
    assert send(writer, "runs", "new", tarred(a_run)).status_code == 201
    assert (written / "new" / "scores" / "scores.csv").is_file()
    answer = send(writer, "runs", "other", archive(("run.json", b"[]")))
    assert answer.status_code == 422
    assert str(written) not in answer.text
    assert leftovers(written) == []


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is not limited here")
def test_the_child_process_has_little_memory(child_process, written, a_run, tools, monkeypatch):
    monkeypatch.setattr(submissions, "MAX_UNPACK_MB", 400)
    about = json.loads((a_run / "run.json").read_text())
    about["params"] = {"many": [{}] * 7_000_000}
    large = archive(("run.json", json.dumps(about)))
    with tools.opened(written, token=tools.token) as writer:
        writer.headers["authorization"] = f"Bearer {tools.token}"
        assert send(writer, "runs", "small", zipped(a_run)).status_code == 201
        answer = send(writer, "runs", "new", large)
    assert answer.status_code == 422
    assert "memory" in answer.json()["error"]
    assert leftovers(written) == []


def test_the_child_process_has_little_time(child_process, writer, written, a_run, monkeypatch):
    monkeypatch.setattr(submissions, "MAX_UNPACK_SECONDS", 0.01)
    answer = send(writer, "runs", "new", zipped(a_run))
    assert answer.status_code == 422
    assert "seconds" in answer.json()["error"]
    assert leftovers(written) == []
    assert not (written / "new").exists()


@pytest.mark.parametrize(("code", "output"), [(-9, b""), (-11, b""), (1, b"Traceback ...\nOops")])
def test_the_child_process_dies(child_process, writer, written, a_run, monkeypatch, code, output):
    ended = subprocess.CompletedProcess([], code, b"", output)
    monkeypatch.setattr(submissions.subprocess, "run", lambda *_, **__: ended)
    answer = send(writer, "runs", "new", zipped(a_run))
    assert answer.status_code == 422
    assert "Oops" not in answer.text
    assert leftovers(written) == []


def test_uploads_in_progress_count_as_used_space(writer):
    writer.service.uploads.receiving = submissions.MAX_TOTAL + 1
    assert send(writer, "vectors", "a.txt", b"x").status_code == 507
    writer.service.uploads.receiving = submissions.MAX_TOTAL
    assert send(writer, "vectors", "a.txt", b"x").status_code == 201
    assert writer.service.uploads.receiving == submissions.MAX_TOTAL


def test_a_full_disk(writer, written, monkeypatch):
    def full(self, *args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "open", full)
    assert send(writer, "vectors", "a.txt", b"x").status_code == 507
    assert leftovers(written) == []


def test_lengths_and_encodings_of_bodies(writer, written):
    headers = {**BYTES, "content-length": "9" * 5000}
    answer = writer.post(f"{API}/vectors?name=a.txt", content=b"x", headers=headers)
    assert answer.status_code == 413
    headers = {**BYTES, "content-encoding": "gzip"}
    packed = gzip.compress(b"a 1 2\n")
    answer = writer.post(f"{API}/vectors?name=a.txt", content=packed, headers=headers)
    assert answer.status_code == 415
    assert leftovers(written) == []


def test_uploads_replace_nothing(writer, written, a_run):
    (written / "notes").mkdir()
    (written / "file").write_text("x")
    for name in ("notes", "file"):
        assert send(writer, "runs", name, zipped(a_run)).status_code == 409
    assert (written / "file").read_text() == "x"
    assert list((written / "notes").iterdir()) == []


@pytest.fixture
def web(defined, tools, monkeypatch):
    """A client with the token, of a server with definitions."""
    monkeypatch.setenv("KARAT_TOKEN", tools.token)
    options = {"token": tools.token, "queue": 2, "constraint": "small"}
    with tools.opened(defined / "runs", define=(defined / "my.yaml",), **options) as client:
        client.headers["authorization"] = f"Bearer {tools.token}"
        yield client


def start(web, **order):
    answer = web.post(f"{API}/evaluations", json=order)
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == f"{API}/evaluations/{answer.json()['id']}"
    return answer.headers["location"]


def status(web, location):
    return web.get(location).json()["status"]


def ended(web, location, tools):
    tools.wait_until(lambda: status(web, location) not in ("queued", "running"))
    return web.get(location).json()


def waiting(folder):
    return [int(path.name.partition("-")[2]) for path in folder.glob("waiting-*")]


# -- a whole evaluation ---------------------------------------------------------------------


def test_evaluate_an_uploaded_vector_file(web, tools, monkeypatch):
    """The vectors separate the two classes, so that every prediction is right.

    The folder is scanned before the first job and after the end, not in between.
    """
    monkeypatch.setattr(snapshots, "SCAN_INTERVAL", 1e9)
    vectors = "".join(f"{i} {-1.0 if i < 10 else 1.0} 1.0\n" for i in range(20)).encode()
    assert send(web, "vectors", "mine.txt", vectors).status_code == 201
    data = ended(web, start(web, suite="texts", models=["upload:mine.txt"]), tools)
    assert (data["status"], data["code"]) == ("finished", 0), data["output"]
    assert data["progress"] == {"done": 2, "running": [], "failed": 0, "left": 0}
    (row,) = tools.wait_until(lambda: web.get(f"{API}/board").json().get("items"))
    assert (row["model"], row["texts"], row["failed"]) == ("mine.txt", 1.0, 0)
    (run,) = web.get(f"{API}/runs").json()["items"]
    assert (run["constraint"], run["state"], run["ok"]) == ("small", "finished", 2)
    (model,) = tools.wait_until(lambda: web.get(f"{API}/bundle").json()["models"])
    assert model["model"] == "mine.txt"
    assert (data["models"], data["runs"]) == (["mine.txt"], [run["id"]])


def test_the_events_of_an_evaluation_end_with_it(web, tools):
    location = start(web, suite="halves", models=["dummy"])
    path, name = f"{API}/events", location.rpartition("/")[2]
    stream = web.get(path, params={"evaluation": name}).text  # until the server ends it
    *_, last, end, rest = stream.split("\n\n")
    fields = dict(line.split(": ", 1) for line in last.split("\n"))
    data = json.loads(fields["data"])
    assert (fields["event"], data["id"], data["status"]) == ("evaluation", name, "finished")
    assert data["progress"] == {"done": 2, "running": [], "failed": 0, "left": 0}
    assert (end, rest) == ("event: end\ndata: {}", "")
    # a browser that connects again is asked to stop
    known = {"last-event-id": fields["id"]}
    assert web.get(path, params={"evaluation": name}, headers=known).status_code == 204
    web.post(f"{location}/resume")
    again = web.get(path, params={"evaluation": name}, headers=known)
    assert (again.status_code, "event: end" in again.text) == (200, True)


def test_the_runs_of_an_order(written, tools):
    runs = {run.model: run for run in (ServedRun(p, written) for p in sorted(written.iterdir()))}
    order = Order(suite="mine")
    assert list(order.find_runs(runs, "default").values()) == [runs["a"], runs["b"]]
    for change in ({"suite": "other"}, {"seed": 1}, {"models": ["c"]}, {"tasks": ["halves"]}):
        assert order.model_copy(update=change).find_runs(runs, "default") == {}
    assert order.find_runs(runs, "served") == {}
    both = {"models": ["upload:a"], "tasks": ["halves", "thirds", "more"]}
    found = order.model_copy(update=both).find_runs(runs, "default")
    assert found == {runs["a"].id: runs["a"]}


def test_tasks_of_a_suite(web):
    data = web.get(f"{API}/tasks", params={"suite": "mine"}).json()
    assert (data["items"], data["models"]) == (["halves", "again"], ["onehot"])
    assert web.get(f"{API}/tasks", params={"suite": "texts"}).json()["items"] == ["texts"]
    refused = web.get(f"{API}/tasks", params={"suite": "min"})
    assert (refused.status_code, refused.json()["field"]) == (422, "suite")


def test_cancel_stops_all_processes_and_keeps_finished_jobs(web, defined, tools):
    location = start(web, suite="halves", models=["gate"])
    tools.wait_until(lambda: waiting(defined))
    assert status(web, location) == "running"
    progress = tools.wait_until(lambda: web.get(f"{API}/progress").json()["running"])
    assert progress == [{"model": "gate", "task": "halves", "fold": 1}]
    assert (defined / "seen.txt").read_text() == "no token"
    children = waiting(defined)
    assert web.post(f"{location}/cancel").status_code == 202
    data = ended(web, location, tools)
    assert (data["status"], data["code"]) == ("cancelled", 130), data["output"]
    tools.wait_until(lambda: not any(psutil.pid_exists(pid) for pid in children))
    assert "1 of 2 jobs" in data["output"]
    assert str(defined) not in data["output"]
    assert web.post(f"{location}/cancel").status_code == 409


def test_one_evaluation_runs_at_a_time_and_the_queue_is_bounded(web, defined, tools):
    first = start(web, suite="halves", models=["gate"])
    tools.wait_until(lambda: status(web, first) == "running")
    second, third = start(web, suite="halves"), start(web, suite="again")
    assert [web.get(location).json()["position"] for location in (second, third)] == [1, 2]
    full = web.post(f"{API}/evaluations", json={"suite": "halves"})
    assert (full.status_code, full.headers["retry-after"]) == (429, "60")
    assert web.post(f"{second}/resume").status_code == 409
    assert web.post(f"{second}/cancel").json()["status"] == "cancelled"
    assert web.get(third).json()["position"] == 1
    assert status(web, first) == "running"
    listed = web.get(f"{API}/evaluations").json()["items"]
    assert [each["status"] for each in listed] == ["queued", "cancelled", "running"]
    web.post(f"{third}/cancel")
    web.post(f"{first}/cancel")
    assert ended(web, first, tools)["status"] == "cancelled"


def test_an_error_of_karat_run_is_shown(web, tools, monkeypatch):
    monkeypatch.setattr(submissions, "run_arguments", lambda *_: ["run", "--nonsense"])
    data = ended(web, start(web, suite="halves", models=["dummy"]), tools)
    assert (data["status"], data["code"]) == ("failed", 2)
    assert "there is no option --nonsense." in data["output"]


# -- what can be evaluated -------------------------------------------------------------------

MODELS = "gates:Gate os:system vectors.txt /etc/passwd ../halves.csv x=onehot x=/etc/passwd"
MODELS += " sentence-transformers:all-MiniLM-L6-v2 vectors --define=/etc/passwd -h onehott *"
FILES = ("none.txt", "../../halves.csv", "", "/etc/passwd")
SUITES = ("halves.csv", "openml/s/271", "../my.yaml", "mines", "--help", "*")
INVALID = [{"models": models} for models in ("onehot", ["onehot"] * 51)]
INVALID += [{"folds": [fold]} for fold in ("0", -1, True)] + [{"tasks": [""]}, {"seed": 2**40}]
INVALID += [{"constraint": "endless"}, {"output": "/tmp"}, {"suite": ""}, {"suite": 5}]


@pytest.mark.parametrize(
    ("order", "status"),
    [({"suite": "mine", "models": [model]}, 422) for model in MODELS.split()]
    + [({"suite": "mine", "models": [f"upload:{name}"]}, 404) for name in FILES]
    + [({"suite": suite}, 422) for suite in SUITES]
    + [({"suite": "mine", "tasks": [task]}, 422) for task in ("adult", "*", "hal*")]
    + [({"suite": "mine", **more}, 400) for more in INVALID]
    + [(order, 400) for order in ({}, [], "mine", {"suite": "x" * 201})],
    ids=str,
)
def test_only_defined_names_and_uploads_are_evaluated(web, order, status):
    answer = web.post(f"{API}/evaluations", json=order)
    assert (answer.status_code, bool(answer.json()["error"])) == (status, True)
    if isinstance(order, dict) and "suite" in order:
        # the field that is wrong: the last one given
        assert answer.json()["field"] == list(order)[-1]
    assert web.get(f"{API}/evaluations").json()["total"] == 0


def test_an_upload_that_is_a_link_is_not_read(web, defined):
    vectors = defined / "runs" / ".uploads" / "vectors"
    vectors.mkdir(parents=True)
    (vectors / "a.txt").symlink_to("/etc/passwd")
    answer = web.post(f"{API}/evaluations", json={"suite": "mine", "models": ["upload:a.txt"]})
    assert answer.status_code == 404
    assert web.get(f"{API}/vectors").json()["total"] == 0


def test_invalid_or_large_json(web):
    sent = {"content-type": "application/json"}
    for content in (b"null", b"{", b"\xff", b"[" * 60_000):
        assert web.post(f"{API}/evaluations", content=content, headers=sent).status_code == 400
    large = web.post(f"{API}/evaluations", content=b" " * 70_000, headers=sent)
    assert large.status_code == 413
    other = {"content-type": "application/xml"}
    assert web.post(f"{API}/evaluations", content=b"{}", headers=other).status_code == 415
    twice = {"suite": "mine", "models": ["onehot", "onehot"]}
    assert web.post(f"{API}/evaluations", json=twice).status_code == 422


def test_names(web):
    data = web.get(f"{API}/names").json()
    assert {"mine", "quickstart"} <= set(data["suites"])
    assert {"onehot", "gate"} <= set(data["models"])
    assert "vectors" not in data["models"]  # a pattern


def test_arguments_of_karat_run(tmp_path):
    settings = ServerSettings(tmp_path, constraint="small", define=(Path("my.yaml"),), workers=2)
    uploads = Uploads(settings)
    uploads.vectors.mkdir(parents=True)
    (uploads.vectors / "a.txt").touch()
    order = Order(
        suite="mine", models=["onehot", "upload:a.txt"], tasks=["halves"], folds=[0, 1], seed=7
    )
    assert run_arguments(order, settings, uploads) == [
        "run",
        f"--output={tmp_path}",
        "--constraint=small",
        "--workers=2",
        "--seed=7",
        "--resume",
        "--retry-failed",
        "--quiet",
        f"--define={Path.cwd() / 'my.yaml'}",
        "--model=onehot",
        f"--model=a.txt={uploads.vectors / 'a.txt'}",
        "--task=halves",
        "--only-fold=0",
        "--only-fold=1",
        "--",
        "mine",
    ]


def test_a_constraint_without_limits_is_refused(defined):
    for name in ("endless", "default"):
        settings = ServerSettings(defined, constraint=name, define=(defined / "my.yaml",))
        with pytest.raises(Exception, match="no max_runtime_seconds and no max_mem_size_mb"):
            DefinedNames(settings).check_constraint()
    DefinedNames(ServerSettings(defined)).check_constraint()


# -- after the server ends ------------------------------------------------------------------


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """A queue whose thread does not work."""
    monkeypatch.setattr(Evaluations, "_work", lambda self: None)
    settings = ServerSettings(tmp_path, queue=1000)
    return Evaluations(settings, Uploads(settings))


def test_evaluations_of_an_earlier_server_can_be_resumed(queue, tmp_path):
    queue.start()
    made = queue.submit(Order(suite="mine", models=["onehot"]))
    queue.stop()
    later = Evaluations(queue.settings, queue.uploads)
    later.start()
    assert later.get(made.id).status == "stopped"
    assert later.get(made.id).order == Order(suite="mine", models=["onehot"])
    assert later.resume(made.id).status == "queued"


def test_children_of_a_killed_server_are_stopped(queue):
    """A reused process id and the child of a running server are not."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    killed, alive = [2**22 + 5, 1.0], submissions._process(os.getpid())
    children = {"left": (killed, submissions._process(child.pid)), "other": (alive, [])}
    children["reused"] = (killed, [os.getpid(), 1.0])
    for name, (owner, process) in children.items():
        facts = {"order": Order(suite="mine"), "status": "running", "child": process}
        queue._write(Evaluation(id=name, owner=owner, **facts))
    (queue.folder / "damaged.json").write_text("{")
    (queue.folder / "incomplete.json").write_text(json.dumps({"id": "b"}))
    queue.start()
    states = {each.id: each.status for each in queue.all()}
    assert states == {"left": "stopped", "other": "running", "reused": "stopped"}
    child.wait()


def test_old_evaluations_are_forgotten(queue, monkeypatch):
    monkeypatch.setattr(submissions, "MAX_REMEMBERED", 3)
    queue.start()
    made = [queue.submit(Order(suite="mine")) for _ in range(5)]
    for each in made:
        queue.cancel(each.id)
    queue.submit(Order(suite="mine"))
    assert len(queue.all()) == 3
    assert len(list(queue.folder.glob("*.json"))) == 3
    with pytest.raises(ApiError, match="no evaluation"):
        queue.get(made[0].id)


def test_a_child_that_ignores_sigterm_is_killed(monkeypatch):
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True)"
    command = [sys.executable, "-c", f"{code}; time.sleep(600)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as child:
        child.stdout.readline()
        monkeypatch.setattr(submissions, "STOP_GRACE", 0.3)
        submissions._end_process(child)
        assert child.returncode == -9
