"""Replay: run a trace again in bulk; final states and ledger must agree, whatever latency the first run had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bruit.algorithms.messages import Slots
from bruit.arrays import Array
from bruit.errors import ConformanceError
from bruit.privacy.ledger import Ledger


@dataclass(frozen=True)
class Agreement:
    """How far two runs are apart: largest difference of states, and how many ledger lines were compared."""

    difference: float
    lines: int


def flat(state: Any) -> Array:
    """All numbers of a state in one vector."""
    if isinstance(state, np.ndarray):
        return np.asarray(state, np.float64).ravel()
    if isinstance(state, Slots):
        return state.rows.ravel()
    return np.concatenate([flat(part) for part in state]) if len(state) else np.zeros(0)


def lines(ledger: Ledger) -> list[tuple[int, int, int, str]]:
    """The ledger's lines in a canonical order."""
    columns = [ledger.column(name).tolist() for name in ("peer", "step", "clock", "event")]
    return sorted((p, s, c, repr(ledger.events[e])) for p, s, c, e in zip(*columns, strict=True))


def compare(first: Any, second: Any, tolerance: float = 1e-9) -> Agreement:
    """Raise ConformanceError unless two runs agree: states to the tolerance, ledgers to the line."""
    one, two = flat(first.state), flat(second.state)
    if one.shape != two.shape:
        raise ConformanceError(f"the states have {one.size} and {two.size} numbers")
    scale = max(1.0, float(np.abs(one).max(initial=0.0)))
    difference = float(np.abs(one - two).max(initial=0.0))
    if not difference <= tolerance * scale:
        where = int(np.argmax(np.abs(one - two)))
        raise ConformanceError(f"the final states differ by {difference:.3g} (number {where} of {one.size})")
    left, right = lines(first.ledger), lines(second.ledger)
    if left != right:
        odd = next((a, b) for a, b in zip([*left, None], [*right, None], strict=False) if a != b)
        raise ConformanceError(f"the ledgers differ: {len(left)} and {len(right)} lines, first difference {odd}")
    return Agreement(difference, len(left))
