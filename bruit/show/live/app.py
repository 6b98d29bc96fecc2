"""The page's server: lists, starts, follows and stops runs, answers what-if questions. Nothing it
serves leaves here.

Everything is same-origin, under a content-security policy without inline code. Beyond loopback a
token is required, once in the address and then as a cookie. Requests that name another host are
refused, so that a foreign page cannot reach a server on loopback by giving its address a name. What
changes something must carry a header no foreign page can send. Pointed at a real peer (`site`), the
server knows that peer's own status and nothing of runs.
"""

from __future__ import annotations

import hmac
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, StreamingResponse

from bruit.errors import BruitError, ConfigError
from bruit.show.drawing.markup import Markup, tag
from bruit.show.live.form import check, form
from bruit.show.live.operator import operator_view
from bruit.show.live.runs import Runs
from bruit.show.live.saved import Saved
from bruit.show.live.views import view_ahead
from bruit.show.live.what_if import FAMILIES, WhatIf, answer, experiment
from bruit.show.report.look import asset as of_look
from bruit.show.report.look import brand

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
REPORT_POLICY = (
    "frame-ancestors 'none'"  # the report carries its own, by the hashes of its script and style
)
SCRIPTS = (
    "draw.js",
    "chart.js",
    "stages.js",
    "server.js",
    "runs.js",
    "form.js",
    "run.js",
    "index.js",
    "what_if.js",
    "peer.js",
)
LOOK = {"look.css": "text/css", "mark.svg": "image/svg+xml"}  # shared with the report
COOKIE = "bruit-token"
LARGEST = 2**20  # bytes of a request
MOST_COMPARED = 12  # runs on one page
LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
Next = Callable[[Request], Awaitable[Response]]


def create_app(
    folder: Path,
    site: Path | None = None,
    token: str | None = None,
    hosts: tuple[str, ...] = LOOPBACK,
) -> FastAPI:
    """The application for one folder of runs, or for the operator of one real peer (`site`)."""
    runs = Runs(folder)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await runs.close()

    app = FastAPI(title="Bruit", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.state.runs = runs if site is None else None
    _guard(app, token, hosts)
    app.add_exception_handler(404, _nowhere)
    _serve_pages(app, "index.html" if site is None else "peer.html")
    _serve_what_if(app)
    if site is None:
        _serve_runs(app, runs)
        _serve_saved(app, runs, Saved())
        _serve_form(app, folder)
    else:
        _serve_peer(app, site)
    return app


def _guard(app: FastAPI, token: str | None, hosts: tuple[str, ...]) -> None:
    @app.middleware("http")
    async def guard(request: Request, proceed: Next) -> Response:
        response = _refusal(request, token, hosts)
        if response is None:
            try:
                response = await proceed(request)
            except (BruitError, OSError) as error:
                response = _complaint(request, str(error), 400)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response


def _refusal(request: Request, token: str | None, hosts: tuple[str, ...]) -> Response | None:
    """Why a request is not answered, if it is not; a token in the address becomes a cookie."""
    named = request.headers.getlist("host")
    host = named[0] if len(named) == 1 else ""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    if hosts and name not in hosts:
        return _complaint(request, f"this server does not answer for the host {name!r}", 403)
    if _foreign(request, host):
        return _complaint(request, "this server does not answer the pages of others", 403)
    if token is not None and not _matches(request.cookies.get(COOKIE), token):
        if not _matches(request.query_params.get("token"), token):
            return _complaint(
                request, "a token is needed: open the address that `bruit ui` printed", 401
            )
        rest = [(key, value) for key, value in request.query_params.multi_items() if key != "token"]
        asked = f"?{urlencode(rest)}" if rest else ""
        response = RedirectResponse(
            "/" + request.url.path.lstrip("/") + asked, 303
        )  # never another host
        response.set_cookie(COOKIE, token, httponly=True, samesite="strict")
        return response
    if request.method not in ("GET", "HEAD") and request.headers.get("x-bruit") != "1":
        return _complaint(request, "only the page itself may change anything", 403)
    if int(request.headers.get("content-length", "0") or 0) > LARGEST:
        return _complaint(request, f"a request has at most {LARGEST} bytes", 413)
    return None


def _foreign(request: Request, host: str) -> bool:
    """Whether a browser says that a page of another origin asks. Who follows a link from elsewhere
    may see a page."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "none")
    if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
        return True
    opened = request.method == "GET" and request.headers.get("sec-fetch-mode") == "navigate"
    return site not in ("none", "same-origin") and not (
        opened and not request.url.path.startswith("/api/")
    )


def _matches(given: str | None, token: str) -> bool:
    return given is not None and hmac.compare_digest(given.encode(), token.encode())


def _complaint(request: Request, words: str, code: int) -> Response:
    """What is wrong, for a person or for a script."""
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"error": words}, code)
    head = tag(
        "head",
        Markup('<meta charset="utf-8">'),
        tag("title", "Bruit"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        Markup('<link rel="stylesheet" href="/assets/look.css">'),
        Markup('<link rel="icon" href="/assets/mark.svg">'),
    )
    first = "To the runs" if request.app.state.runs is not None else "To this peer"
    back = tag("p", tag("a", first, href="/"), " or ", tag("a", "ask what if", href="/what-if"))
    bar = tag("header", brand(), class_="bar")
    title = "There is no such page" if code == 404 else "This cannot be shown"
    body = tag("body", bar, tag("main", tag("h1", title), tag("p", words), back))
    return HTMLResponse(f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}", code)


def _nowhere(request: Request, _: Exception) -> Response:
    of_runs = request.app.state.runs is not None
    where = (
        "Runs are listed on the first page; a run has the address /runs/NAME."
        if of_runs
        else "The first page shows one peer; runs are shown by `bruit ui` without --site."
    )
    return _complaint(request, f"There is no page {request.url.path} here. {where}", 404)


def _serve_pages(app: FastAPI, first: str) -> None:
    @app.get("/")
    def index() -> HTMLResponse:
        return HTMLResponse(_asset(first))

    @app.get("/what-if")
    def what_if() -> HTMLResponse:
        page = _asset("what_if.html")
        if first != "index.html":  # one peer's operator: there are no runs to start
            page = page.replace('<a href="/">Runs</a>', '<a href="/">This peer</a>')
            page = page.replace('<a id="experiment"', '<a id="experiment" hidden')
        return HTMLResponse(page)

    @app.get("/assets/{name}")
    def asset(name: str) -> Response:
        if name in LOOK:
            return Response(of_look(name), media_type=LOOK[name])
        if name == "page.css":
            return Response(_asset(name), media_type="text/css")
        if name in SCRIPTS:
            return Response(_asset(name), media_type="text/javascript")
        return JSONResponse({"error": f"there is no {name!r} here"}, 404)

    @app.get("/favicon.ico")
    def icon() -> Response:
        return Response(status_code=204)


def _serve_runs(app: FastAPI, runs: Runs) -> None:
    @app.get("/api/runs")
    def listing() -> list[dict[str, Any]]:
        return runs.listing()

    @app.post("/api/runs")
    async def start(request: Request) -> dict[str, str]:
        asked = await _json(request)
        name, text = asked.get("name"), asked.get("experiment")
        if not isinstance(name, str) or not isinstance(text, str):
            raise ConfigError("a run is started with a name and the text of an experiment")
        return {"name": (await runs.start(name, text)).name}

    @app.post("/api/runs/{name}/stop")
    async def stop(name: str) -> dict[str, str]:
        await runs.stop(name)
        return {"name": name}

    @app.get("/api/runs/{name}/events")
    async def events(name: str) -> StreamingResponse:
        one = runs.live.get(name)
        if one is None:
            raise ConfigError(f"no run {name} was started here")

        async def stream() -> AsyncIterator[str]:
            async for event in one.follow():
                yield f"data: {json.dumps(event)}\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream")


def _serve_saved(app: FastAPI, runs: Runs, saved: Saved) -> None:
    @app.get("/runs/{name}")
    def page(name: str) -> HTMLResponse:
        runs.state(name)  # an unknown run is told before a page is shown
        return HTMLResponse(_asset("run.html"))

    @app.get("/api/runs/{name}")
    async def facts(name: str) -> dict[str, Any]:
        state = runs.state(name)
        if state != "saved":
            return {"state": state, "experiment": runs.draft(name).read_text(encoding="utf-8")}
        return {"state": state, **await run_in_threadpool(saved.facts, runs.path(name))}

    @app.get("/api/runs/{name}/summary")
    async def summary(name: str) -> dict[str, Any]:
        return await run_in_threadpool(saved.summary, runs.path(name))

    @app.get("/api/runs/{name}/view/{peer}")
    async def view(name: str, peer: int) -> dict[str, Any]:
        if runs.state(name) == "saved":
            return await run_in_threadpool(saved.view, runs.path(name), peer)
        return await run_in_threadpool(view_ahead, runs.draft(name), peer)

    @app.get("/runs/{name}/report")
    async def report(name: str) -> HTMLResponse:
        return _as_report(await run_in_threadpool(_report, [runs.path(name)]))

    @app.get("/compare")
    async def compare(request: Request) -> HTMLResponse:
        names = list(dict.fromkeys(request.query_params.getlist("run")))
        if not 2 <= len(names) <= MOST_COMPARED:
            raise ConfigError(
                f"2 to {MOST_COMPARED} runs are compared, found {len(names)}: choose them in the "
                f"list"
            )
        return _as_report(await run_in_threadpool(_report, [runs.path(name) for name in names]))

    @app.get("/runs/{name}/model.json")
    def model(name: str) -> Response:
        found = runs.path(name) / "model.json"
        if found.is_symlink() or not found.is_file():  # a link could lead to any file
            raise ConfigError(
                f"the run {name} holds no model.json; run it again with this version of bruit"
            )
        return Response(
            found.read_bytes(),
            media_type="application/json",
            headers={"Content-Disposition": 'attachment; filename="model.json"'},
        )


def _serve_form(app: FastAPI, folder: Path) -> None:
    @app.get("/api/form")
    def fields() -> dict[str, Any]:
        return form()

    @app.post("/api/check")
    async def checked(request: Request) -> dict[str, Any]:
        text = (await _json(request)).get("experiment")
        if not isinstance(text, str):
            raise ConfigError("there is no text of an experiment to check")
        return await run_in_threadpool(check, text, folder)


def _serve_what_if(app: FastAPI) -> None:
    @app.get("/api/families")
    def families() -> list[str]:
        return list(FAMILIES)

    @app.get("/api/what-if")
    async def what_if(request: Request) -> dict[str, Any]:
        return await run_in_threadpool(answer, _question_from(dict(request.query_params)))

    @app.get("/api/what-if/experiment")
    def as_experiment(request: Request) -> dict[str, str]:
        return {"experiment": experiment(_question_from(dict(request.query_params)))}


def _serve_peer(app: FastAPI, site: Path) -> None:
    @app.get("/api/peer")
    def peer() -> dict[str, Any]:
        return operator_view(site)


def _question_from(words: dict[str, str]) -> WhatIf:
    """A question from the words of an address; what is left out has its default, what is wrong is
    named."""

    def observers(text: str) -> tuple[int, ...]:
        return tuple(int(part) for part in text.split(",") if part)

    kinds: dict[str, Callable[[str], Any]] = {
        "family": str,
        "peers": int,
        "steps": int,
        "noise": float,
        "observers": observers,
        "accelerated": lambda text: text == "1",
        "delta": float,
        "level": str,
    }
    found = {}
    for key, kind in kinds.items():
        if key in words:
            try:
                found[key] = kind(words[key])
            except ValueError:
                raise ConfigError(f"{key} = {words[key]!r} is not a number") from None
    return WhatIf(**found)


async def _json(request: Request) -> dict[str, Any]:
    data = bytearray()
    async for piece in request.stream():  # a request in pieces does not say its length beforehand
        data += piece
        if len(data) > LARGEST:
            raise ConfigError(f"a request has at most {LARGEST} bytes")
    try:
        asked = json.loads(data)
    except (ValueError, RecursionError):
        raise ConfigError("the request holds no JSON") from None
    if not isinstance(asked, dict):
        raise ConfigError("the request holds no JSON object")
    return asked


def _asset(name: str) -> str:
    return files("bruit.show.live").joinpath(name).read_text(encoding="utf-8")


def _report(paths: list[Path]) -> str:
    from bruit.show.report import write_report

    with tempfile.TemporaryDirectory() as folder:
        return write_report(paths, Path(folder) / "report.html").read_text(encoding="utf-8")


def _as_report(text: str) -> HTMLResponse:
    return HTMLResponse(text, headers={"Content-Security-Policy": REPORT_POLICY})
