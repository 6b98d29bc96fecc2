"""The commands of a relay: relay key, relay run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bruit.commands.printing import Printer, Reply
from bruit.commands.terminal import Json, Quiet

relay_app = typer.Typer(
    help="A blind relay, at which peers are reached that nobody can call.", no_args_is_help=True
)


@relay_app.command("key")
def relay_key(
    host: Annotated[str, typer.Option(help="Where peers reach the relay.")],
    port: Annotated[int, typer.Option(help="At which port.")] = 443,
    folder: Annotated[Path, typer.Option("--out", help="Folder for the keys.")] = Path("relay"),
    as_json: Json = False,
) -> None:
    """Make the keys of a relay, and the public part that goes into everybody's address book.

    Example: bruit relay key --host relay.example.org --out relay
    """
    from bruit.files import write_whole
    from bruit.peers.wire.identity import Identity, short_form
    from bruit.peers.wire.relay_entry import public_relay

    identity = Identity.create("relay")
    public = public_relay(identity, host, port)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    identity.save(folder)
    write_whole(folder / "public.toml", lambda file: file.write(public.encode()))
    fingerprint, sent = identity.fingerprint(), folder / "public.toml"
    lines = [
        f"keys of the relay are in {folder} (keep key.pem and signing.pem secret)",
        f"send {sent} to all participants, who merge it into their books",
        f"fingerprint, to compare by telephone: {short_form(fingerprint)}",
    ]
    about = {"fingerprint": fingerprint, "public": str(sent)}
    Printer(json=as_json).answer(Reply(about, lines))


@relay_app.command("run")
def relay_run(
    folder: Annotated[Path, typer.Argument(help="The folder with the relay's keys.")],
    books: Annotated[
        list[Path],
        typer.Option(
            "--members", help="An address book whose members may call each other. May be repeated."
        ),
    ],
    host: Annotated[
        str, typer.Option(help="Where to listen; :: is every address, IPv4 and IPv6.")
    ] = "::",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 443,
    rate: Annotated[
        float, typer.Option(min=0.01, help="MiB a second that one peer may send through.")
    ] = 16.0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Pass bytes on between members of address books until SIGTERM or Ctrl-C; then say what was
    seen.

    A book that changes is served as it is from then on. Exit code 0: it was stopped.

    Example: bruit relay run relay --members book.toml
    """
    import logging

    from bruit.peers.relay.serving import RelaySettings, serve

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    printer = Printer(json=as_json, quiet=quiet)
    settings = RelaySettings(folder=folder, books=books, host=host, port=port, rate=rate * 2**20)
    relay = serve(settings, printer.say)
    pairs = relay.seen.table(relay.names)
    about = {"pairs": pairs, "refused": dict(relay.seen.refused)}
    printer.answer(Reply(about, [_pair(pair) for pair in pairs] or ["nobody called anybody"]))


def _pair(pair: dict[str, Any]) -> str:
    return (
        f"{pair['caller']} called {pair['callee']} {pair['calls']} times: "
        f"{pair['to_callee']} bytes there, {pair['to_caller']} bytes back"
    )
