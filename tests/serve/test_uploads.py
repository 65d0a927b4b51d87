"""Uploads: whole or not at all, never larger than allowed, never outside their place."""

import gzip
import hashlib
import io
import json
import tarfile
import zipfile

import pytest

from karat.results.run import Run
from karat.serve import uploads

API = "/api/v1"
BYTES = {"content-type": "application/octet-stream"}


def send(owner, what, name, content):
    return owner.post(f"{API}/{what}", params={"name": name}, content=content, headers=BYTES)


def leftovers(folder):
    return list((folder / ".uploads" / "drafts").glob("*"))


@pytest.fixture
def a_run(tmp_path, tools):
    return tools.write_run(tmp_path / "elsewhere", "uploaded", {"halves": [1.0, 1.0, 1.0]}).folder


def zipped(folder, top="run/"):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, f"{top}{path.relative_to(folder)}")
    return made.getvalue()


def tarred(folder, mode="w:gz"):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:
        archive.add(folder, "run")
    return made.getvalue()


# -- vector files ---------------------------------------------------------------------------


def test_a_vector_file_is_kept_listed_and_forgotten(owner, written):
    content = b"a 1 2\nb 3 4\n"
    answer = send(owner, "vectors", "mine.txt", content)
    digest = hashlib.sha256(content).hexdigest()
    told = {"name": "mine.txt", "bytes": 12, "sha256": digest, "model": "upload:mine.txt"}
    assert (answer.status_code, answer.json()) == (201, told)
    assert (written / ".uploads" / "vectors" / "mine.txt").read_bytes() == content
    assert [each["name"] for each in owner.get(f"{API}/vectors").json()["items"]] == ["mine.txt"]
    assert send(owner, "vectors", "mine.txt", b"c 5 6\n").status_code == 409
    assert (written / ".uploads" / "vectors" / "mine.txt").read_bytes() == content
    assert owner.delete(f"{API}/vectors/mine.txt").json() == {"removed": "mine.txt"}
    assert owner.delete(f"{API}/vectors/mine.txt").status_code == 404
    assert leftovers(written) == []


@pytest.mark.parametrize("name", ["a.txt.gz", "b.npz", "c.VEC", "d.h5", "e.txt.zst"])
def test_endings_of_vector_files(owner, name):
    assert send(owner, "vectors", name, b"x").status_code == 201


@pytest.mark.parametrize("name", ["a.py", "a", "a.pkl", "a.txt.py", "a.html", "a.tar.gz", "b.so"])
def test_what_is_no_vector_file_is_not_taken(owner, written, name):
    assert send(owner, "vectors", name, b"x").status_code == 400
    assert leftovers(written) == []


def test_too_large_a_body_is_refused_by_what_it_says_and_by_what_it_is(owner, written):
    assert send(owner, "vectors", "a.txt", b"x" * 200_001).status_code == 413
    answer = send(owner, "vectors", "a.txt", (b"x" * 50_000 for _ in range(5)))
    assert answer.status_code == 413
    assert "0 MB" in answer.json()["hint"]
    assert leftovers(written) == []
    assert send(owner, "vectors", "a.txt", (b"x" * 50_000 for _ in range(4))).status_code == 201


def test_an_empty_body_and_one_without_a_type(owner, written):
    assert send(owner, "vectors", "a.txt", b"").status_code == 400
    assert owner.post(f"{API}/vectors?name=a.txt", content=b"x").status_code == 415
    assert leftovers(written) == []


def test_all_uploads_together_have_a_limit(owner, monkeypatch):
    monkeypatch.setattr(uploads, "TOGETHER", 1)
    assert send(owner, "vectors", "a.txt", b"x" * 150_000).status_code == 201
    assert send(owner, "vectors", "b.txt", b"x" * 150_000).status_code == 201
    assert send(owner, "vectors", "c.txt", b"x").status_code == 507
    owner.delete(f"{API}/vectors/a.txt")
    assert send(owner, "vectors", "c.txt", b"x").status_code == 201


def test_a_body_that_comes_too_slowly_is_given_up(owner, written, monkeypatch):
    monkeypatch.setattr(uploads, "GRACE", 0.0)
    monkeypatch.setattr(uploads.time, "monotonic", iter(range(0, 1000, 10)).__next__)
    answer = send(owner, "vectors", "a.txt", (b"x" for _ in range(5)))
    assert answer.status_code == 408
    assert leftovers(written) == []


def test_drafts_that_nobody_works_on_are_removed(written, tools, monkeypatch):
    drafts = written / ".uploads" / "drafts"
    (drafts / "1-a.folder").mkdir(parents=True)
    (drafts / "1-a").write_text("x")
    with tools.opened(written, token=tools.token):
        assert len(leftovers(written)) == 2
    monkeypatch.setattr(uploads, "FORGOTTEN", -1.0)
    with tools.opened(written, token=tools.token):
        assert leftovers(written) == []


# -- run folders ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "packed",
    [
        zipped,
        lambda run: zipped(run, ""),
        tarred,
        lambda run: tarred(run, "w"),
    ],
    ids=["zip", "flat zip", "tar.gz", "tar"],
)
def test_a_run_folder_stands_beside_the_others(owner, written, a_run, packed):
    answer = send(owner, "runs", "new.run", packed(a_run))
    assert (answer.status_code, answer.json()) == (201, {"id": "new.run"})
    assert answer.headers["location"] == f"{API}/runs/new.run"
    assert owner.get(answer.headers["location"]).json()["model"] == "uploaded"
    board = owner.get(f"{API}/board").json()["items"]
    assert {row["model"] for row in board} == {"a", "b", "uploaded"}
    assert leftovers(written) == []
    assert send(owner, "runs", "new.run", packed(a_run)).status_code == 409


def test_only_tables_records_and_logs_are_taken(owner, written, a_run):
    (a_run / "models").mkdir()
    (a_run / "models" / "m.pkl").write_bytes(b"cos\nsystem\n")
    (a_run / "evil.py").write_text("1/0")
    (a_run / "page.html").write_text("<script>")
    assert send(owner, "runs", "new", zipped(a_run)).status_code == 201
    left = {path.relative_to(written / "new") for path in (written / "new").rglob("*.*")}
    assert {str(path.parent) for path in left} == {".", "jobs", "scores"}
    assert {path.suffix for path in left} == {".json", ".csv"}


def test_tables_are_made_of_the_records_and_not_taken(owner, written, a_run):
    (a_run / "scores").mkdir()
    (a_run / "scores" / "scores.csv").write_text("task,value\nnonsense,1\n")
    (a_run / "scores" / "other.csv").write_text("x\n")
    assert send(owner, "runs", "new", zipped(a_run)).status_code == 201
    scores = Run(written / "new").scores()
    assert scores["value"].tolist() == [1.0, 1.0, 1.0]
    assert not (written / "new" / "scores" / "other.csv").exists()
    assert owner.get("/").status_code == 200


def archive(*entries):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in entries:
            out.writestr(name, content)
    return made.getvalue()


def with_link(a_run, target, kind):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as out:
        out.add(a_run, "run")
        link = tarfile.TarInfo("run/logs.txt")
        link.type, link.linkname = kind, target
        out.addfile(link)
    return made.getvalue()


def test_archives_that_lead_out_are_not_unpacked(owner, written, a_run, tmp_path):
    whole = [(str(p.relative_to(a_run)), p.read_bytes()) for p in a_run.rglob("*.json")]
    for name in (
        "../evil.json",
        "/tmp/evil.json",
        "a/../../evil.json",
        "C:/evil.json",
        "..\\e.json",
    ):
        answer = send(owner, "runs", "new", archive(*whole, (name, b"{}")))
        assert answer.status_code == 422
        assert "leads outside" in answer.json()["error"]
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
        answer = send(owner, "runs", "new", with_link(a_run, "/etc/passwd", kind))
        assert "is a link" in answer.json()["error"]
    assert not (written / "new").exists()
    assert not list(tmp_path.rglob("evil.json"))
    assert leftovers(written) == []
    assert str(tmp_path) not in answer.text


def test_what_swells_is_not_unpacked(owner, written, a_run, monkeypatch):
    monkeypatch.setattr(uploads, "MOST_FILES", 50)
    whole = [(str(p.relative_to(a_run)), p.read_bytes()) for p in a_run.rglob("*.json")]
    bomb = archive(*whole, ("big.csv", b"0" * 1_700_000))
    assert len(bomb) < 20_000
    assert "larger than" in send(owner, "runs", "new", bomb).json()["error"]
    packed = gzip.compress(b"0" * 40_000_000)
    assert "when it is unpacked" in send(owner, "runs", "new", packed).json()["error"]
    many = archive(*whole, *((f"{i}.txt", b"") for i in range(60)))
    assert "files" in send(owner, "runs", "new", many).json()["error"]
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
def test_what_is_no_run_folder_is_not_taken(owner, written, content):
    answer = send(owner, "runs", "new", content)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("not taken: ")
    assert not (written / "new").exists()
    assert leftovers(written) == []


def test_a_run_without_jobs_or_with_wrong_ones_is_not_taken(owner, a_run, tools):
    about = (a_run / "run.json").read_bytes()
    assert (
        "no finished job" in send(owner, "runs", "n", archive(("run.json", about))).json()["error"]
    )
    wrong = tools.record("uploaded", "halves", 0, 1.0) | {"views": [{"scores": {"acc": "x"}}]}
    body = archive(("run.json", about), ("jobs/halves.0.json", json.dumps(wrong)))
    assert "the record of halves: views.0" in send(owner, "runs", "n", body).json()["error"]


def test_no_upload_takes_the_place_of_anything(owner, written, a_run):
    (written / "notes").mkdir()
    (written / "file").write_text("x")
    for name in ("notes", "file"):
        assert send(owner, "runs", name, zipped(a_run)).status_code == 409
    assert (written / "file").read_text() == "x"
    assert list((written / "notes").iterdir()) == []
