"""Odometer: what every pair may lose over many runs, whose graphs are chosen as one goes.

    sum over runs of m_k(u -> v) / z_k^2  <=  mu(u, v)^2   on every path   =>   v learns of u at most what
    Gaussian noise of that mu tells                                                        (gossip:ODO-1)

mu(u, v) is fixed beforehand, by a cap in epsilon. Which graph comes next, with which noise, and when to
stop may follow from whatever *everybody* was told, and from the odometer itself. A run that would pass
the cap of some pair does not fit (the pair's budget ends it), or its meetings go to others (they are
rerouted, `rounds`). What is promised is the cap, not what was spent: the latter may depend on what was
told, and so tell something itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from bruit.arrays import Array
from bruit.errors import BruitError, ConfigError, PrivacyError
from bruit.graphs import Graph
from bruit.graphs import graph as named
from bruit.graphs.sequence import ListedGraphs
from bruit.privacy.account import Accountant
from bruit.privacy.answers import door_hypothesis
from bruit.privacy.charge import charged_locally, not_gaussian
from bruit.privacy.events import Adjacency
from bruit.privacy.guarantee import FRESH, Epsilon, Guarantee, Hypothesis
from bruit.privacy.noise_source import Sources, shared
from bruit.privacy.profile import GaussianProfile, Rounded
from bruit.privacy.rationed import RationedMeetings
from bruit.privacy.theorem import CHANNELS, EXACT, HONEST, STANDING, Facts
from bruit.privacy.toolbox.gaussian import mu_of
from bruit.privacy.toolbox.rounding import allowance

ROUNDING = 1e-12  # R of all runs together (fp:FP-0): it is inside every cap
MOST_PEERS = 128
SLACK = 1e-9  # of a limit, for the floats of the account that decides
CHOSEN = Hypothesis(
    "graphs, noises, what is asked and the end were chosen by what everybody was told, which is"
    " charged, by the odometer and by public coins; links fail by chance",
    checked=False,
)
FITTED = Hypothesis("no run passed the cap of this pair, which was fixed beforehand", checked=True)
ASKED = Hypothesis("every run that was begun was counted, and fit when it was begun", checked=False)


class Accounted(Protocol):
    """A run, or the rehearsal of one."""

    def accountant(self) -> Accountant:
        """Who knows what it costs."""


Begun = TypeVar("Begun", bound=Accounted)


class Odometer:
    """`caps[u, v]`, or one number for all `peers`, is the epsilon at delta that v may learn of u;
    infinite: no cap. `spent` holds squared mu, pair by pair; single observers only."""

    def __init__(self, caps: Array | float, peers: int | None = None, delta: float = 1e-6) -> None:
        given = np.asarray(caps, np.float64)
        if not given.ndim:
            if peers is None:
                raise ConfigError("one cap for all pairs needs the number of peers, peers=")
            given = np.full((peers, peers), float(given))
        n = len(given)
        if given.shape != (n, n) or not 2 <= n <= MOST_PEERS:
            raise ConfigError(
                f"an odometer holds a cap for every pair of 2 to {MOST_PEERS} peers, found caps of"
                f" shape {given.shape}"
            )
        self.delta, self.n, self.caps = delta, n, given.copy()
        np.fill_diagonal(self.caps, np.inf)
        self.limits = _limits(self.caps, delta)
        self.spent, self.rounding = np.zeros((n, n)), 0.0
        self.void = ""  # why nothing is promised any more
        self._level: tuple[str, Adjacency] | None = None
        self._noise: Sources = frozenset()
        self._needed: dict[Hypothesis, None] = {}  # by the accounts of the runs that were counted

    def left(self) -> Array:
        """The squared mu that every pair may still lose, infinite where there is no cap  # (n, n)."""
        with np.errstate(invalid="ignore"):  # inf - inf: no cap, and all was told
            left = np.maximum(self.limits * (1 - SLACK) - self.spent, 0.0)
        return np.where(np.isinf(self.limits), np.inf, left)

    def release(self, noise_multiplier: float, tau: float = 0.1) -> RationedMeetings:
        """The meetings after one fresh release of everybody, as `renoised` makes them: to be chosen
        one round after the other."""
        return RationedMeetings(self.left(), noise_multiplier, tau)

    def rounds(
        self, graph: str | Graph, noise_multiplier: float, tau: float = 0.1, steps: int = 20
    ) -> ListedGraphs:
        """Meetings along the graph's links for at most so many rounds: of the pairs that may meet, first
        those whose values differ most on average, by the noise in them. No value is read."""
        found = named(graph)
        if not isinstance(found, Graph) or found.n != self.n:
            raise ConfigError(
                f"meetings are chosen among the links of one graph of {self.n} peers, found"
                f" {found.name} of {found.n}"
            )
        if steps < 1:
            raise ConfigError(f"meetings take at least one round, found steps = {steps}")
        links = [(int(a), int(b)) for a, b in found.edges()]
        meetings = self.release(noise_multiplier, tau)
        for _ in range(steps):
            if not meetings.go_on(links):
                break
        return meetings.graph()

    def fits(self, run: Accounted, told: bool = False) -> bool:
        """Whether a run, rehearsed, would keep every cap. `told`: its results are to be told to
        everybody, so that every release counts for all. One that could not be counted is refused."""
        accountant = run.accountant()
        energy, rounding = self._costs(accountant, told)
        self._check_apart(accountant.facts)
        within = bool(np.all(self.spent + energy <= self.limits))
        return not self.void and within and self.rounding + rounding <= ROUNDING

    def within(self, ahead: Accounted, begin: Callable[[], Begun], told: bool = False) -> Begun:
        """Begin a run that was rehearsed, `ahead`, if it fits, and count it; one that does not is refused
        before anything is said. One that breaks off was begun and not counted: nothing is promised."""
        if not self.fits(ahead, told):
            raise PrivacyError(self.void or self._over(ahead, told))
        try:
            run = begin()
        except BaseException as error:
            self.void = f"a run was begun, and broke off before it was counted: {error!r}"
            raise
        self.add(run, told)
        return run

    def _over(self, ahead: Accounted, told: bool) -> str:
        """Why a rehearsed run does not fit."""
        energy, rounding = self._costs(ahead.accountant(), told)
        over = np.argwhere(~(self.spent + energy <= self.limits))
        if not len(over):
            return (
                f"with this run R of all runs is {self.rounding + rounding:.2g}, and {ROUNDING:g} is"
                " inside the caps (fp:FP-0); it was not begun"
            )
        u, v = (int(place) for place in over[0])
        return (
            f"this run would pass the cap of what peer {v} may learn of peer {u}: it costs a squared mu"
            f" of {energy[u, v]:.4g}, and {self.left()[u, v]:.4g} is left; it was not begun"
        )

    def add(self, run: Accounted, told: bool = False) -> None:
        """Count a run that has taken place. One that passes a cap, or cannot be counted, is refused,
        and since it took place nothing is promised from then on."""
        try:
            accountant = run.accountant()
            energy, rounding = self._costs(accountant, told)
            self._check_apart(accountant.facts)
            self._keep(accountant, told)
        except BruitError as error:
            self.void = f"a run took place that could not be counted: {error}"
            raise
        self.spent, self.rounding = self.spent + energy, self.rounding + rounding
        over = np.argwhere(~(self.spent <= self.limits))
        if len(over) or not self.rounding <= ROUNDING:
            self.void = (
                "a run took place that passed the cap of what peer"
                f" {over[0][1]} may learn of peer {over[0][0]}"
                if len(over)
                else f"a run took place with which R of all runs is {self.rounding:.2g}, and"
                f" {ROUNDING:g} is inside the caps (fp:FP-0)"
            )
            raise PrivacyError(f"{self.void}; ask `fits` with a rehearsal before a run begins")

    def _check_apart(self, facts: Facts) -> None:
        """Runs add up if their noises are independent, and if they are about the same thing."""
        level = (facts.level, facts.adjacency)
        if self._level not in (None, level):
            raise PrivacyError(f"runs about {self._level} and about {level} do not add up")
        common = shared(facts.noise, self._noise)
        if common:
            raise PrivacyError(
                f"it may share its noise with one that was counted ({common[0].name}); use another"
                " seed"
            )

    def _keep(self, accountant: Accountant, told: bool) -> None:
        """What later runs are compared with, and what the account of this one assumes."""
        facts = accountant.facts
        self._level, self._noise = (facts.level, facts.adjacency), self._noise | facts.noise
        holding = [] if told else accountant.applicable()[0]
        needed = [one for _, hypotheses in holding for one in hypotheses if not one.checked]
        found = (door_hypothesis(facts), *facts.declared, *needed)
        self._needed |= dict.fromkeys(one for one in found if one not in STANDING)

    def _costs(self, accountant: Accountant, told: bool) -> tuple[Array, float]:
        """Squared mu of every pair, and R."""
        facts = accountant.facts
        if facts.n != self.n:
            raise PrivacyError(f"this odometer is of {self.n} peers, and the run has {facts.n}")
        if accountant.earlier is not None:
            raise PrivacyError(
                "a run that goes on from another has one account with it; an odometer counts runs that"
                " begin anew"
            )
        if facts.ideal:
            raise PrivacyError(
                'an odometer promises what is proven for what is sent; leave out arithmetic = "ideal"'
            )
        charge = charged_locally(facts) if told else accountant.charges(self.delta)
        if charge.counts is not None and charge.counts.size:
            raise not_gaussian(charge.events)
        energy = charge.energy[:, None] if charge.energy.ndim == 1 else charge.energy
        energy = np.array(np.broadcast_to(energy, (self.n, self.n)))
        np.fill_diagonal(energy, 0.0)
        return energy, float(np.nanmax(charge.rounded()))

    def epsilon(self, of: int, seen_by: int) -> Epsilon:
        """What is promised of a pair, whatever is chosen as long as runs fit: its cap."""
        return self.guarantee(of, seen_by).epsilon(self.delta)

    def guarantee(self, of: int, seen_by: int) -> Guarantee:
        """The promise, with its hypotheses."""
        if of == seen_by or not (0 <= of < self.n and 0 <= seen_by < self.n):
            raise PrivacyError(f"ask about two peers of 0..{self.n - 1}, found {of} and {seen_by}")
        mu = math.inf if self.void else math.sqrt(self.limits[of, seen_by])
        level, adjacency = self._level or ("user", "replace")
        spent = f"{self.spent[of, seen_by]:.4g} of {self.limits[of, seen_by]:.4g}"
        return Guarantee(
            theorem="an odometer for every pair",
            spec="gossip:ODO-1",
            status="proven",
            level=level,
            of=f"peer {of}",
            against=f"peer {seen_by}",
            hypotheses=(FITTED, FRESH, EXACT, *self._needed, HONEST, CHANNELS, CHOSEN, ASKED),
            profile=Rounded(GaussianProfile(mu), ROUNDING),
            notes=(self.void or f"promised is the cap; spent so far: squared mu {spent}",),
            noise=self._noise,
            adjacency=adjacency,
        )


def _limits(caps: Array, delta: float) -> Array:
    """The squared mu of every cap, so that with all rounding the epsilon is the cap  # (n, n)."""
    if not 0 < delta < 1:
        raise PrivacyError(f"caps are at a delta between 0 and 1, both excluded, found {delta}")
    gamma, delta_left = allowance(ROUNDING, delta)
    off = ~np.eye(len(caps), dtype=bool)
    if np.any(np.isnan(caps[off])) or np.any(caps[off] <= 2 * gamma):
        raise PrivacyError(f"every pair needs a cap above {2 * gamma:.2g}; full trust is inf")
    values, place = np.unique(caps, return_inverse=True)
    squares = [mu_of(float(value) - 2 * gamma, delta_left) ** 2 for value in values]
    return np.array(squares)[place].reshape(caps.shape)
