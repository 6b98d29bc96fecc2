"""`bruit ui`: serve the live page on this machine until Ctrl-C."""

from __future__ import annotations

import ipaddress
import secrets
import socket
import threading
import webbrowser
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from bruit.commands.printing import Printer
from bruit.errors import ConfigError

SHORTEST = 8  # letters of a token
GRACE = 1  # seconds that open streams have to end after Ctrl-C


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """The server's socket, bound before anything else is done."""
    try:
        kind, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ConfigError(
            f"--host {host} is no address of this machine: {error.strerror}"
        ) from None
    made = socket.socket(kind, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(address)
        made.listen(128)  # whoever opens the address at once waits, and is not refused
    except OSError as error:
        made.close()
        raise ConfigError(
            f"cannot listen on {host}, port {port}: {error.strerror}; choose another --port (0"
            " takes a free one)"
        ) from None
    return made


def make_server(folder: Path, site: Path | None, token: str | None, near: bool) -> Any:
    """The server, not yet started; one that only this machine can reach answers for this machine's
    names only."""
    try:
        import uvicorn

        from bruit.show.live.app import LOOPBACK, create_app
    except ImportError as error:
        raise ConfigError(
            f"the live page needs {error.name or 'more packages'}: pip install 'bruit[ui]', or from"
            " its folder pip install '.[ui]'"
        ) from None
    app = create_app(folder, site, token, LOOPBACK if near else ())
    settings = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )
    return uvicorn.Server(settings)


def warm_up() -> None:
    """Ask one what-if question, so that the first one of the page need not wait for compiled code
    to load."""
    from bruit.show.live.what_if import WhatIf, answer

    answer(WhatIf())


def ui(
    folder: Annotated[Path, typer.Argument(help="The folder of runs.")] = Path("runs"),
    host: Annotated[
        str, typer.Option(help="Where to listen; beyond this machine a token is required.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8765,
    site: Annotated[
        Path | None, typer.Option(help="A real peer's site.toml: show what its operator may see.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="Require this token; by default one is drawn beyond loopback."),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--open/--no-browser", help="Open the page in a browser.")
    ] = False,
) -> None:
    """Serve a page to start and watch runs, and to ask what if; or, with --site, to look after one
    real peer.

    Example: bruit ui runs --open
    """
    from bruit.peers.site.site import read_site

    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; name the folder that holds the runs")
    if site is not None:
        read_site(site)
    if token is not None and len(token) < SHORTEST:
        raise ConfigError(
            f"a token of {len(token)} letters can be guessed; take at least {SHORTEST}, or leave "
            f"it out"
        )
    near = is_loopback(host)
    if token is None and not near:
        token = secrets.token_urlsafe(24)
    server = make_server(folder, site, token, near)
    listening = listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}/" + (
        f"?token={quote(token)}" if token else ""
    )
    Printer().say(f"{address}\nCtrl-C ends it, and the runs it started")
    if not near:
        Printer().say(
            "this address is open to other machines: who has the token can start runs in your name"
        )
    threading.Thread(target=warm_up, daemon=True).start()
    if browser:
        webbrowser.open(address)
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        pass  # uvicorn raises it again once everything has ended
    finally:
        listening.close()
