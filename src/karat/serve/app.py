"""The application: the table of endpoints as routes, behind the guards."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.errors import KaratError, MissingExtra
from karat.serve import openapi
from karat.serve.asking import Asked, Endpoint
from karat.serve.endpoints import BASE, ENDPOINTS
from karat.serve.guards import Guard, check_token
from karat.serve.replies import HTML, Refused, Reply, json_reply
from karat.serve.service import Service
from karat.serve.settings import Settings

if TYPE_CHECKING:
    from starlette.requests import Request

Handler = Callable[["Request"], Awaitable[Reply]]
#: the most bytes of a JSON body
JSON_MOST = 2**16
#: seconds after which a wrong token is refused
PAUSE = 0.25
#: answers that are worked out at the same time
SIDE_BY_SIDE = 8
ICON = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
    b'<path fill="#b8860b" d="M4 2h8l3 4-7 8-7-8z"/></svg>'
)


def check_installed() -> None:
    """Raise MissingExtra with the pip line where the libraries of a server are missing."""
    for library in ("starlette", "uvicorn"):
        if find_spec(library) is None:
            raise MissingExtra(library, "serve")


def make_app(settings: Settings) -> Guard:
    """Return the application, for uvicorn or a test; its queue works while it is open."""
    check_installed()
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.routing import Route

    service = Service(settings)
    desk = Desk(service)

    @contextlib.asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        if settings.token is not None:
            await asyncio.to_thread(service.uploads.sweep)
            await asyncio.to_thread(service.evaluations.start)
        yield
        await asyncio.to_thread(service.evaluations.stop)

    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in ENDPOINTS:
        by_path.setdefault(BASE + endpoint.path, {})[endpoint.method] = endpoint
    routes = [Route(path, desk.handler(each), methods=[*each]) for path, each in by_path.items()]
    routes += [Route(path, handle) for path, handle in desk.pages().items()]
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={HTTPException: _told, Exception: _broken},  # type: ignore[dict-item]
    )
    app.router.redirect_slashes = False
    # around all of it, so that what breaks inside is answered with the same headers
    return Guard(app, settings, service)


class Desk:
    """Takes requests, checks them, has them answered in a thread, and hands the answer back."""

    def __init__(self, service: Service) -> None:
        self.service = service

    @functools.cached_property
    def _limiter(self) -> Any:
        import anyio

        return anyio.CapacityLimiter(SIDE_BY_SIDE)

    def handler(self, by_method: dict[str, Endpoint]) -> Handler:
        """Return what handles the requests of a path."""

        async def handle(request: Request) -> Reply:
            endpoint = by_method["GET" if request.method == "HEAD" else request.method]
            asked = None
            try:
                asked = await self._ask(endpoint, request)
                return await self._work(functools.partial(endpoint.answer, self.service, asked))
            except Refused as refused:
                return refused.reply()
            finally:
                if asked is not None and isinstance(asked.body, Path):
                    asked.body.unlink(missing_ok=True)

        return handle

    def pages(self) -> dict[str, Handler]:
        """Return what handles the pages, by their path."""
        service, described = self.service, json_reply(openapi.describe())
        policy = {"content-security-policy": openapi.PAGE_POLICY}
        api = Reply(openapi.page().encode(), HTML, headers=policy)
        icon = Reply(ICON, "image/svg+xml", headers={"cache-control": "max-age=86400"})

        def shown(frozen: bool) -> Reply:
            return service.bundles.page(service.state.look(), frozen=frozen)

        return {
            "/": self._page(functools.partial(shown, False)),
            "/report.html": self._page(functools.partial(shown, True)),
            "/api": self._page(lambda: api),
            f"{BASE}/openapi.json": self._page(lambda: described),
            "/favicon.ico": self._page(lambda: icon),
        }

    def _page(self, make: Callable[[], Reply]) -> Handler:
        async def handle(request: Request) -> Reply:
            return await self._work(make)

        return handle

    async def _work(self, make: Callable[[], Reply]) -> Reply:
        from anyio.to_thread import run_sync

        try:
            return await run_sync(make, abandon_on_cancel=True, limiter=self._limiter)
        except Refused as refused:
            return refused.reply()
        except KaratError as error:
            where = str(self.service.settings.folder)
            return Refused(422, str(error).replace(where, "DIR")[:2000]).reply()

    async def _ask(self, endpoint: Endpoint, request: Request) -> Asked:
        if endpoint.token:
            try:
                given = request.headers.get("authorization", "")
                check_token(self.service.settings.token, given)
            except Refused as refused:
                if refused.status == 401:
                    await asyncio.sleep(PAUSE)  # so that guessing takes long
                raise
        query = endpoint.read(request.query_params.multi_items())
        accept = ",".join(request.headers.getlist("accept"))
        asked = Asked(request.path_params, query, accept)
        if not endpoint.takes:
            return asked
        return Asked(asked.path, query, accept, await self._body(endpoint, request))

    async def _body(self, endpoint: Endpoint, request: Request) -> Any:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if endpoint.takes == "bytes":
            if not kind:
                raise Refused(415, "the body has no type", "Content-Type: application/octet-stream")
            announced = request.headers.get("content-length")
            return await self.service.uploads.receive(_chunks(request), announced)
        if kind != "application/json":
            raise Refused(415, "the body must be JSON", "Content-Type: application/json")
        raw = b""
        async for chunk in _chunks(request):
            raw += chunk
            if len(raw) > JSON_MOST:
                hint = f"at most {JSON_MOST:,} bytes"
                raise Refused(413, "the body is too large", hint, {"connection": "close"})
        try:
            return json.loads(raw.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise Refused(400, "the body is no JSON", '{"suite": "quickstart"}') from error


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    from starlette.requests import ClientDisconnect

    try:
        async for chunk in request.stream():
            if chunk:
                yield chunk
    except ClientDisconnect as error:
        raise Refused(400, "the body ended early") from error


async def _told(request: Any, error: Any) -> Reply:
    hints = {404: "/api tells what there is", 405: "/api tells what each path takes"}
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    said = str(error.detail).lower()
    return Refused(error.status_code, said, hints.get(error.status_code, ""), headers).reply()


async def _broken(request: Any, error: Exception) -> Reply:
    hint = "the server's own output tells more; please report it"
    return Refused(500, "something broke here", hint).reply()
