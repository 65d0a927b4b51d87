"""A served page in a browser: it polls, shows new results and keeps its state."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from karat.reporting.page import make_page

NAMES = "return [...document.querySelectorAll('#board tbody th .cut')].map((e) => e.textContent)"


class Answers(BaseHTTPRequestHandler):
    """Sends the page, and the bundle unless the client has it."""

    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("If-None-Match")))
        if self.path == "/":
            return self.send("text/html; charset=utf-8", make_page(self.server.bundle, "/news"))
        if self.headers.get("If-None-Match") == self.server.tag:
            self.send_response(304)
            return self.end_headers()
        return self.send("application/json", json.dumps(self.server.bundle))

    def send(self, kind, text):
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("ETag", self.server.tag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    found = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    found.asked, found.tag, found.bundle = [], '"1"', {}
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def test_news_come_without_reload_and_choices_stay(browser, bundles, server):
    server.bundle = bundles.make_full(5, 6)
    browser.width(1400)
    browser.console_messages()
    browser.open(f"http://127.0.0.1:{server.server_address[1]}/")
    assert browser.run("return document.getElementById('progress').hidden") is True
    browser.run("window.same = true; Karat.choose([1, 2, 5])")
    browser.find("#find").send_keys("encoder")
    browser.until("return Karat.get('find') === 'encoder'")
    # a task comes in front, so that the chosen ones have other numbers; and two more models
    newer = bundles.make_full(7, 6)
    for name in ("tasks", "scores", "spread", "folds", "states"):
        newer[name] = [newer[name][0], *newer[name]]
    newer["tasks"][0] = {**newer["tasks"][0], "name": "new"}
    jobs = {"done": 3, "running": ["encoder-005 new 2"], "failed": 1, "left": 6}
    server.bundle, server.tag = {**newer, "progress": jobs}, '"2"'
    browser.until("return Karat.data.models.length === 7")
    assert browser.run("return window.same") is True
    assert browser.run("return Karat.ranking.chosen") == [2, 3, 6]
    assert len(browser.run(NAMES)) == 7
    assert browser.find("#find").get_attribute("value") == "encoder"
    assert browser.run("return document.activeElement.id") == "find"
    text = browser.find("#progress").text
    assert text.startswith("3 of 10 jobs") and "1 failed" in text and "encoder-005 new 2" in text
    before = len(server.asked)
    while len(server.asked) < before + 2:
        time.sleep(0.1)
    # requests contain the tag of the present bundle
    assert set(server.asked[before + 1 :]) == {("/news", '"2"')}
    assert browser.console_messages() == []


def test_a_page_without_results_waits_for_them(browser, bundles, server):
    full = bundles.make_full(5, 6)
    empty = {name: [] for name in full if isinstance(full[name], list)}
    facts = {"title": "nothing yet", "details": {}, "tests": {}, "robustness": None, "folds": None}
    server.bundle = {**full, **empty, **facts, "notes": ["There is no run here yet."]}
    browser.open(f"http://127.0.0.1:{server.server_address[1]}/")
    assert "There is no run here yet." in browser.find("main").text
    server.bundle, server.tag = full, '"2"'
    browser.until("return document.querySelectorAll('#board tbody tr').length === 5")
    assert browser.console_messages() == []
