"""Exchanges of linear gossip that are proven for the bits that are sent (fp:FP-1, FP-2): what its
algorithms share.

All values, messages and states lie on one grid g Z. On most graphs a message carries a dither,

    M_i = Y_i + N_g(0, tau^2),    Y_i <- the grid point nearest to sum_j W_ij M_j, the own *message* included

so that the view is that of real numbers up to R = d (rho + g)^2 / tau^2 a message. Here rho is how
far Y_i may be from the mean with the exact weights. It is g/2 for the rounding, plus (3 degree + 6)
2^-53 B for floats of size up to B. Without dithers every rounding would tell a little more about
hidden values, and messages finer than the values a lattice attack finds them
(docs/explanation/lattice-attack.md).

In a butterfly all coefficients are equal. There peers send sums, which are whole multiples of g,
instead of means, and no dither: the view is a few sums of disjoint groups of noisy values. After
all digits everybody has the same sum. Under ideal arithmetic, and without noise, messages are the
states themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from bruit.algorithms.door import OnGrid
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Inbox
from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs.sequence import AfterCircles, Butterfly, ListedGraphs, Static
from bruit.mechanisms.gaussian import WIDEST

DITHER = 2.0**-10  # deviation of a dither, in units of the release's noise
MANY = 2**14  # peers from which dithers shrink, so that they do not add to the error of a mean


class Gridded(Protocol):
    """Whoever knows the grid of a run: a home, or a plan that asks before there is one."""

    def grid(self, times: float = 1.0, data: float = 1.0, noise: float = 1.0) -> float:
        """See `Home.grid`."""

    def reach(self, times: float = 1.0, data: float = 1.0, noise: float = 1.0) -> float:
        """See `Home.reach`."""


class ExchangeFacts(NamedTuple):
    """Public facts: the dithers, how many neighbors a peer may hear, how far numbers grow, and a
    butterfly's digits."""

    dither: float  # in units of the release's noise
    degree: int
    data: float  # clipped values that a number may hold
    noise: float  # deviation of the noise that a number may hold, in units of the release's
    radices: tuple[int, ...]


def exchange_of(
    graph: Graph | GraphSequence, horizon: int, releases: int = 1, mixing: int | None = None
) -> ExchangeFacts:
    """The facts of gossip whose numbers add up to so many releases; `mixing` exchanges follow each
    release, if all of them do not."""
    radices: tuple[int, ...] = ()
    if (
        isinstance(graph, Butterfly)
        and graph.radices
        and (mixing or len(graph.radices)) % len(graph.radices) == 0
    ):
        radices = graph.radices
    dither = DITHER if graph.n < MANY else 2.0 ** -math.ceil(math.log2(8 * math.sqrt(graph.n)))
    most = releases * graph.n if radices else releases
    return ExchangeFacts(
        dither, _degree(graph), float(most), math.sqrt(most) + horizon * dither, radices
    )


def _degree(graph: Graph | GraphSequence) -> int:
    """The most neighbors that a peer hears in one round, or a bound on them."""
    if isinstance(graph, Graph):
        return int(graph.degrees.max(initial=0))
    if isinstance(graph, AfterCircles):
        return max(_degree(graph.circles), _degree(graph.graph))
    if isinstance(graph, Static | ListedGraphs):
        graphs = (graph.graph,) if isinstance(graph, Static) else graph.graphs
        return max(_degree(one) for one in graphs)
    return max(graph.radices, default=1) if isinstance(graph, Butterfly) else graph.n


def accelerated(
    facts: ExchangeFacts, n: int, gamma: float, horizon: int, mixing: int
) -> ExchangeFacts:
    """The facts of exchanges gamma W m(t) + (1 - gamma) m(t - 1) on one graph of n peers, `mixing`
    of them in a row.

    For 0 < gamma <= 2 these are polynomials P_t(W) with |P_t| <= 1 on [-1, 1]: their rows have at
    most the length 1 and add up to sqrt(n) in size. A dither comes in later, by polynomials that
    are at most 1 + (gamma - 1) + (gamma - 1)^2 + ..., as many terms as exchanges. Beyond 2 numbers
    grow without bound: nothing is proven (`Arithmetic.form`).
    """
    if gamma == 1.0:
        return facts
    later = mixing if gamma >= 2 else min(float(mixing), 1 / (2 - gamma))
    noise = facts.noise + max(0.0, later - 1) * horizon * facts.dither
    return facts._replace(data=facts.data * math.sqrt(n), noise=noise)


def sum_grid(home: Gridded, releases: int, noise: float = 1.0) -> float:
    """The grid for exact sums of so many releases; `noise` is the deviation of one, in units of the
    mechanism's."""
    return home.grid(1.0, float(releases + 1), noise * math.sqrt(releases + 1))


def check_range(ids: Ints, rows: Array, grid: float, terms: int = 1) -> None:
    """What peers begin with must be on the grid's range, or its sums are not exact; `terms` of them
    are added up."""
    limit = WIDEST * grid / terms
    if not grid:
        return
    far = np.abs(rows).max(axis=1, initial=0.0) > limit
    if far.any():
        lane = int(np.argmax(far))
        raise ConfigError(
            f"peer {ids[lane]} begins with a number of size {np.abs(rows[lane]).max():.3g}, and"
            f" what is sent is proven private up to {limit:.3g} with this noise;"
            " begin with smaller models, take more noise, or simulate with arithmetic = 'ideal'"
        )


class Mixed(NamedTuple):
    """What a peer holds after an exchange, and what it would say next but for the dither."""

    value: Array  # (lanes, d) the mean
    said: Array  # (lanes, d) the mean on the grid, or the sum of a butterfly


@dataclass(frozen=True)
class Arithmetic:
    """How one algorithm mixes: its facts, its public factor `times`, and gamma of Chebyshev's
    recursion (1: none).

    `more` is how many cells beyond those of plain mixing a message may be from the real protocol's,
    given the same rounded past.
    """

    facts: ExchangeFacts
    home: Home
    times: float = 1.0
    gamma: float = 1.0
    more: float = 0.0

    @property
    def begun(self) -> float:
        """How large numbers may be that peers begin with, where they go on from an earlier
        protocol."""
        return WIDEST * self.grid if self.home.warm else 0.0

    def check_begun(self, rows: Array) -> None:
        """Refuses models and messages to go on from that are too large for the grid."""
        if self.home.warm:
            check_range(self.home.ids, rows, self.grid, math.prod(self.facts.radices))

    @property
    def grid(self) -> float:
        return self.home.grid(self.times, self.facts.data, self.facts.noise)

    @property
    def sums(self) -> bool:
        """Whether sums are sent: on butterflies, when there is a grid."""
        return bool(self.facts.radices) and self.grid > 0

    def mixed(self, inbox: Inbox, previous: Array | None = None) -> Mixed:
        """What was heard, mixed by its weights; `previous` is the own message before, where gamma
        steps beyond."""
        if self.sums:
            return self._summed(inbox)
        value = inbox.mix()
        if previous is not None and self.gamma != 1.0:
            value = self.gamma * value + (1 - self.gamma) * previous
        value = self.home.snap(value, self.grid, value)  # mixing made it: nobody else has it
        return Mixed(value, value)

    def _summed(self, inbox: Inbox) -> Mixed:
        """The sum over the peers of a cell, and the mean it stands for; after the last digit all
        have the same one. Who has said its last word keeps the mean: a later protocol begins with
        the first digit again."""
        radices, step = self.facts.radices, int(self.home.step[0])
        digit = (step - 1) % len(radices)
        total = inbox.whole(radices[digit])
        mean = total / math.prod(radices[: digit + 1])
        if digit + 1 < len(radices) and not self.home.last.all():
            return Mixed(mean, total)
        known = self.home.snap(mean, self.grid)
        return Mixed(known, known)

    def message(self, said: Array) -> Array:
        """What leaves: with a dither on the grid, as it is otherwise."""
        if not self.grid or self.sums:
            return said
        return self.home.dither(said, self.facts.dither * self.home.sigma, self.form())

    def form(self, memory: float = 1.0, copies: bool = False) -> OnGrid:
        """How messages lie on the grid, see `message_form`."""
        return message_form(
            self.facts, self.home, self.times, self.gamma, self.more, memory, copies, self.begun
        )


def message_form(
    facts: ExchangeFacts,
    home: Gridded,
    times: float = 1.0,
    gamma: float = 1.0,
    more: float = 0.0,
    memory: float = 1.0,
    copies: bool = False,
    begun: float = 0.0,
) -> OnGrid:
    """How messages lie on the grid: `memory` is how often a rounding counts where a peer mixes its
    own state, and `copies` says that every copy of a message has a noise of its own. `begun` is how
    large numbers are that peers begin with."""
    grid = home.grid(times, facts.data, facts.noise)
    size = (
        max(1.0, 2 * gamma - 1) if gamma <= 2 else math.inf
    )  # the coefficients of an update, added up in size
    floats = (
        (3 * facts.degree + 6)
        * 2.0**-53
        * size
        * (begun + home.reach(times, facts.data, facts.noise))
    )
    slack = memory * (grid / 2 + floats) + (size / 2 + more) * grid
    return OnGrid(grid, times, slack, copies=facts.degree if copies else 1)
