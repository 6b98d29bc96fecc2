"""The command of a key that is changed while others go on: key rotate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bruit.commands.printing import Printer, Reply
from bruit.commands.terminal import Json

key_app = typer.Typer(help="The key of one real peer, and its successors.", no_args_is_help=True)


@key_app.callback()
def keys() -> None:
    """What commands of keys share."""


@key_app.command("rotate")
def key_rotate(
    site: Annotated[Path, typer.Argument(help="The participant's site.toml.")],
    overlap: Annotated[
        float, typer.Option(help="Days for which others take both keys, the old and the new.")
    ] = 7.0,
    finish: Annotated[
        bool, typer.Option("--finish", help="Put the new key in place; then start the peer again.")
    ] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="With --finish: even if a neighbor has not heard.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Change this participant's key in the middle of a run; nobody else has to stop.

    Without --finish: make new keys, and let the running peer tell its neighbors; again: say who has
    heard. Exit code 1: somebody has not, yet.

    Example: bruit key rotate site/site.toml --overlap 7
    """
    from dataclasses import asdict

    from bruit.peers.site import rotating
    from bruit.peers.site.site import read_site

    read = read_site(site)
    found = rotating.finish(read, anyway) if finish else rotating.rotate(read, overlap)
    lines = [f"new certificate {found.fingerprint[:24]}; the old one is taken until {found.until}"]
    if found.finished:
        lines.append(f"it is in place: start the peer again with bruit peer run {site}")
    elif found.untold:
        lines.append(f"not known to have heard of it: {', '.join(found.untold)}")
    else:
        lines.append(f"all neighbors have heard: bruit key rotate {site} --finish")
    Printer(json=as_json).answer(Reply(asdict(found), lines))
    raise typer.Exit(1 if found.untold and not found.finished else 0)
