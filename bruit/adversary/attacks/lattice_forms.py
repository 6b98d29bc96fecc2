"""What observers of averaging heard, in terms of whole numbers they do not know.

    M_w(t) = sum_u c_u X_u + sum_k a_k zeta_k + (what is known) + error             c, a, known: exact fractions

X_u is the noisy value of peer u and zeta_k a dither, whole multiples of the grid; known are the
observers' own messages and all they heard before. A message that was heard is carried on as the
number it was, not as its form, so that the roundings behind it are passed once. The error is what
the arithmetic rounds: a standard deviation, carried along with the forms. Hypotheses: complete
rounds of x <- W x on public graphs, or of x^{t+1} = gamma W x^t + (1 - gamma) x^{t-1}; W and gamma
are rational and public (fp:FP-1, with or without dithers).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.privacy.exact import GraphAt, checked_observers, checked_steps, neighborhood

Key = tuple[int, int]
"""A message, or the dither in it: the round, and who says it."""

Form = dict[tuple[str, int, int], Fraction]
"""Coefficients of ("value", 0, peer), ("dither", round, peer) and ("heard", round, peer)."""


@dataclass(frozen=True)
class NumberFormat:
    """What is public about the numbers that are sent.

    Values lie on multiples of `grid` around a clip `clip` with noise `sigma`; `dither` is the
    standard deviation of what is added to every message, 0 for none; `mixing` says what rounds:
    "float" (53 bits) or "grid" (to the nearest multiple of the grid).
    """

    grid: float
    clip: float
    sigma: float
    dither: float = 0.0
    mixing: Literal["float", "grid"] = "float"

    def __post_init__(self) -> None:
        if not self.grid > 0:
            raise ConfigError(
                f"the lattice attack needs values on multiples of a known step, found the step"
                f" {self.grid}; plain floats have none"
            )
        if not (self.clip > 0 and self.sigma > 0 and self.dither >= 0):
            raise ConfigError(
                "the lattice attack needs a clip and noise above 0 and a dither that is not"
                f" negative, found {self.clip}, {self.sigma} and {self.dither}"
            )

    @property
    def spread(self) -> float:
        """The size of a noisy value: the root of its mean square for data at the clip."""
        return float(np.hypot(self.clip, self.sigma))

    def rounding(self, parts: Array, whole: float) -> float:
        """The variance of what one sum of parts of these sizes, `whole` together, rounds away.

        A float of size s is off by about 0.41 units of 2^-53 s: each product, each sum on the way.
        (The weights of float mixing are taken as the floats they are.)
        """
        if self.mixing == "grid":
            return self.grid**2 / 12
        return 2.0**-106 / 6 * float(parts @ parts + len(parts) / 2 * whole**2)


@dataclass(frozen=True, kw_only=True)
class ViewMessages:
    """The messages of one view: a row each, over the values of `peers`, the `dithers`, and what is
    known."""

    observers: Ints
    arithmetic: NumberFormat
    keys: tuple[Key, ...]
    peers: Ints  # whose values the messages depend on, observers aside
    dithers: tuple[Key, ...]
    of_values: list[list[Fraction]]  # (keys, peers)
    of_dithers: list[list[Fraction]]  # (keys, dithers)
    known: list[dict[Key, Fraction]]
    error: Array  # (keys,) variance of what was rounded; 0: exact

    def right(self, said: Array) -> list[Fraction]:
        """What the unknowns of each message add up to, when everybody `said` these numbers
        # (rounds, n) -> (keys,).

        Only numbers that the observers said or heard are looked at.
        """
        totals = []
        for key, known in zip(self.keys, self.known, strict=True):
            own = sum(
                (weight * Fraction(float(said[place])) for place, weight in known.items()),
                Fraction(0),
            )
            totals.append(Fraction(float(said[key])) - own)
        return totals


def heard_forms(
    graphs: GraphAt,
    n: int,
    steps: int,
    observers: Sequence[int] | Ints,
    arithmetic: NumberFormat,
    gamma: float | None = None,
    messages: int | None = None,
) -> ViewMessages:
    """The forms of what the observers (a set) hear in so many rounds, accelerated by `gamma` if
    there is one.

    `messages`: only the first so many of them are used.
    """
    chosen = checked_observers(n, observers)
    now = _Round([{("value", 0, u): Fraction(1)} for u in range(n)], np.zeros(n), np.eye(n))
    before = now
    keys, rows, errors = [], [], []
    for t in range(checked_steps(steps)):
        graph = graphs(t)
        if arithmetic.dither:
            for u in range(n):
                now.forms[u][("dither", t, u)] = Fraction(1)
        senders = neighborhood(graph, chosen).tolist()
        keys += [(t, w) for w in senders]
        rows += [now.forms[w] for w in senders]
        errors += [float(now.error[w]) for w in senders]
        for w in [*senders, *chosen.tolist()]:
            now.forms[w], now.error[w] = {("heard", t, w): Fraction(1)}, 0.0
        if t + 1 < steps:
            factor = Fraction(1 if gamma is None or t == 0 else gamma)
            before, now = now, _mixed(now, before, graph, factor, arithmetic)
    return _stacked(chosen, arithmetic, keys[:messages], rows[:messages], errors[:messages])


class _Round(NamedTuple):
    """What everybody says in one round: forms, the variance of their errors, and rows over all
    values in floats."""

    forms: list[Form]
    error: Array  # (n,)
    rows: Array  # (n, n)


def _mixed(
    now: _Round, before: _Round, graph: Graph, factor: Fraction, arithmetic: NumberFormat
) -> _Round:
    """The next round: factor W x^t + (1 - factor) x^{t-1}."""
    rest = float(1 - factor)
    rows = float(factor) * np.asarray(graph.weights @ now.rows) + rest * before.rows
    size, old, new = (
        arithmetic.spread * np.linalg.norm(some, axis=1) for some in (now.rows, before.rows, rows)
    )
    forms, error = [], np.zeros(graph.n)
    table = graph.weights
    for i in range(graph.n):
        here = slice(table.indptr[i], table.indptr[i + 1])
        around = table.indices[here].tolist()
        exact = (
            [Fraction(weight) for weight in table.data[here].tolist()]
            if arithmetic.mixing == "float"
            else [graph.fraction(i, j) for j in around]
        )
        weights = [factor * weight for weight in exact]
        share = np.array([float(weight) for weight in weights])
        parts = np.append(share * size[around], rest * old[i])
        passed = float(share**2 @ now.error[around]) + rest**2 * before.error[i]
        error[i] = passed + arithmetic.rounding(parts, new[i])
        forms.append(
            _combined(
                [
                    *zip(weights, (now.forms[j] for j in around), strict=True),
                    (1 - factor, before.forms[i]),
                ]
            )
        )
    return _Round(forms, error, rows)


def _combined(parts: list[tuple[Fraction, Form]]) -> Form:
    found: Form = {}
    for weight, form in parts:
        if weight:
            for name, part in form.items():
                found[name] = found.get(name, Fraction(0)) + weight * part
    return found


def _stacked(
    observers: Ints,
    arithmetic: NumberFormat,
    keys: list[Key],
    rows: list[Form],
    errors: list[float],
) -> ViewMessages:
    names = sorted({name for row in rows for name in row})
    peers = [u for kind, _, u in names if kind == "value"]
    dithers = [(t, u) for kind, t, u in names if kind == "dither"]
    none = Fraction(0)
    return ViewMessages(
        observers=observers,
        arithmetic=arithmetic,
        keys=tuple(keys),
        peers=np.array(peers, np.int64),
        dithers=tuple(dithers),
        of_values=[[row.get(("value", 0, u), none) for u in peers] for row in rows],
        of_dithers=[[row.get(("dither", t, u), none) for t, u in dithers] for row in rows],
        known=[
            {(t, u): weight for (kind, t, u), weight in row.items() if kind == "heard"}
            for row in rows
        ],
        error=np.array(errors, np.float64),
    )
