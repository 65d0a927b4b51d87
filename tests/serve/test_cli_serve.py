"""``karat serve``: what it says, how it ends, and what is left then."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from karat.results.run import Run


def started(folder, *options, **environment):
    command = [sys.executable, "-m", "karat", "serve", str(folder), "--port", "0", *options]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    line = process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+/", line)
    assert found, process.communicate()
    return process, found[0]


def ask(address, path, body=None, token=""):
    headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{address}api/v1{path}", data, headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.loads(answer.read())


def test_ctrl_c_ends_it_in_good_order(written):
    process, address = started(written)
    assert ask(address, "/progress")["done"] == 12
    line = socket.create_connection((address.split(":")[1][2:], int(address.split(":")[2][:-1])))
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=20)
    line.close()
    assert process.returncode == 130
    assert said == ("", "")


def test_a_running_evaluation_is_stopped_and_resumed_by_the_next_server(defined, tools):
    options = ("--define", "my.yaml", "-c", "small")
    process, address = started(defined / "runs", *options, KARAT_TOKEN=tools.token)
    try:
        order = {"suite": "halves", "models": ["gate"]}
        place = f"/evaluations/{ask(address, '/evaluations', order, tools.token)['id']}"
        tools.wait_until(lambda: list(defined.glob("waiting-*")))
    finally:
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=30)
    assert process.returncode == 0, said
    (run,) = (Run(path.parent) for path in (defined / "runs").glob("*/run.json"))
    assert [(r["task"], r["fold"]) for r in run.records()] == [("halves", 0)]
    assert run.running_jobs() == []
    (defined / "open").touch()
    given = {"token": tools.token, "constraint": "small", "define": (defined / "my.yaml",)}
    with tools.opened(defined / "runs", **given) as client:
        assert client.get(f"/api/v1{place}").json()["status"] == "stopped"
        token = {"authorization": f"Bearer {tools.token}"}
        assert client.post(f"/api/v1{place}/resume", headers=token).status_code == 202
        tools.wait_until(lambda: client.get(f"/api/v1{place}").json()["status"] == "finished")
    assert [r["fold"] for r in run.records()] == [0, 1]


def test_a_port_that_is_taken_is_one_message(written, cli):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = cli("serve", written, "--port", port)
    assert said.code == 2
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert f"port {port} of 127.0.0.1 is taken; choose another with --port" in said.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "no.such.host.invalid"], 'there is no address "no.such.host.invalid"'),
        (["--host", "192.0.2.1"], "cannot listen at 192.0.2.1"),
        (["--token-file", "none"], "the token file none cannot be read"),
        (["--port", "70000"], "--port"),
        (["--max-upload", "0"], "--max-upload"),
        (["--queue", "0"], "--queue"),
    ],
)
def test_mistakes_are_one_message(written, cli, options, message):
    said = cli("serve", written, *options)
    assert said.code == 2
    assert message in said.err
    assert "Traceback" not in said.err


def test_a_folder_that_is_not_there_and_limits_that_are_none(tmp_path, cli, tools, monkeypatch):
    assert "there is no folder" in cli("serve", tmp_path / "none").err
    monkeypatch.setenv("KARAT_TOKEN", tools.token)
    said = cli("serve", tmp_path, "-c", "default")
    assert (said.code, "has no max_runtime_seconds" in said.err) == (2, True)
    said = cli("serve", tmp_path, "-c", "servd")
    assert (said.code, 'Did you mean "served"' in said.err) == (2, True)
    monkeypatch.setenv("KARAT_TOKEN", "short")
    assert "at least 16 letters" in cli("serve", tmp_path).err


def test_without_the_libraries_the_pip_line_is_said(written, cli, monkeypatch):
    from karat.serve import app

    find = app.find_spec
    monkeypatch.setattr(app, "find_spec", lambda name: None if name == "uvicorn" else find(name))
    said = cli("serve", written)
    assert said.code == 2
    assert 'uvicorn is not installed: pip install "karat[serve]"' in said.err


def test_notes_about_what_is_open(written, cli, monkeypatch, tmp_path):
    """Said before it serves; here it cannot, because the port is taken."""
    file = tmp_path / "token"
    file.write_text("a" * 32)
    file.chmod(0o644)
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        said = cli("serve", written, "--host", "0.0.0.0", "--port", port, "--token-file", file)
    assert f"chmod 600 {file}" in said.err
    assert "whoever reaches this machine can read these runs" in said.err


def test_who_cannot_wait_ends_the_evaluation_too(written, monkeypatch):
    """A second Ctrl-C skips the polite end of uvicorn; nothing may go on then."""
    from karat.serve import server
    from karat.serve.evaluations import Evaluations
    from karat.serve.settings import Settings

    class Hasty:
        heard = signal.SIGINT

        async def serve(self, sockets):
            raise KeyboardInterrupt

    stopped = []
    monkeypatch.setattr(server, "make_server", lambda app, ready: Hasty())
    monkeypatch.setattr(Evaluations, "stop", lambda self: stopped.append(1))
    with pytest.raises(KeyboardInterrupt):
        server.serve(Settings(written, port=0), print)
    assert stopped == [1]
