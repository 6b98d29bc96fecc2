"""Repeat many figures, some at a time: what is there from before is kept, one that fails stops no
other."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bruit.errors import BruitError
from bruit.on import Workplace, chosen, place_for
from bruit.on.place import GONE, each
from papers.reproduce import shelf
from papers.reproduce.catalog import figures
from papers.reproduce.figure import Figure
from papers.reproduce.shelf import Outcome

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
    missing = [one.id for one in sorted(wanted, key=lambda one: -one.cpu_s) if one.id not in done]
    try:
        with chosen(place_for(jobs, on) if len(missing) > 1 else None):
            one = partial(_one, out=out, quick=quick)
            for id, outcome in each(one, missing, partial(_gone, out=out)):
                done[id] = outcome
                if tell is not None:
                    tell(outcome, len(done), len(wanted))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{len(done)} of {len(wanted)} figures are in {out}; the same command does the others"
        ) from None
    return [done[one.id] for one in wanted]


def _one(id: str, *, out: Path, quick: bool) -> Outcome:
    """One figure in this process; whatever goes wrong in it is its outcome."""
    figure = figures()[id]
    try:
        return shelf.repeat(figure, out, quick)
    except BruitError as error:
        return shelf.failed(figure, out, str(error))
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        return shelf.failed(figure, out, f"{type(error).__name__} at {place}: {error}")


def _gone(id: str, *, out: Path) -> Outcome:
    return shelf.failed(figures()[id], out, GONE)
