"""The catalog: every figure that some module of `papers/catalog` names in its `FIGURES`, and the
illustrations that have nothing to repeat.

Found by looking into the folder; a new figure is one more entry, named nowhere else.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from bruit.errors import ConfigError
from papers import catalog as entries
from papers.reproduce.figure import DOCUMENTS, Figure, chapter
from papers.reproduce.illustration import Illustration


def figures() -> dict[str, Figure]:
    """All entries by id, in the order of documents and numbers."""
    found: dict[str, Figure] = {}
    taken: set[str] = set()
    for figure in _named("FIGURES"):
        for id in figure.ids:
            if id in taken:
                raise ConfigError(f"two figures have the id {id!r}")
            taken.add(id)
        found[figure.id] = figure
    return dict(sorted(found.items(), key=lambda item: _place(item[0])))


def illustrations() -> dict[str, Illustration]:
    """What the sources print without numbers, by id."""
    found = {one.id: one for one in _named("ILLUSTRATIONS")}
    return dict(sorted(found.items(), key=lambda item: _place(item[0])))


def _named(what: str) -> Iterator[Any]:
    for module in pkgutil.iter_modules(entries.__path__):
        yield from getattr(import_module(f"{entries.__name__}.{module.name}"), what, ())


def _place(id: str) -> tuple[object, ...]:
    """Numbers in the order of numbers: th-6.2 before th-6.10."""
    document, number = id.split("-", 1)
    parts = re.findall(r"\d+|[a-zA-Z]+", number)
    return (
        list(DOCUMENTS).index(document),
        [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts],
    )


def chosen(names: list[str], everything: bool = False) -> list[Figure]:
    """The figures that were asked for: ids, `chapter-6` (of the thesis), `hdr`, `th`, `rep`."""
    known = figures()
    if everything:
        return list(known.values())
    found: dict[str, Figure] = {}
    for name in names:
        matching = {
            id: figure
            for id, figure in known.items()
            if any(
                name in (one, one.split("-")[0])
                or (name == f"chapter-{chapter(one)}" and one.startswith("th-"))
                for one in figure.ids
            )
        }
        if not matching:
            raise ConfigError(_unknown(name, known))
        found |= matching
    return [figure for id, figure in known.items() if id in found]


def _unknown(name: str, known: dict[str, Figure]) -> str:
    shown = illustrations().get(name)
    if shown is not None:
        return f"{name} ({shown.document}, {shown.number}) has no numbers to repeat: {shown.why}"
    near = [id for id in known if name.lower() in id or id in name.lower()]
    start = name.split(".")[0]
    near = near or [id for id in known if id.startswith(start)]
    hint = f"; near it: {', '.join(near[:6])}" if near else ""
    return f"no figure has the id {name!r}{hint}; `bruit reproduce --list` names all {len(known)}"
