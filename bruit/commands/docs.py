"""`bruit docs`: open the documentation that lies on this machine; nothing is asked of another
one."""

from __future__ import annotations

import os
import webbrowser
import zipfile
from pathlib import Path
from typing import Annotated

import typer

from bruit.commands.printing import Printer
from bruit.errors import ConfigError

FIRST = "index.html"


def places(version: str) -> list[Path]:
    """Where a copy may be: unpacked by this command, or built by `make site` in the repository."""
    kept = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    built = Path(__file__).parents[2] / "build" / "site"
    return [Path(kept) / "bruit" / "docs" / version, built / version]


def unpack(copy: Path, into: Path, version: str) -> None:
    """A copy becomes a folder; one of another version, or of something else, is refused."""
    if not copy.is_file():
        raise ConfigError(
            f"there is no file {copy}; bruit-{version}-docs.zip lies beside the wheel"
        )
    try:
        with zipfile.ZipFile(copy) as packed:
            names = packed.namelist()
            if f"{version}/{FIRST}" not in names:
                raise ConfigError(
                    f"{copy} is no documentation of bruit {version}: it holds no {version}/{FIRST}; "
                    f"take bruit-{version}-docs.zip, which lies beside the wheel"
                )
            ours = [name for name in names if name.startswith(f"{version}/")]
            packed.extractall(into.parent, members=ours)  # which leaves out .. and roots
    except zipfile.BadZipFile:
        raise ConfigError(f"{copy} is no zip file") from None


def docs(
    copy: Annotated[
        Path | None, typer.Option(help="Unpack this copy first: bruit-VERSION-docs.zip.")
    ] = None,
    browser: Annotated[
        bool, typer.Option("--open/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Open the documentation that lies on this machine; it needs no network.

    Example: bruit docs --no-browser
    """
    from bruit import __version__

    kept, built = places(__version__)
    if copy is not None:
        unpack(copy, kept, __version__)
    found = next((place / FIRST for place in (kept, built) if (place / FIRST).is_file()), None)
    if found is None:
        raise ConfigError(
            f"there is no copy of the documentation of bruit {__version__} on this machine; give the "
            f"one that lies beside the wheel, `bruit docs --copy bruit-{__version__}-docs.zip`, or "
            "build it in the repository: `make site`"
        )
    Printer().say(found.as_uri())
    if browser:
        webbrowser.open(found.as_uri())
