import os

from karat.report import origin
from karat.report.bundle import make_bundle


def test_provenance_and_job_counts_of_a_run(make_run):
    about = {"command": ["karat", "run", "my suite"], "python": "3.11.7", "platform": "Linux"}
    run = make_run("m", {"t": [0.5, "broke"]}, **about, versions={"numpy": "2.0"})
    (found,) = make_bundle(run)["runs"]
    assert found == {
        "model": 0,
        "folder": run.folder.name,
        "command": "karat run 'my suite'",
        "seed": 42,
        "versions": {"karat": "0.1.0", "python": "3.11.7", "model": "1.0", "numpy": "2.0"},
        "platform": "Linux",
        "jobs": 2,
        "ok": 1,
        "failed": 1,
    }


def test_missing_provenance_is_empty(make_run):
    run = make_run("m", {"t": [0.5]}, versions="unknown")
    (found,) = make_bundle(run)["runs"]
    assert (found["command"], found["platform"]) == (None, None)
    assert found["versions"] == {"karat": "0.1.0", "model": "1.0"}
    assert make_bundle(run)["models"][0]["command"] is None


def test_a_failure_comes_with_the_end_of_its_log(make_run):
    log = "start\n" + "x" * 5000 + "\nKeyError: 'ü'\n"
    kept = {("t", 1): {"log.txt": log}}
    run = make_run("m", {"t": [0.5, "KeyError: 'ü'"]}, files=kept)
    (found,) = make_bundle(run)["failures"]
    assert found.pop("log") == log[-4000:]
    assert found == {
        **{"model": 0, "task": 0, "fold": 1, "status": "failed", "info": "KeyError: 'ü'"}
    }


def test_unreadable_logs_do_not_prevent_the_page(make_run):
    run = make_run("m", {"t": [0.5, "a", "b", "c"]})
    logs = run.folder / "logs" / "t"
    logs.mkdir(parents=True)
    (logs / "1.txt").write_bytes(b"\xff\x00ok")
    (logs / "2.txt").mkdir()
    found = make_bundle(run)
    assert [each["log"] for each in found["failures"]] == ["\ufffd\x00ok", "", ""]
    (note,) = found["cut"]
    assert note.startswith("m on t, fold 2")


def test_many_logs_share_the_room_and_many_failures_are_counted(make_run, monkeypatch):
    kept = {("t", fold): {"log.txt": "l" * 500} for fold in range(1, 6)}
    run = make_run("m", {"t": [0.5, *["broke"] * 5]}, files=kept)
    monkeypatch.setattr(origin, "LOGS", 400)
    monkeypatch.setattr(origin, "MAX_FAILURES", 4)
    found = make_bundle(run)
    assert [len(each["log"]) for each in found["failures"]] == [100] * 4
    more, logs = found["cut"]
    assert "1 failed job" in more and "100" in logs
    assert found["runs"][0]["failed"] == 5


def test_folder_names_have_no_path(make_run, tmp_path):
    run = make_run("m", {"t": [0.5]})
    before = os.getcwd()
    try:
        os.chdir(run.folder)
        found = make_bundle(".")
    finally:
        os.chdir(before)
    assert found == make_bundle(run)
    assert str(tmp_path) not in str(found)
