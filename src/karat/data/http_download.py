"""Download a URL to a file: verified, and resumed if the connection breaks."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from karat.core.writing import draft_folder
from karat.data.download_display import Download, download_shown
from karat.data.file_sources import without_password
from karat.errors import DataError

if TYPE_CHECKING:
    import requests

#: small, because the chunk in flight is lost when a connection breaks
TRANSFER_CHUNK = 1 << 14
#: a host that refused a connection is not contacted again for this many seconds
UNREACHABLE, UNREACHABLE_SECONDS = "cannot connect", 60.0
_unreachable: dict[str, float] = {}
#: seconds to wait for a connection and for data; number of attempts; seconds between them; size
TIMEOUT, ATTEMPTS, BACKOFF, MAX_BYTES = (10.0, 60.0), 3, 0.5, 2 * 1024**3


def download(
    url: str,
    target: Path,
    sha256: str | None = None,
    *,
    certificate: str | None = None,
    name: str | None = None,
) -> None:
    """Download a URL to a file, which appears only when it is complete and has this sha256.

    ``name`` is what the display calls it, by default the name of the file.

    With a sha256, an interrupted download is resumed by the next call, also from another URL. If
    the resumed file has the wrong sha256, it is downloaded once more from the beginning.
    """
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)  # it is not in the hierarchy of loggers
    downloader = _ResumingDownloader(target, sha256, certificate, name or target.name)
    while True:
        try:
            with draft_folder(target.parent) as draft:
                pooch.retrieve(url, sha256, target.name, draft, downloader=downloader)
                os.replace(draft / target.name, target)
            return
        except ValueError as error:  # the sha256 is wrong; pooch deleted the file
            if not downloader.resumed:
                raise DataError(f"{without_password(url)}: {error}") from error


class _ResumingDownloader:
    """A downloader for pooch that continues the partial file of an earlier attempt."""

    def __init__(
        self, target: Path, sha256: str | None, certificate: str | None, name: str
    ) -> None:
        self.name = name
        self.partial = target.parent / f".{sha256[:16]}.part" if sha256 else None
        self.certificate = certificate
        self.resumed = False

    def __call__(self, url: str, output_file: str, pooch: object = None) -> None:
        output = Path(output_file)
        # pooch creates it readable by its owner only; a new file gets the usual permissions
        output.unlink()
        self.resumed = False
        if self.partial:
            # renaming gives the partial file to exactly one of several processes
            with suppress(FileNotFoundError):
                self.partial.rename(output)
                self.resumed = True
        try:
            with (
                readable_errors(url),
                session(self.certificate) as http,
                download_shown(self.name) as display,
            ):
                _fetch_rest(http, url, output, display)
        except BaseException:
            if self.partial and output.exists() and output.stat().st_size:
                output.replace(self.partial)
            raise


def _fetch_rest(http: requests.Session, url: str, path: Path, display: Download) -> None:
    """Append the missing bytes of a file; broken connections are resumed."""
    from requests.exceptions import ChunkedEncodingError, ConnectionError

    for attempt in range(1, ATTEMPTS + 1):
        begin = path.stat().st_size if path.exists() else 0
        headers = {"Range": f"bytes={begin}-"} if begin else {}
        with http.get(url, stream=True, timeout=TIMEOUT, headers=headers) as response:
            if response.status_code == 416:  # the partial file is not shorter than the whole one
                path.unlink()
                continue
            response.raise_for_status()
            sent = response.headers.get("Content-Range", "")
            continued = response.status_code == 206 and sent.startswith(f"bytes {begin}-")
            try:
                with path.open("ab" if continued else "wb") as file:
                    _write_answer(response, file, display)
                return
            except (ConnectionError, ChunkedEncodingError):
                if attempt == ATTEMPTS:
                    raise
        time.sleep(BACKOFF * attempt)


def _write_answer(response: requests.Response, file: IO[bytes], display: Download) -> None:
    """Append the content of an answer to a file."""
    length = response.headers.get("Content-Length", "")
    begin = file.tell()
    display.resize(begin, begin + int(length) if length.isdecimal() else None)
    for chunk in response.iter_content(TRANSFER_CHUNK):
        file.write(chunk)
        display.advance(file.tell())
        if file.tell() > MAX_BYTES:
            file.truncate(0)
            address = without_password(response.url)
            raise DataError(f"{address}: larger than {MAX_BYTES} bytes, the limit")


def session(certificate: str | None = None) -> requests.Session:
    """Return a session that repeats failed requests; REQUESTS_CA_BUNDLE overrides a certificate."""
    import requests
    from urllib3.util import Retry

    http = requests.Session()
    retry = Retry(
        ATTEMPTS - 1,
        backoff_factor=BACKOFF,
        status_forcelist=(429, 500, 502, 503, 504),
        raise_on_status=False,
        respect_retry_after_header=False,
    )
    for scheme in ("http://", "https://"):
        http.mount(scheme, requests.adapters.HTTPAdapter(max_retries=retry))
    http.verify = certificate or True
    # Archives are already compressed; another encoding would change their length.
    http.headers["Accept-Encoding"] = "identity"
    return http


@contextmanager
def readable_errors(url: str) -> Iterator[None]:
    """Turn errors of requests into a DataError of one line; skip unreachable hosts for a minute."""
    from requests import RequestException

    address = without_password(url)
    host = urlsplit(address).netloc
    if time.monotonic() - _unreachable.get(host, -UNREACHABLE_SECONDS) < UNREACHABLE_SECONDS:
        raise DataError(f"{address}: {UNREACHABLE}")
    try:
        yield
    except RequestException as error:
        reason = _reason(error)
        if reason == UNREACHABLE:
            _unreachable[host] = time.monotonic()
        raise DataError(f"{address}: {reason}") from error
    except OSError as error:
        if error.errno is not None:  # a problem with a local file
            raise
        raise DataError(f"{address}: {error}") from error  # the certificate file is missing


def _reason(error: requests.RequestException) -> str:
    from requests.exceptions import ChunkedEncodingError, ConnectionError, SSLError, Timeout

    if error.response is not None:
        return f"the server answered {error.response.status_code} {error.response.reason}"
    if isinstance(error, SSLError):
        return "the server's certificate is not trusted; set REQUESTS_CA_BUNDLE to your own"
    if isinstance(error, Timeout) or "timed out" in str(error):
        return f"timed out ({ATTEMPTS} attempts)"
    if isinstance(error, ChunkedEncodingError):
        return f"the connection broke before the file was complete ({error})"
    if isinstance(error, ConnectionError):
        return UNREACHABLE
    return f"{type(error).__name__}: {error}"
