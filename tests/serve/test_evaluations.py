"""Evaluations over the web: what may be asked for, the queue, the limits, the end."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from karat.serve import evaluations
from karat.serve.evaluations import Evaluation, Evaluations
from karat.serve.orders import Names, Order, command
from karat.serve.replies import Refused
from karat.serve.settings import Settings
from karat.serve.uploads import Uploads

API = "/api/v1"


@pytest.fixture
def web(defined, tools, monkeypatch):
    """A client with the token, of a server that knows the definitions."""
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


def status(web, place):
    return web.get(place).json()["status"]


def ended(web, place, tools):
    tools.wait_until(lambda: status(web, place) not in ("queued", "running"), 60)
    return web.get(place).json()


def waiting(folder):
    return [int(path.name.partition("-")[2]) for path in folder.glob("waiting-*")]


# -- a whole evaluation ---------------------------------------------------------------------


def test_an_uploaded_vector_file_is_evaluated_and_stands_on_the_board(web, tools):
    """The vectors tell the two classes apart, so that every answer is right."""
    vectors = "".join(f"{i} {-1.0 if i < 10 else 1.0} 1.0\n" for i in range(20)).encode()
    sent = {"content": vectors, "headers": {"content-type": "application/octet-stream"}}
    assert web.post(f"{API}/vectors?name=mine.txt", **sent).status_code == 201
    told = ended(web, start(web, suite="texts", models=["upload:mine.txt"]), tools)
    assert (told["status"], told["code"]) == ("finished", 0), told["said"]
    (row,) = tools.wait_until(lambda: web.get(f"{API}/board").json().get("items"))
    assert (row["model"], row["texts"], row["failed"]) == ("mine.txt", 1.0, 0)
    (run,) = web.get(f"{API}/runs").json()["items"]
    assert (run["constraint"], run["state"], run["ok"]) == ("small", "finished", 2)
    (model,) = tools.wait_until(lambda: web.get(f"{API}/bundle").json()["models"])
    assert model["model"] == "mine.txt"


def test_cancel_ends_all_processes_and_keeps_what_is_done(web, defined, tools):
    place = start(web, suite="halves", models=["gate"])
    tools.wait_until(lambda: waiting(defined))
    assert status(web, place) == "running"
    progress = tools.wait_until(lambda: web.get(f"{API}/progress").json()["running"])
    assert progress == [{"model": "gate", "task": "halves", "fold": 1}]
    assert (defined / "seen.txt").read_text() == "no token"
    children = waiting(defined)
    assert web.post(f"{place}/cancel").status_code == 202
    told = ended(web, place, tools)
    assert (told["status"], told["code"]) == ("cancelled", 130), told["said"]
    tools.wait_until(lambda: not any(psutil.pid_exists(pid) for pid in children), 10)
    assert "1 of 2 jobs are kept" in told["said"]
    assert str(defined) not in told["said"]
    assert web.post(f"{place}/cancel").status_code == 409


def test_one_at_a_time_and_only_so_many_wait(web, defined, tools):
    first = start(web, suite="halves", models=["gate"])
    tools.wait_until(lambda: status(web, first) == "running")
    second, third = start(web, suite="halves"), start(web, suite="again")
    assert [web.get(place).json()["position"] for place in (second, third)] == [1, 2]
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


def test_a_mistake_that_only_the_run_sees_is_told(web, tools, monkeypatch):
    monkeypatch.setattr(evaluations, "command", lambda *_: ["run", "--nonsense"])
    told = ended(web, start(web, suite="halves", models=["dummy"]), tools)
    assert (told["status"], told["code"]) == ("failed", 2)
    assert "No such option '--nonsense'" in told["said"]


# -- what may be asked for ------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        "gates:Gate",
        "os:system",
        "vectors.txt",
        "/etc/passwd",
        "../halves.csv",
        "sentence-transformers:all-MiniLM-L6-v2",
        "x=onehot",
        "x=/etc/passwd",
        "vectors",
        "--define=/etc/passwd",
        "-h",
        "onehott",
        "*",
    ],
)
def test_only_defined_models_are_run(web, model):
    answer = web.post(f"{API}/evaluations", json={"suite": "mine", "models": [model]})
    assert answer.status_code == 422
    assert web.get(f"{API}/evaluations").json()["total"] == 0


@pytest.mark.parametrize(
    "model", ["upload:none.txt", "upload:../../halves.csv", "upload:", "upload:/etc/passwd"]
)
def test_only_uploaded_files_are_read(web, model):
    answer = web.post(f"{API}/evaluations", json={"suite": "mine", "models": [model]})
    assert answer.status_code == 404


def test_an_upload_that_is_a_link_is_not_read(web, defined):
    vectors = defined / "runs" / ".uploads" / "vectors"
    vectors.mkdir(parents=True)
    (vectors / "a.txt").symlink_to("/etc/passwd")
    answer = web.post(f"{API}/evaluations", json={"suite": "mine", "models": ["upload:a.txt"]})
    assert answer.status_code == 404
    assert web.get(f"{API}/vectors").json()["total"] == 0


@pytest.mark.parametrize(
    "suite", ["halves.csv", "openml/s/271", "../my.yaml", "mines", "--help", "*"]
)
def test_only_defined_suites_are_run(web, suite):
    assert web.post(f"{API}/evaluations", json={"suite": suite}).status_code == 422


@pytest.mark.parametrize("task", ["adult", "*", "hal*", ""])
def test_only_tasks_of_the_suite_are_run(web, task):
    answer = web.post(f"{API}/evaluations", json={"suite": "mine", "tasks": [task]})
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        "mine",
        {"suite": ""},
        {"suite": 5},
        {"suite": "mine", "models": "onehot"},
        {"suite": "mine", "models": ["onehot"] * 51},
        {"suite": "mine", "folds": ["0"]},
        {"suite": "mine", "folds": [-1]},
        {"suite": "mine", "folds": [True]},
        {"suite": "mine", "seed": 2**40},
        {"suite": "mine", "constraint": "endless"},
        {"suite": "mine", "output": "/tmp"},
        {"suite": "x" * 201},
    ],
)
def test_what_is_no_order_is_refused(web, body):
    answer = web.post(f"{API}/evaluations", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_what_is_no_json_or_too_much_of_it_is_refused(web):
    sent = {"content-type": "application/json"}
    for content, code in (
        (b"null", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b"[" * 60_000, 400),
        (b" " * 70_000, 413),
    ):
        assert web.post(f"{API}/evaluations", content=content, headers=sent).status_code == code
    other = {"content-type": "application/xml"}
    assert web.post(f"{API}/evaluations", content=b"{}", headers=other).status_code == 415
    twice = {"suite": "mine", "models": ["onehot", "onehot"]}
    assert web.post(f"{API}/evaluations", json=twice).status_code == 422


def test_names_lists_what_can_be_asked_for(web):
    told = web.get(f"{API}/names").json()
    assert {"mine", "quickstart"} <= set(told["suites"])
    assert {"onehot", "gate"} <= set(told["models"])
    assert "vectors" not in told["models"]  # a pattern


def test_the_words_of_the_child_are_options_with_their_values(tmp_path):
    settings = Settings(tmp_path, constraint="small", define=(Path("my.yaml"),), workers=2)
    uploads = Uploads(settings)
    uploads.vectors.mkdir(parents=True)
    (uploads.vectors / "a.txt").touch()
    order = Order("mine", ["onehot", "upload:a.txt"], ["halves"], [0, 1], 7)
    assert command(order, settings, uploads) == [
        *("run", f"--output={tmp_path}", "--constraint=small", "--workers=2", "--seed=7"),
        *("--resume", "--retry-failed", "--quiet", f"--define={Path.cwd() / 'my.yaml'}"),
        *("--model=onehot", f"--model=a.txt={uploads.vectors / 'a.txt'}", "--task=halves"),
        *("--fold=0", "--fold=1", "--", "mine"),
    ]


def test_a_constraint_without_limits_is_refused(defined):
    for name in ("endless", "default"):
        settings = Settings(defined, constraint=name, define=(defined / "my.yaml",))
        with pytest.raises(Exception, match="no max_runtime_seconds and no max_mem_size_mb"):
            Names(settings).check_constraint()
    Names(Settings(defined)).check_constraint()


# -- what outlives a server -----------------------------------------------------------------


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """A queue whose thread does not work."""
    monkeypatch.setattr(Evaluations, "_work", lambda self: None)
    settings = Settings(tmp_path, queue=1000)
    return Evaluations(settings, Uploads(settings))


def test_what_a_server_leaves_is_remembered_and_can_be_resumed(queue, tmp_path):
    queue.start()
    made = queue.submit(Order("mine", ["onehot"]))
    queue.stop()
    later = Evaluations(queue.settings, queue.uploads)
    later.start()
    assert later.get(made.id).status == "stopped"
    assert later.get(made.id).order == Order("mine", ["onehot"])
    assert later.resume(made.id).status == "queued"


def test_a_child_that_a_killed_server_left_is_ended(queue):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    left = Evaluation("20260101T000000-x", Order("mine"), "running")
    left.owner, left.child = [2**22 + 5, 1.0], evaluations._birth(child.pid)
    queue._write(left)
    other = Evaluation("20260101T000001-y", Order("mine"), "running")
    other.owner = evaluations._birth(os.getpid())  # of a server that still lives
    queue._write(other)
    queue.start()
    assert queue.get(left.id).status == "stopped"
    assert evaluations._birth(child.pid) == []
    child.wait()
    assert queue.get(other.id).status == "running"


def test_a_number_that_was_given_to_another_process_is_not_ended(queue):
    left = Evaluation("20260101T000000-x", Order("mine"), "running")
    left.owner, left.child = [2**22 + 5, 1.0], [os.getpid(), 1.0]
    queue._write(left)
    queue.start()
    assert queue.get(left.id).status == "stopped"


def test_old_evaluations_are_forgotten(queue, monkeypatch):
    monkeypatch.setattr(evaluations, "REMEMBERED", 3)
    queue.start()
    made = [queue.submit(Order("mine")) for _ in range(5)]
    for each in made:
        queue.cancel(each.id)
    queue.submit(Order("mine"))
    assert len(queue.all()) == 3
    assert len(list(queue.folder.glob("*.json"))) == 3
    with pytest.raises(Refused, match="no evaluation"):
        queue.get(made[0].id)


def test_a_damaged_note_is_passed_over(queue):
    queue.folder.mkdir(parents=True)
    (queue.folder / "a.json").write_text("{")
    (queue.folder / "b.json").write_text(json.dumps({"id": "b"}))
    queue.start()
    assert queue.all() == []


def test_a_child_that_does_not_end_by_itself_is_ended(monkeypatch):
    code = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print(1, flush=True); time.sleep(60)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True
    )
    assert child.stdout.readline() == b"1\n"
    monkeypatch.setattr(evaluations, "GRACE", 0.3)
    begun = time.monotonic()
    evaluations._end_process(child)
    assert child.returncode == -9
    assert time.monotonic() - begun < 5
    child.stdout.close()
