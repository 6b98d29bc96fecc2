"""Repeat many figures, some at a time: what is there from before is kept, one that fails stops no
other."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bruit.errors import BruitError
from bruit.on import Workplace, chosen, place_for
from bruit.on.place import GONE, each
from papers.reproduce import shelf
from papers.reproduce.catalog import figures
from papers.reproduce.figure import Figure
from papers.reproduce.shelf import Outcome
from papers.reproduce.sources import Stamp

Told = Callable[[Outcome, int, int], None]


def work(
    wanted: Sequence[Figure],
    out: Path,
    *,
    quick: bool = False,
    jobs: int = 1,
    on: Workplace | str | None = None,
    anew: bool = False,
    tell: Told | None = None,
) -> list[Outcome]:
    """The outcomes of all wanted figures, in their order."""
    found = {} if anew else {one.id: shelf.kept(out, one, quick) for one in wanted}
    done = {id: outcome for id, outcome in found.items() if outcome is not None}
    for outcome in done.values():
        if tell is not None:
            tell(outcome, len(done), len(wanted))
    missing = [one for one in sorted(wanted, key=lambda one: -one.cpu_s) if one.id not in done]
    asked = [(one.id, Stamp.of(one.repeat)) for one in missing]
    if missing:  # what would make all of them fail is said once, before anything is computed
        shelf.opened(out)
    try:
        with chosen(place_for(jobs, on) if len(asked) > 1 else None):
            for (id, _), made in each(partial(_one, quick=quick), asked, _gone):
                outcome = done[id] = shelf.brought(made.outcome, out, made.files)
                if tell is not None:
                    tell(outcome, len(done), len(wanted))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{len(done)} of {len(wanted)} figures are in {out}; the same command does the others"
        ) from None
    return [done[one.id] for one in wanted]


class _Made(NamedTuple):
    """How a figure ended, wherever it was computed, with its files: that may be another machine."""

    outcome: Outcome
    files: dict[str, bytes]


def _one(asked: tuple[str, Stamp], *, quick: bool) -> _Made:
    """One figure in this process; whatever goes wrong in it is its outcome."""
    figure = figures()[asked[0]]
    with TemporaryDirectory() as name:
        out = Path(name)
        try:
            outcome = shelf.repeat(figure, out, quick, asked[1])
        except BruitError as error:
            return _Made(shelf.failed(figure, out, str(error)), {})
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(frame.filename).name}:{frame.lineno}"
            words = f"{type(error).__name__} at {place}: {error}"
            return _Made(shelf.failed(figure, out, words), {})
        return _Made(outcome, {one.name: one.read_bytes() for one in outcome.folder.iterdir()})


def _gone(asked: tuple[str, Stamp]) -> _Made:
    return _Made(shelf.failed(figures()[asked[0]], Path(), GONE), {})
