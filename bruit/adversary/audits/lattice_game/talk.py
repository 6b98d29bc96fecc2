"""Messages for the lattice attack: averaging of single noisy numbers in three arithmetics.

    sent       as the package sends them: its own engine, mechanism and messages
    float      values on multiples of about sigma 2^-bits, mixed in floats, as this package did once
    dithered   the protocol of fp:FP-1 in whole numbers, written again here so that it shares no code with the package

The last two are demonstrations: their noise is a rounded normal, not an exact discrete Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from bruit.adversary.attacks import starting_values
from bruit.adversary.attacks.lattice_forms import NumberFormat
from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.gossip.averaging import Averaging
from bruit.algorithms.gossip.chebyshev import Chebyshev
from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.mechanisms import Gaussian, Mechanism
from bruit.privacy.exact import checked_observers, neighborhood
from bruit.randomness import Replay
from bruit.runs.run import run
from bruit.tasks import Mean

Numbers = Literal["sent", "float", "dithered"]
NUMBERS: tuple[Numbers, ...] = ("sent", "float", "dithered")


class Talk(NamedTuple):
    """One trial: the noisy values, and what everybody said in every round (nan where nobody
    listened)."""

    values: Array  # (n,)
    said: Array  # (rounds, n)


@dataclass(frozen=True, kw_only=True)
class LatticeTarget:
    """What is attacked: averaging or accelerated gossip of single numbers under Gaussian noise.

    `bits` and `dither_bits` are read by the arithmetics `float` and `dithered`: values on the
    largest power of two up to sigma 2^-bits, dithers of standard deviation sigma 2^-dither_bits.
    """

    algorithm: Algorithm[Any]
    graph: Graph | GraphSequence
    mechanism: Mechanism | None
    steps: int
    numbers: Numbers = "sent"
    bits: int = 20
    dither_bits: int = 10

    def __post_init__(self) -> None:
        if self.numbers not in NUMBERS:
            raise ConfigError(f"numbers are {', '.join(NUMBERS)}, found {self.numbers!r}")
        if not 0 <= self.bits <= 48:
            raise ConfigError(f"a grid of sigma 2^-bits takes 0 to 48 bits, found {self.bits}")

    @property
    def noise(self) -> Gaussian:
        """The noise, if it is one this attack knows."""
        if not isinstance(self.algorithm, (Averaging, Chebyshev)):
            raise ConfigError(
                f"the lattice attack takes messages of averaging or chebyshev apart, found"
                f" {self.algorithm.name()}"
            )
        if not isinstance(self.mechanism, Gaussian) or not self.mechanism.sigma:
            found = "none" if self.mechanism is None else self.mechanism.kind
            raise ConfigError(
                f"the lattice attack looks for values under Gaussian noise, found {found};"
                " without noise, ask bruit attack reconstruct"
            )
        return self.mechanism

    @property
    def gamma(self) -> float | None:
        """How accelerated gossip steps beyond the mean."""
        if isinstance(self.algorithm, Chebyshev):
            return self.algorithm.prepare(self.graph, self.steps).gamma
        return None

    def at(self, t: int) -> Graph:
        return self.graph if isinstance(self.graph, Graph) else self.graph.at(t)

    @property
    def arithmetic(self) -> NumberFormat:
        """What is public about the numbers."""
        noise = self.noise
        if self.numbers == "sent":
            public = self.algorithm.prepare(self.graph, self.steps)
            facts = public.exchange if isinstance(self.algorithm, Chebyshev) else public
            if facts.radices:
                raise ConfigError(
                    "in a butterfly peers send sums of whole numbers, which hold no more digits"
                    " than their values do: there is no lattice to reduce"
                )
            grid = noise.fine_grid(1.0, facts.data, facts.noise)
            return NumberFormat(grid, noise.clip, noise.sigma, facts.dither * noise.sigma, "grid")
        grid = 2.0 ** (math.frexp(noise.sigma * 2.0**-self.bits)[1] - 1)
        if self.numbers == "float":
            return NumberFormat(grid, noise.clip, noise.sigma)
        return NumberFormat(
            grid, noise.clip, noise.sigma, noise.sigma * 2.0**-self.dither_bits, "grid"
        )

    def talk(self, observers: Sequence[int], data: Array, seed: int, trial: int) -> Talk:
        """One trial on these numbers, one a peer."""
        if self.numbers == "sent":
            return self._sent(observers, data, seed, trial)
        arithmetic = self.arithmetic
        dice, peers = Replay(seed), np.arange(self.graph.n)
        drawn = arithmetic.sigma * dice.normal("lattice noise", peers, trial)[:, 0]
        values = np.trunc(data / arithmetic.grid) + np.rint(
            drawn / arithmetic.grid
        )  # in steps of the grid
        if self.numbers == "float":
            return Talk(values * arithmetic.grid, self._floats(values * arithmetic.grid))
        dithers = (
            arithmetic.dither
            * dice.normal("lattice dither", peers, trial, count=max(1, self.steps)).T
        )
        messages = self._dithered(values, np.rint(dithers / arithmetic.grid))
        return Talk(values * arithmetic.grid, messages * arithmetic.grid)

    def _sent(self, observers: Sequence[int], data: Array, seed: int, trial: int) -> Talk:
        """A run of the package: what these peers heard, and what they said to those they heard."""
        chosen, task = checked_observers(self.graph.n, observers), Mean(data[:, None])
        around = [neighborhood(self.at(t), chosen) for t in range(self.steps)]
        watch = np.unique(np.concatenate([chosen, *around])).tolist()
        done = run(
            self.algorithm,
            self.graph,
            task,
            privacy=self.mechanism,
            steps=self.steps,
            seed=_mixed(seed, trial),
            watch=watch,
            evaluate_every=0,
        )
        messages = np.full((self.steps, self.graph.n), np.nan)
        for message in done.trace.received:
            messages[message.clock, message.sender] = np.asarray(message.row)[0, 0]
        return Talk(starting_values(done, task)[:, 0], messages)

    def _floats(self, values: Array) -> Array:
        messages, gamma = [values], self.gamma
        for t in range(self.steps - 1):
            mixed = np.asarray(self.at(t).weights @ messages[-1])
            messages.append(
                mixed if gamma is None or t == 0 else gamma * mixed + (1 - gamma) * messages[-2]
            )
        return np.stack(messages)  # (rounds, n)

    def _dithered(self, values: Array, dithers: Array) -> Array:
        """Y(t+1) = round(W M(t)), M(t) = Y(t) + zeta(t), exactly: fractions in, the nearest whole
        number out."""
        state, messages, gamma = [int(x) for x in values], [], self.gamma
        for t in range(self.steps):
            messages.append([y + int(z) for y, z in zip(state, dithers[t], strict=True)])
            factor = Fraction(1 if gamma is None or t == 0 else gamma)
            past = messages[-2] if factor != 1 else [0] * len(state)
            means = [
                Fraction(sum(part * messages[-1][j] for j, part in row), whole)
                for row, whole in self._whole_weights[t if len(self._whole_weights) > 1 else 0]
            ]
            state = [
                round(factor * mean + (1 - factor) * old)
                for mean, old in zip(means, past, strict=True)
            ]
        return np.array(messages, dtype=np.float64)  # (rounds, n)

    @cached_property
    def _whole_weights(self) -> list[list[tuple[list[tuple[int, int]], int]]]:
        """For each graph and peer, its weights as whole parts of their sum: one graph, or one a
        round."""
        found = []
        for t in range(1 if isinstance(self.graph, Graph) else self.steps):
            graph, rows = self.at(t), []
            for i in range(graph.n):
                weights = [(j, graph.fraction(i, j)) for j in [i, *graph.neighbors(i).tolist()]]
                whole = math.lcm(*(weight.denominator for _, weight in weights))
                rows.append(([(j, int(weight * whole)) for j, weight in weights], whole))
            found.append(rows)
        return found


def _mixed(seed: int, trial: int) -> int:
    """A seed of its own for every trial."""
    return int(
        Replay(seed).words("lattice trials", np.array([trial]), 0, 0, 1)[0, 0] >> np.uint64(1)
    )
