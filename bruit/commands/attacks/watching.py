"""Who is curious: the option `--seen-by` of all attacks."""

from __future__ import annotations

from typing import Annotated

import typer

from bruit.errors import ConfigError

SeenBy = Annotated[
    str, typer.Option(help="The curious peers: one (7), or several who collude (3,7).")
]


def peers_of(text: str) -> list[int]:
    """The peers that `--seen-by` names."""
    try:
        return sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise ConfigError(f"--seen-by {text!r} is neither a peer nor peers like 3,7") from None


def named(peers: tuple[int, ...] | list[int]) -> str:
    """ "peer 7", or "peers 3, 7"."""
    return ("peer " if len(peers) == 1 else "peers ") + ", ".join(map(str, peers))
