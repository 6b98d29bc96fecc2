"""Theorem: turns what was run into the loss of every peer in some observers' view.

Theorems see `Facts`: graph, schedule, ledger, faults, declared constants; never a value. One theorem, one file.
A hypothesis that fails raises `PrivacyError` with a sentence; the default accountant then falls back to the next
theorem and finally to local DP, and says so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.errors import PrivacyError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.events import Event, GaussianEvent
from bruit.privacy.guarantee import Hypothesis, Status
from bruit.privacy.ledger import Ledger
from bruit.privacy.network.span import neighborhood
from bruit.trace import Faults, Meetings

HONEST = Hypothesis("every peer follows the protocol; observers are curious, nothing more", checked=False)
CHANNELS = Hypothesis("messages are encrypted between the two peers that exchange them", checked=False)
PUBLIC = Hypothesis("graph, weights, schedule, number of steps and dropouts do not depend on the data", checked=False)
REAL = Hypothesis("numbers are real: rounding of messages and the noise's lattice are not accounted", checked=False)
STANDING = (HONEST, CHANNELS, PUBLIC, REAL)


@dataclass(frozen=True)
class Facts:
    """What a theorem may look at.

    `sigma` is the mechanism's absolute standard deviation, `constants` the declared Lipschitz, smoothness and
    strong-convexity constants of the task (None if there are none), `grain` how far the lattice may move a release, in
    units of the sensitivity, `missed` how many exchanges some real peer went on without, `unequal` whether peers add
    noise of different sizes, `declared` what the noise itself takes from the task."""

    graph: Graph | GraphSequence
    steps: int
    ledger: Ledger
    meetings: Meetings
    faults: Faults
    level: str = "user"
    sigma: float = 0.0
    clip: float = float("inf")
    constants: Any = None
    public: Any = None
    grain: float = 0.0
    missed: int = 0
    unequal: bool = False
    declared: tuple[Hypothesis, ...] = ()

    @property
    def n(self) -> int:
        return self.graph.n

    def at(self, number: int) -> Graph:
        """The mixing graph of one round, with that round's dead links taken out."""
        graph = self.graph if isinstance(self.graph, Graph) else self.graph.at(number)
        if not len(self.faults.round):
            return graph
        a, b = self.faults.in_round(number)
        return graph.without_edges(a, b) if len(a) else graph

    def fixed_graph(self) -> Graph | None:
        """The one graph of all rounds, if there is one and nothing failed."""
        return self.graph if isinstance(self.graph, Graph) and not len(self.faults.round) else None

    def noise_multiplier(self) -> float:
        """The multiplier of the one Gaussian mechanism behind all data releases, or a refusal."""
        kinds = [event for event, data in zip(self.ledger.events, self.ledger.is_data(), strict=True) if data]
        if not kinds:
            return float("inf")
        if len(kinds) > 1 or not isinstance(kinds[0], GaussianEvent):
            found = ", ".join(str(kind) for kind in kinds)
            raise PrivacyError(f"this theorem needs one Gaussian mechanism for all releases; the ledger holds {found}")
        return kinds[0].noise_multiplier

    def data_lines(self) -> Bools:
        """Which ledger lines read data (masks do not)  # (lines,)."""
        kinds = self.ledger.column("event")
        return self.ledger.is_data()[kinds] if len(kinds) else np.zeros(0, bool)

    def releases(self) -> Ints:
        """How many data releases each peer made  # (n,)."""
        data = self.ledger.is_data()
        return np.asarray(self.ledger.counts()[:, data].sum(axis=1), np.int64)


class Theorem(ABC):
    """One statement about views; final subclasses are frozen dataclasses."""

    title: ClassVar[str]
    spec: ClassVar[str]
    status: ClassVar[Status] = "proven"

    @abstractmethod
    def check(self, facts: Facts) -> tuple[Hypothesis, ...]:
        """The hypotheses, those that can be checked checked; raises PrivacyError when one fails."""

    @abstractmethod
    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        """Loss of every peer in the joint view of the observers, in local-DP units  # (n,)."""

    def unit(self, facts: Facts) -> float:
        """The noise multiplier z in whose units losses are measured: the pair is mu-GDP with mu = sqrt(loss) / z."""
        return facts.noise_multiplier()

    def events(self, facts: Facts, observers: tuple[int, ...], delta: float) -> tuple[tuple[Event, ...], Ints] | None:
        """What the view costs where no Gaussian loss says it: events, and how often each peer pays each  # (n, events).

        They compose as releases would; statements about them may use up part of delta. None: `losses` says all.
        """
        return None

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        """What a reader should know about these numbers."""
        return ()

    def seen(self, facts: Facts, observers: tuple[int, ...]) -> str:
        """Which messages make up the view, in words."""
        if len(facts.meetings.b):
            watching = np.isin(np.arange(facts.n), observers)
            count = int(np.sum(watching[facts.meetings.a] | watching[facts.meetings.b]))
            return f"{count} of {len(facts.meetings.b)} meetings, and the observers' own values and noise"
        chosen = np.array(observers, np.int64)
        fixed = facts.fixed_graph()
        heard = [len(neighborhood(facts.at(t), chosen)) for t in range(facts.steps if fixed is None else 1)]
        total = sum(heard) * (1 if fixed is None else facts.steps)
        return f"{total} messages in {facts.steps} rounds, and the observers' own values and noise"

    def advice(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        """What else would lower the loss, in words."""
        return ()

    def ends_known(self, facts: Facts) -> bool:
        """Whether the last states are a function of what every observer saw."""
        return False

    def matrix(self, facts: Facts, progress: Callable[[int, int], None] | None = None) -> Array:
        """m[u, v]: loss of u in the view of v, for all pairs; the diagonal is nan."""
        m = np.empty((facts.n, facts.n))
        for v in range(facts.n):
            m[:, v] = self.losses(facts, (v,))
            if progress is not None:
                progress(v + 1, facts.n)
        np.fill_diagonal(m, np.nan)
        return m


def one_release(facts: Facts) -> Hypothesis:
    """Every peer released its value once, before the first message; raises otherwise."""
    releases = facts.releases()
    if np.any(releases > 1):
        worst = int(np.argmax(releases))
        raise PrivacyError(
            f"the averaging theorems need one release per peer, but peer {worst} made {releases[worst]};"
            " use seen_by='everybody' (local DP)"
        )
    if np.any(facts.ledger.column("clock")[facts.data_lines()] > 0):
        raise PrivacyError("the averaging theorems need every release before the first message; some came later")
    facts.noise_multiplier()
    return Hypothesis("one Gaussian release per peer, all with the same noise multiplier", checked=True)
