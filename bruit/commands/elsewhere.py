"""`--on`: where the many things of a command are done; where that is, is told before it begins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bruit.commands.printing import Printer
from bruit.on.names import place_for
from bruit.on.place import chosen


@contextmanager
def elsewhere(
    on: str | None, printer: Printer, jobs: int = 1, needed: bool = True
) -> Iterator[None]:
    """Inside, many things are done there; nothing is started for what is done already."""
    place = place_for(jobs, on)
    with chosen(place if needed else None) as pool:
        if pool is not None and on is not None:
            printer.note(pool.words)
        yield
