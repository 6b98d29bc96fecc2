"""Replay: run a trace again in bulk; final states and ledger must agree, whatever latency the first
run had."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bruit.algorithms.messages import Slots
from bruit.arrays import Array
from bruit.errors import ConformanceError
from bruit.privacy.ledger import Ledger

Line = tuple[int, int, int, str]  # peer, step, clock, event


@dataclass(frozen=True)
class ReplayDifference:
    """How far two runs are apart: largest difference of states, and how many ledger lines were
    compared."""

    difference: float
    lines: int


def flat(state: Any) -> Array:
    """All numbers of a state in one vector."""
    if isinstance(state, np.ndarray):
        return np.asarray(state, np.float64).ravel()
    if isinstance(state, Slots):
        return state.rows.ravel()
    return np.concatenate([flat(part) for part in state]) if len(state) else np.zeros(0)


def parts(state: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every array and every `Slots` of a state or a message, with the name of its field: "model",
    "own.point"."""
    if isinstance(state, np.ndarray | Slots):
        yield name, state
        return
    for place, part in enumerate(state):
        field = getattr(state, "_fields", range(len(state)))[place]
        yield from parts(part, f"{name}.{field}" if name else str(field))


class Difference(NamedTuple):
    """Where two states or messages of the same peers are farthest apart."""

    field: str
    lane: int  # which row, of the batch
    neighbor: int | None  # for whom, in a row that a peer keeps or says per neighbor
    number: int  # which number of the row
    amount: float

    def words(self, peer: int | None = None) -> str:
        """In words; a row that is a peer's is named by it."""
        whose = (
            ""
            if peer is None
            else f", peer {peer}" + ("" if self.neighbor is None else f" for {self.neighbor}")
        )
        return (
            f"{f'field {self.field!r}' if self.field else 'the row'}{whose}, number {self.number}"
        )


def farthest(one: Any, two: Any) -> Difference | None:
    """The largest difference, None if there is none; what is not a number is as far as can be."""
    worst: Difference | None = None
    for (field, left), (_, right) in zip(parts(one), parts(two), strict=True):
        a, b = (
            np.asarray(part.rows if isinstance(part, Slots) else part, np.float64)
            for part in (left, right)
        )
        if a.shape != b.shape:
            return Difference(field, 0, None, 0, math.inf)
        gap = np.abs(a - b)
        gap = np.where(np.isnan(gap), math.inf, gap)
        if not gap.size or gap.max() <= (0.0 if worst is None else worst.amount):
            continue
        row, number = divmod(int(gap.argmax()), max(1, gap[0].size))
        lane, neighbor = row, None
        if isinstance(left, Slots):
            lane, neighbor = (
                int(np.searchsorted(left.start, row, side="right")) - 1,
                int(left.peers[row]),
            )
        worst = Difference(field, lane, neighbor, number, float(gap.max()))
    return worst


def lines(ledger: Ledger) -> list[Line]:
    """The ledger's lines in a canonical order."""
    columns = [ledger.column(name).tolist() for name in ("peer", "step", "clock", "event")]
    return sorted((p, s, c, repr(ledger.events[e])) for p, s, c, e in zip(*columns, strict=True))


def compare(first: Any, second: Any, tolerance: float = 1e-9) -> ReplayDifference:
    """Raise ConformanceError unless two runs agree: states to the tolerance, ledgers to the
    line."""
    sizes = [
        [(field, flat(part).size) for field, part in parts(run.state)] for run in (first, second)
    ]
    if sizes[0] != sizes[1]:
        (field, one), (_, two) = next(
            pair for pair in zip(*sizes, strict=False) if pair[0] != pair[1]
        )
        raise ConformanceError(
            f"the states differ in size: field {field!r} has {one} and {two} numbers"
        )
    scale = max(1.0, float(np.abs(flat(first.state)).max(initial=0.0)))
    found = farthest(first.state, second.state)
    if found is not None and not found.amount <= tolerance * scale:
        raise ConformanceError(
            f"the final states differ by {found.amount:.3g}: {found.words(found.lane)}"
        )
    left, right = lines(first.ledger), lines(second.ledger)
    if left != right:
        raise ConformanceError(
            f"the ledgers differ: {len(left)} and {len(right)} lines, {odd_line(left, right)}"
        )
    return ReplayDifference(0.0 if found is None else found.amount, len(left))


def odd_line(left: list[Line], right: list[Line]) -> str:
    """The first line that one ledger has and the other does not, in words."""
    one, two = next(
        pair for pair in zip([*left, None], [*right, None], strict=False) if pair[0] != pair[1]
    )
    peer, step, clock, event = min(line for line in (one, two) if line is not None)
    which = "first" if (peer, step, clock, event) == one else "second"
    return f"of peer {peer} at step {step}, clock {clock}, only the {which} has {event}"
