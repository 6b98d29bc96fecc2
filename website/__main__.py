"""`python -m website [--into DIR] [--zip DIR]`: builds the site of this version, strictly.

A link that leads nowhere, or a page that the menu forgets, is an error. The folder keeps the other
versions it has; `versions.json` and the first page are written anew.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import zipfile
from pathlib import Path

from mkdocs.commands.build import build
from mkdocs.config import load_config
from packaging.version import InvalidVersion, Version

from bruit import __version__

HERE = Path(__file__).parent
FIRST = """<!doctype html>
<meta charset="utf-8">
<title>Bruit</title>
<meta http-equiv="refresh" content="0; url={newest}/index.html">
<a href="{newest}/index.html">Bruit {newest}</a>
"""


def site(into: Path) -> Path:
    """The site of this version below `into`, among those that are there already."""
    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.WARNING)
    config = load_config(str(HERE / "mkdocs.yml"), site_dir=str((into / __version__).resolve()))
    config.plugins.run_event("startup", command="build", dirty=False)
    try:
        build(config)
    finally:
        config.plugins.run_event("shutdown")
    versions = sorted(filter(None, map(_version, into.iterdir())), reverse=True)
    rows = [
        {"version": str(one), "title": str(one), "aliases": ["latest"] if not place else []}
        for place, one in enumerate(versions)
    ]
    (into / "versions.json").write_text(json.dumps(rows, indent=1) + "\n")
    (into / "index.html").write_text(FIRST.format(newest=versions[0]))
    return into / __version__


def packed(built: Path, folder: Path) -> Path:
    """The copy for machines without a network, `bruit docs --copy`; the same pages, the same
    bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"bruit-{built.name}-docs.zip"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(one for one in built.rglob("*") if one.is_file()):
            if path.name != "search_index.json":  # a folder is searched by the script of that name
                entry = zipfile.ZipInfo(path.relative_to(built.parent).as_posix())
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())
    return made


def _version(folder: Path) -> Version | None:
    try:
        return Version(folder.name) if folder.is_dir() else None
    except InvalidVersion:
        return None


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--into", type=Path, default=HERE.parent / "build" / "site")
    asked.add_argument(
        "--zip", type=Path, help="also pack the copy for `bruit docs` into this folder"
    )
    given = asked.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    built = site(given.into)
    size = sum(path.stat().st_size for path in built.rglob("*") if path.is_file())
    sys.stdout.write(f"built {built / 'index.html'} ({size / 1e6:.1f} MB)\n")
    if given.zip:
        copy = packed(built, given.zip)
        sys.stdout.write(f"packed {copy} ({copy.stat().st_size / 1e6:.1f} MB)\n")
