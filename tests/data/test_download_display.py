"""What is shown of a download, from a web server on this machine."""

from __future__ import annotations

import hashlib
import io
import logging
import sys

import pytest

from karat.data import download_display
from karat.data.download_display import shown_downloads
from karat.data.http_download import download

CONTENT = bytes(range(256)) * 2_000


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_nothing_is_shown_unless_asked_for(stub, tmp_path, capfd):
    download(stub.put("/a", stub.body(CONTENT)), tmp_path / "a", sha256(CONTENT))
    assert capfd.readouterr() == ("", "")


def test_a_log_gets_one_line_per_download(stub, tmp_path, capfd):
    url = stub.put("/a", stub.body(CONTENT))
    with shown_downloads():
        download(url, tmp_path / "a", sha256(CONTENT), name="prices")
        download(url, tmp_path / "b", sha256(CONTENT))
    out, err = capfd.readouterr()
    assert out == ""
    assert err.splitlines() == ["downloading prices (0.5 MB)", "downloading b (0.5 MB)"]


def test_a_long_download_reports_its_share(stub, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(download_display, "PAUSE", 0.0)
    with shown_downloads():
        download(stub.put("/a", stub.body(CONTENT)), tmp_path / "a", sha256(CONTENT))
    lines = capfd.readouterr().err.splitlines()
    assert lines[-1] == "downloading a: 0.5 of 0.5 MB (100 %)"
    assert len(lines) > 2


def test_a_broken_connection_is_the_same_download(stub, tmp_path, capfd):
    url = stub.put("/a", stub.ranged(CONTENT, upto=300_000), stub.ranged(CONTENT))
    with shown_downloads():
        download(url, tmp_path / "a", sha256(CONTENT))
    assert capfd.readouterr().err.splitlines() == ["downloading a (0.5 MB)"]
    assert (tmp_path / "a").read_bytes() == CONTENT


def test_a_terminal_gets_one_line_with_a_bar(stub, tmp_path, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "100")
    with shown_downloads():
        download(stub.put("/a", stub.body(CONTENT)), tmp_path / "a", sha256(CONTENT), name="prices")
    shown = terminal.getvalue()
    assert shown.count("\n") == 1
    last = shown.rstrip().rpartition("\r")[2]
    assert "downloading prices" in last and "100%" in last and "512.0/512.0 kB" in last


@pytest.mark.parametrize("quiet", [False, True])
def test_run_shows_downloads_and_no_log_of_libraries(stub, tmp_path, python, quiet):
    table = "x,y\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(40))
    url = stub.put("/t.csv", stub.body(table.encode()))
    (tmp_path / "my.yaml").write_text(
        "datasets:\n  t:\n    target: y\n    sources:\n"
        f"      - {{url: '{url}', sha256: {sha256(table.encode())}}}\n"
        "tasks: {t: {dataset: t, metrics: [acc]}}\nsuites: {s: {tasks: [t]}}\n"
    )
    (tmp_path / "noisy.py").write_text(NOISY)
    options = ["-q"] if quiet else []
    words = ["s", "--define", "my.yaml", "--define", "noisy.py", "-m", "dummy", "-w", "0"]
    environment = {"KARAT_CACHE": str(tmp_path / "empty")}
    done = python("-m", "karat", "run", *words, *options, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("downloading t (") == (0 if quiet else 1)
    assert "Downloading data from" not in done.stderr
    assert "of a library" not in done.stderr
    assert "note: of the user" in done.stderr


#: as a library that is imported while a command runs
NOISY = """
import logging
import warnings

logging.getLogger("some_library").warning("of a library: a log line")
warnings.warn("of a library: it will change", FutureWarning, stacklevel=1)
warnings.warn("of the user", stacklevel=1)
"""


def test_the_logger_of_the_library_is_silent(stub, tmp_path, capfd):
    import pooch

    download(stub.put("/a", stub.body(CONTENT)), tmp_path / "a")
    assert pooch.get_logger().level == logging.WARNING
    assert capfd.readouterr().err == ""
