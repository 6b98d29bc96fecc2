"""Where `bruit run` puts a run: a name of its own, so that no run ever takes the place of another.

    runs/NAME-seed3.run      the first one               runs/NAME-seed3-2.run      another one, of a changed file

The same experiment (file, data, options; the seed is one of them) has one place: a whole run that
is there already is shown and not run again, and one that was interrupted is replaced by the whole
one. `--force` runs it again.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from bruit.errors import ConfigError
from bruit.runs.folder.writing import check_folder
from bruit.runs.result import Run

RUNS, SUFFIX = Path("runs"), ".run"


class Place(NamedTuple):
    """A run folder to be written: what it holds of this run already, and whether what is there is
    replaced."""

    folder: Path
    holds: Literal["nothing", "same", "interrupted"] = "nothing"
    replaced: bool = False


def numbered(first: Path) -> Iterator[Path]:
    """x.run, x-2.run, x-3.run ..."""
    yield first
    for number in itertools.count(2):
        yield first.with_name(f"{first.stem}-{number}{first.suffix}")


def place_of(name: str, seed: int, identity: str, force: bool) -> Place:
    """The place of a run that nobody named; by force that of the same run, else the first."""
    first = RUNS / f"{name}-seed{seed}{SUFFIX}"
    for folder in numbered(first):
        if not folder.exists():
            return _possible(Place(first, replaced=first.exists()) if force else Place(folder))
        found = holds(folder, identity)
        if found is not None:
            if found == "same" and not force:
                return Place(folder, found)  # nothing is written
            return _possible(Place(folder, "nothing" if force else found, True))
    raise ConfigError("there is no free name left")  # numbers do not end


def named_place(folder: Path, identity: str, force: bool) -> Place:
    """A place that somebody named: free, or of the same run, interrupted, or given up by
    --force."""
    if not folder.exists() or force:
        return _possible(Place(folder, replaced=force))
    if holds(folder, identity) == "interrupted":
        return _possible(Place(folder, "interrupted", replaced=True))
    raise ConfigError(f"{folder} exists; choose another --out or add --force")


def _possible(place: Place) -> Place:
    """The same place, if a run can be written there: said before the run, not after it."""
    check_folder(place.folder)
    return place


def holds(folder: Path, identity: str) -> Literal["same", "interrupted"] | None:
    """Whether a folder holds this very run; a broken or foreign one does not."""
    manifest = manifest_of(folder)
    if not identity or manifest.get("identity") != identity:
        return None
    return "same" if manifest.get("interrupted") is None else "interrupted"


def manifest_of(folder: Path) -> dict[str, Any]:
    """What a folder says of itself; empty if that cannot be read."""
    try:
        content = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def begins_with(whole: Run, part: Run) -> bool:
    """Whether an interrupted run is the beginning of a whole one: the same releases, and the same
    scores."""
    lines = len(part.ledger)
    same = all(
        np.array_equal(whole.ledger.column(name)[:lines], part.ledger.column(name))
        for name in ("peer", "step", "clock")
    )
    scores = dict(zip(whole.metrics.steps, whole.metrics.rows, strict=True))
    return same and all(
        scores.get(step, row) == row
        for step, row in zip(part.metrics.steps, part.metrics.rows, strict=True)
    )


def one_story(whole: Run, kept: Run) -> bool:
    """Whether a whole run took the place of one that was kept when it was interrupted; refused if
    it begins otherwise."""
    if whole.interrupted is not None:
        return False
    if not begins_with(whole, kept):
        raise ConfigError(
            f"what was kept of this run, {kept.stopped_words()}, is not how it began now: its data"
            " or bruit itself changed; add --force to replace it"
        )
    return True


def farther(kept: Run, again: Run) -> bool:
    """Whether both are interrupted runs of one story, and the kept one got farther."""
    if kept.interrupted is None or again.interrupted is None:
        return False
    return kept.interrupted[0] > again.interrupted[0] and begins_with(kept, again)


def save(run: Run, place: Place, named: bool) -> Path:
    """Write the run; if somebody else took the name meanwhile, the next free one (a named place is
    refused then)."""
    if named or place.replaced:
        return run.save(place.folder, overwrite=place.replaced)
    for folder in numbered(place.folder):
        if not folder.exists():
            try:
                return run.save(folder)
            except ConfigError:
                if not folder.exists():
                    raise
    raise ConfigError("there is no free name left")  # numbers do not end
