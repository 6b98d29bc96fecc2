"""The numbers behind each figure as columns: figures, folded tables, CSV files and plots all read
these."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.files import write_whole
from bruit.privacy.charge import charged_locally
from bruit.privacy.ledger import Ledger
from bruit.privacy.theorem import Facts
from bruit.runs.result import Run
from bruit.show.report.story import Story

SEARCHES = 2048  # peers from which distances are measured; beyond, evenly chosen ones
MOMENTS = 60  # at which spending is shown
PROFILES = 200  # different spendings that are not Gaussian and composed one by one
FULL = 512  # peers whose pairs are all written to a CSV file


@dataclass(frozen=True, eq=False)
class NamedColumns:
    """A small table: named columns of equal length."""

    names: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def column(self, name: str) -> Array:
        place = self.names.index(name)
        return np.array([row[place] for row in self.rows], np.float64)


def utility(story: Story) -> NamedColumns:
    """Every score at every step it was measured at."""
    names = story.run.metrics.names()
    rows = [
        (step, *(float(row.get(name, np.nan)) for name in names))
        for step, row in zip(story.run.metrics.steps, story.run.metrics.rows, strict=True)
    ]
    return NamedColumns(("step", *names), rows)


def distance(story: Story) -> NamedColumns:
    """Loss by hops in the graph of who talked to whom: how many pairs, least, mean and largest
    loss, its epsilon."""
    if story.losses is None:
        return NamedColumns(("hops", "pairs", "least", "mean", "largest", "epsilon"), [])
    n = story.run.n
    seen_by = np.unique(np.linspace(0, n - 1, min(n, SEARCHES)).astype(np.int64))
    hops = np.stack([story.graph.distances(int(v)) for v in seen_by], axis=1)  # (n, searches)
    losses = story.losses[:, seen_by]
    rows = []
    for far in np.unique(hops).tolist():
        found = losses[hops == far]
        found = found[~np.isnan(found)]
        if len(found):
            rows.append(
                (far, len(found), float(found.min()), float(found.mean()), float(found.max()))
            )
    spent = story.epsilons(np.array([row[-1] for row in rows]))
    return NamedColumns(
        ("hops", "pairs", "least", "mean", "largest", "epsilon"),
        [(*row, epsilon) for row, epsilon in zip(rows, spent.tolist(), strict=True)],
    )


def clocks(run: Run) -> Ints:
    """When each line of the ledger was written; a run that followed another goes on where that one
    stopped."""
    own = run.ledger.column("clock")
    if run.before is None:
        return own
    earlier = clocks(run.before)
    begin = run.before.steps if not len(earlier) else max(run.before.steps, int(earlier.max()) + 1)
    return np.concatenate([earlier, own[len(earlier) :] + begin])


def _end(run: Run) -> int:
    """The last position of the clock, whether or not anything was released there."""
    return run.steps if run.before is None else _end(run.before) + run.steps


@dataclass(frozen=True, eq=False)
class SpendingCurve:
    """What local DP has charged every peer so far, at some moments."""

    moments: Ints  # (moments,)
    epsilons: Array  # (moments, n)

    def columns(self) -> NamedColumns:
        names = ("clock", "least", "median", "most")
        three = (
            self.epsilons.min(axis=1),
            np.median(self.epsilons, axis=1),
            self.epsilons.max(axis=1),
        )
        return NamedColumns(
            names, list(zip(self.moments.tolist(), *(part.tolist() for part in three), strict=True))
        )


def spending(story: Story) -> SpendingCurve:
    """Epsilon against everybody of what each peer's ledger lines say up to each moment
    (gossip:DP-8); under masks, what budgets charge: against as many as the noise was made for."""
    run = story.run
    clock, peer, kind = clocks(run), run.ledger.column("peer"), run.ledger.column("event")
    distinct = np.unique(clock)
    moments = distinct[
        np.unique(np.linspace(0, len(distinct) - 1, min(len(distinct), MOMENTS)).astype(int))
    ]
    if len(moments):
        moments = np.union1d(moments, [_end(run)])
    facts, rows = run.facts(), []
    for moment in moments.tolist():
        ledger = Ledger(peers=run.n)
        for k, event in enumerate(run.ledger.events):
            lines = (kind == k) & (clock <= moment)
            ledger.record(peer[lines], peer[lines], clock[lines], event.promised())
        rows.append(_local_epsilons(replace(facts, ledger=ledger), story.delta))
    return SpendingCurve(moments, np.array(rows).reshape(len(moments), run.n))


def _local_epsilons(facts: Facts, delta: float) -> Array:
    """The local-DP epsilon of every peer."""
    charge = charged_locally(facts)
    if charge.counts is not None and charge.kinds() > PROFILES:
        raise ConfigError(
            f"more than {PROFILES} different spendings that are not Gaussian;"
            " ask for single peers with `bruit epsilon`"
        )
    return charge.epsilons(delta)


def pairs(story: Story) -> NamedColumns:
    """Every pair, or for large networks the worst observer of each peer."""
    names = ("of", "seen_by", "loss", "epsilon")
    if story.losses is None or story.run.n < 2:
        return NamedColumns(names, [])
    if story.run.n <= FULL:
        of, seen_by = np.nonzero(~np.isnan(story.losses))
    else:
        of, seen_by = np.arange(story.run.n), np.nanargmax(story.losses, axis=1)
    found = story.losses[of, seen_by]
    rounding = None if story.rounding is None else story.rounding[of, seen_by]
    parts = (of, seen_by, found, story.epsilons(found, rounding))
    return NamedColumns(names, list(zip(*(part.tolist() for part in parts), strict=True)))


FIGURES: dict[str, Callable[[Story], NamedColumns]] = {
    "utility": utility,
    "distance": distance,
    "budget": lambda story: spending(story).columns(),
    "losses": pairs,
}


def to_csv(columns: NamedColumns) -> str:
    """The table as CSV text."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(columns.names)
    writer.writerows(columns.rows)
    return stream.getvalue()


def write_csv(story: Story, folder: str | Path) -> list[Path]:
    """One CSV file per figure in a folder, which is made if need be."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write into {place}: {error.strerror or error}") from None
    written = []
    for name, figure in FIGURES.items():
        content = to_csv(figure(story)).encode()
        write_whole(place / f"{name}.csv", lambda stream, content=content: stream.write(content))  # type: ignore[misc]
        written.append(place / f"{name}.csv")
    return written
