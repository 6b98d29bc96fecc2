"""What a report tells: a run, its privacy table and its pairs, accounted for once and shared by all
sections."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.graphs.coordinates import Picture, coordinates, talking
from bruit.privacy.charge import Charge
from bruit.privacy.guarantee import Guarantee, level_words, status_words
from bruit.privacy.pair_table import Summary
from bruit.runs.attempts import Attempts, attempts
from bruit.runs.both_levels import BothLevels, both_levels
from bruit.runs.result import Run, load

MOST_PEERS = 8192  # a matrix of all pairs is 8 bytes a pair
LARGEST_FINDING = 2**20  # bytes of attack.json or audit.json that are read
FINDINGS = ("attack", "audit")

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class Story:
    """One run as a report sees it. `losses` is None where pairs have no loss of their own; `reason`
    says why."""

    name: str
    run: Run
    delta: float
    summary: Summary
    losses: Array | None
    reason: str = ""
    rounding: Array | None = None  # R of every pair
    folder: Path | None = None

    @cached_property
    def graph(self) -> Graph:
        """Who talked to whom: the graph, or all links of the first rounds of a changing one."""
        return talking(self.run.graph, self.run.steps)

    @cached_property
    def picture(self) -> Picture:
        """How its graph is drawn."""
        return coordinates(self.run.graph, self.run.steps)

    @cached_property
    def worst(self) -> tuple[int, int] | None:
        """The pair (of, seen by) with the largest loss."""
        if self.losses is None or self.run.n < 2:
            return None
        of, seen_by = np.unravel_index(int(np.nanargmax(self.losses)), self.losses.shape)
        return int(of), int(seen_by)

    @cached_property
    def statement(self) -> Guarantee:
        """The statement about the worst pair; where pairs are not told apart about any of them, or
        about everybody."""
        if self.worst is None:
            pair = self.run.accountant().any_pair(self.delta)
            return self.run.guarantee(delta=self.delta) if pair is None else pair
        return self.run.guarantee(*self.worst, self.delta)

    @cached_property
    def levels(self) -> BothLevels | None:
        """Each record and a peer as a whole, for a run at record level."""
        return both_levels(self.run, self.summary.epsilons[0], self.delta)

    @cached_property
    def attempts(self) -> Attempts | None:
        """Who spoke when, and what was promised, for a run with masks."""
        return attempts(self.run, self.delta)

    def epsilons(self, losses: Array, rounding: Array | None = None) -> Array:
        """The epsilon of each loss at the report's delta (gossip:DP-1), for what was sent; without
        noise any loss is infinite. Where pairs are joined to one loss R is the largest, and no pair
        is above the worst."""
        most = 0.0 if self.rounding is None else float(self.rounding.max(initial=0.0))
        found = Charge(
            np.asarray(losses, np.float64),
            self.summary.noise_multiplier,
            rounding=most if rounding is None else rounding,
        ).epsilons(self.delta)
        return np.minimum(found, self.summary.epsilons[0])

    @property
    def terms(self) -> str:
        """What belongs to every epsilon: delta, level and, where it is known, what two neighboring
        inputs are."""
        protected = level_words(self.summary.level, self.summary.adjacency)
        in_words = f"delta = {self.summary.delta:g}, {protected}"
        mechanism = self.run.privacy
        if (
            mechanism is not None
            and self.summary.level == "user"
            and math.isfinite(mechanism.clip)
            and mechanism.sensitivity == 2 * mechanism.clip
        ):
            in_words += ", replace"
        return in_words + (
            f"; {status_words(self.summary.status)}" if self.summary.status == "ideal" else ""
        )

    @property
    def source(self) -> str:
        """Where the numbers of a figure come from."""
        return f"Source: {self.name}, {self.run.algorithm.name()} on {self.run.graph.name}, seed {self.run.seed}"

    def label(self, peer: int) -> str:
        """A peer's number, with its name in the graph if it has one."""
        labels = self.graph.labels
        return (
            f"peer {peer}"
            if labels is None or labels[peer] == str(peer)
            else f"peer {peer} ({labels[peer]})"
        )

    @cached_property
    def metric(self) -> str | None:
        """The score the task cares about."""
        names = self.run.metrics.names()
        wanted = self.run.task.get("metric")
        return str(wanted) if wanted in names else (names[0] if names else None)


def tell(
    run: Run,
    delta: float | None = None,
    progress: Progress | None = None,
    name: str = "this run",
    folder: Path | None = None,
) -> Story:
    """Account for a run once, and keep what the sections need; by default at the delta of its
    experiment."""
    delta = run.delta if delta is None else delta
    if run.n > MOST_PEERS:
        raise ConfigError(
            f"a report shows all pairs of at most {MOST_PEERS} peers, found {run.n};"
            " ask for single pairs with `bruit epsilon`"
        )
    found = run.accountant().table(delta, progress=progress)
    return Story(
        name=name,
        run=run,
        delta=delta,
        summary=found.summary,
        losses=found.losses,
        reason=found.reason,
        rounding=found.rounding,
        folder=folder,
    )


def open_story(
    source: Run | str | Path, delta: float | None = None, progress: Progress | None = None
) -> Story:
    """The story of a run, or of the run in a folder."""
    if isinstance(source, Run):
        return tell(source, delta, progress)
    folder = Path(source)
    return tell(load(folder), delta, progress, folder.name or str(folder), folder)


def finding(story: Story, kind: str) -> dict[str, Any] | str | None:
    """What attack.json or audit.json in the run folder says; a sentence when it cannot be read;
    None without one."""
    path = None if story.folder is None else story.folder / f"{kind}.json"
    if path is None or not path.is_file():
        return None
    try:
        if path.stat().st_size > LARGEST_FINDING:
            return f"{path.name} is larger than {LARGEST_FINDING} bytes, so it is not shown"
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        return f"{path.name} is broken and not shown: {error}"
    return (
        content
        if isinstance(content, dict)
        else f"{path.name} does not hold a record, so it is not shown"
    )
