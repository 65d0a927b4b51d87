"""Bundles: what the live page shows, made again only when something has changed."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from dataclasses import dataclass
from typing import Any

from karat import __version__
from karat.errors import KaratError
from karat.serve.replies import HTML, POLICY, Refused, Reply, pack, to_json
from karat.serve.state import Snapshot

#: where the live page asks for news
LIVE = "/api/v1/bundle"
#: making bundles may take this share of the time
SHARE = 0.2
#: at least and at most so many seconds between two bundles of a folder that changes
PAUSE, LONGEST = 0.5, 120.0
#: seconds to wait for the first bundle, and for a newer one
FIRST, NEWS = 20.0, 1.0
WAITING = (
    b'<!doctype html><html lang="en"><meta charset="utf-8"><title>Karat</title>'
    b"<p>The page is being made: there are many runs. It comes by itself.</p></html>"
)


@dataclass(frozen=True)
class Made:
    """A bundle of one version, as data and as bytes; ``until`` then it will do, come what may."""

    version: str
    data: dict[str, Any]
    body: bytes
    until: float


class Work:
    """A bundle that is being made, in a thread that nobody has to wait for, not even at the end."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.made: Made | None = None
        self.error: Exception | None = None
        self.done = threading.Event()
        threading.Thread(target=self._make, args=(snapshot,), daemon=True).start()

    def _make(self, snapshot: Snapshot) -> None:
        try:
            self.made = _make(snapshot)
        except Exception as error:  # told to whoever waits for it
            self.error = error
        self.done.set()


class Bundles:
    """Keeps the newest bundle and its pages.

    Where a bundle takes long to make, the earlier one is sent a little longer, so that a big
    folder does not keep the machine busy while an evaluation runs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._work: Work | None = None
        self._made: Made | None = None
        self._pages: dict[bool, Reply] = {}
        self._answers: dict[str, Reply] = {}

    def bundle(self, snapshot: Snapshot) -> Made:
        """Return the bundle of the folder as it is, or as it was a little while ago."""
        made = self._made
        if made is not None and (made.version == snapshot.version or time.monotonic() < made.until):
            return made
        with self._lock:
            if self._work is None:
                self._work = Work(snapshot)
            work = self._work
        if not work.done.wait(FIRST if made is None else NEWS):
            if made is not None:
                return made
            raise Refused(503, "the page is being made", "come back soon", {"retry-after": "5"})
        with self._lock:
            if self._work is work:
                self._work, self._made = None, work.made or self._made
        if work.made is None:
            raise work.error or AssertionError
        return work.made

    def live(self, snapshot: Snapshot) -> Reply:
        """Return the bundle and how far the runs have come, as the page asks for them."""
        made = self.bundle(snapshot)
        progress = to_json(snapshot.progress)
        tag = hashlib.blake2b(made.version.encode() + progress, digest_size=12).hexdigest()
        found = self._answers.get(tag)
        if found is None:
            body = made.body[:-1] + b',"progress":' + progress + b"}"
            found = Reply(body, etag=tag, packed=pack(body))
            self._answers = {tag: found}  # only the newest is asked for
        return found

    def page(self, snapshot: Snapshot, *, frozen: bool) -> Reply:
        """Return the page: live, or as a file to keep."""
        from karat.reporting.page import make_page

        try:
            made = self.bundle(snapshot)
        except Refused:
            headers = {"refresh": "3", "retry-after": "5", "cache-control": "no-store"}
            return Reply(WAITING, HTML, 503, headers)
        tag = f"{made.version}-{'file' if frozen else 'live'}"
        found = self._pages.get(frozen)
        if found is None or found.etag != tag:
            text = make_page(made.data, live=None if frozen else LIVE)
            body = text.encode("utf-8", "replace")
            headers = {"content-security-policy": _policy(text)}
            if frozen:
                headers["content-disposition"] = 'attachment; filename="report.html"'
            found = Reply(body, HTML, headers=headers, etag=tag, packed=pack(body))
            self._pages[frozen] = found
        return found


def _make(snapshot: Snapshot) -> Made:
    begun = time.thread_time()
    try:
        data = _data(snapshot)
    except KaratError as error:
        data = {**EMPTY, "notes": [str(error)]}
    body = to_json(data)
    pause = (time.thread_time() - begun) * (1 / SHARE - 1)
    until = time.monotonic() + min(max(PAUSE, pause), LONGEST)
    return Made(snapshot.version, data, body, until)


def _data(snapshot: Snapshot) -> dict[str, Any]:
    from karat.reporting.bundle import make_bundle

    if not snapshot.runs:
        return {**EMPTY, "notes": ["There is no run here yet."]}
    return make_bundle(list(snapshot.runs.values()))


def _policy(page: str) -> str:
    """Return the policy that a page has for itself, and what only a header can say."""
    found = re.search(
        r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"', page, re.IGNORECASE
    )
    if found is None or not found[1].isascii() or "\n" in found[1]:
        return POLICY
    own = found[1].replace("&#x27;", "'").replace("&#39;", "'").strip().rstrip(";")
    told = {part.split()[0] for part in own.split(";") if part.strip()}
    more = [part for part in POLICY.split("; ") if part.split()[0] not in told]
    return "; ".join([own, *more])


#: what there is to show before anything was run
EMPTY: dict[str, Any] = {
    **{"schema": 1, "title": "Karat", "karat": __version__, "made": "", "confidence": 0.95},
    **{"rule": "worst", "notes": [], "models": [], "tasks": [], "scores": [], "spread": []},
    **{"folds": [], "states": [], "curves": [], "robustness": None, "learning": []},
    "tests": {"friedman": None, "cliques": [], "pairs": None},
    **{"details": {}, "failures": [], "maps": [], "cards": [], "checks": [], "runs": [], "cut": []},
}
