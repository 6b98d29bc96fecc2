"""Theorem: turns what was run into the loss of every peer in some observers' view.

Theorems see `Facts`: graphs as they were (`at`), schedule, ledger, faults, declared constants;
never a value. One theorem, one file. A theorem speaks of the algorithms it names (`about`) and of
no other. A hypothesis that fails raises `PrivacyError` with a sentence; the default accountant then
leaves the theorem out and says so, and local DP is always there.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeVar, cast, final

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.errors import PrivacyError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs.sequence import Butterfly
from bruit.on.place import in_chunks
from bruit.privacy.events import (
    Adjacency,
    Event,
    GaussianEvent,
    Mask,
    MaskedEvent,
    SampledGaussianEvent,
)
from bruit.privacy.exact import neighborhood
from bruit.privacy.guarantee import REAL, Hypothesis, Status
from bruit.privacy.ledger import Ledger
from bruit.privacy.noise_source import Sources
from bruit.trace import Faults, Meetings

T = TypeVar("T")
VIEWS = 16  # whose losses are kept while questions are asked
HONEST = Hypothesis(
    "every peer follows the protocol; observers are curious, nothing more", checked=False
)
CHANNELS = Hypothesis(
    "messages are encrypted between the two peers that exchange them", checked=False
)
PUBLIC = Hypothesis(
    "graph, weights, schedule, number of steps and dropouts do not depend on the data",
    checked=False,
)
SECRET_SAMPLE = "with a secret sample only local DP and masked sums are proven (silo:SILO-3)"
EXACT = Hypothesis(
    "what is sent is on a grid, its noise exactly discrete, and rounding is in epsilon",
    checked=True,
)
WITH_ROUNDING = (GaussianEvent, SampledGaussianEvent, MaskedEvent)  # releases on a grid, or floats
STANDING = (HONEST, CHANNELS, PUBLIC)
IDEALLY = (*STANDING, REAL)
"""The standing hypotheses of a formula: it is about real numbers, and no run says what was sent."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a theorem may look at.

    `agreed` is the graph the peers agreed on, with links in it that were down: only the methods
    below read it. `sigma` is the mechanism's absolute standard deviation, `constants` the declared
    Lipschitz, smoothness and strong-convexity constants of the task (None if there are none),
    `missed` how many exchanges some real peer went on without, `unequal` whether peers add noise of
    different sizes, `deviations` these sizes where all have agreed on them, `algorithm` the name of
    what was run, `arithmetic` whether it ran on a grid or with real numbers in mind ("ideal"),
    `noise` which draws hide the data (none for formulas), `unwatched` why nobody can say that data
    left through the door only (empty: it was checked as the run went on), `opened` why every release counts as told
    to everybody, whatever messages there were (empty: it does not), `declared` what the noise
    itself takes from the task, `interrupted` where somebody stopped the run, in words, `adjacency`
    how records differ, at the level of records."""

    agreed: Graph | GraphSequence
    steps: int
    ledger: Ledger
    meetings: Meetings
    faults: Faults
    level: str = "user"
    sigma: float = 0.0
    clip: float = float("inf")
    constants: Any = None
    public: Any = None
    missed: int = 0
    unequal: bool = False
    deviations: tuple[float, ...] = ()
    algorithm: str = ""
    arithmetic: str = "grid"
    noise: Sources = frozenset()
    unwatched: str = "no run was watched"
    opened: str = ""
    declared: tuple[Hypothesis, ...] = ()
    interrupted: str = ""
    adjacency: Adjacency = "replace"

    @property
    def n(self) -> int:
        return self.agreed.n

    @cached_property
    def found(self) -> dict[tuple[Any, ...], Any]:
        """What a theorem found out about the view of some observers, for the next question about
        it; the last few."""
        return {}

    def once(self, key: tuple[Any, ...], find: Callable[[], T]) -> T:
        """What `find` says, found once: facts do not change."""
        if key not in self.found:
            if len(self.found) >= VIEWS:
                self.found.pop(next(iter(self.found)))
            self.found[key] = find()
        return cast(T, self.found[key])

    def at(self, number: int) -> Graph:
        """The mixing graph of one round, with that round's dead links taken out."""
        graph = self.agreed if isinstance(self.agreed, Graph) else self.agreed.at(number)
        if not len(self.faults.round):
            return graph
        a, b = self.faults.in_round(number)
        return graph.without_edges(a, b) if len(a) else graph

    def fixed_graph(self) -> Graph | None:
        """The one graph of all rounds, if there is one and nothing failed."""
        return (
            self.agreed if isinstance(self.agreed, Graph) and not len(self.faults.round) else None
        )

    def butterfly(self, first: int, exchanges: int) -> Butterfly | None:
        """The butterfly of so many exchanges from `first` on, if they were one and no link failed
        in them."""
        return (
            self.agreed
            if isinstance(self.agreed, Butterfly) and not self.failed(first, exchanges)
            else None
        )

    def noise_multiplier(self) -> float:
        """The multiplier of the one Gaussian mechanism behind all data releases, or a refusal."""
        kinds = [
            event
            for event, data in zip(self.ledger.events, self.ledger.is_data(), strict=True)
            if data
        ]
        if not kinds:
            return float("inf")
        if self.sampled:
            raise PrivacyError(SECRET_SAMPLE)
        known = {event.noise_multiplier for event in kinds if isinstance(event, GaussianEvent)}
        if len(known) != 1 or not all(isinstance(event, GaussianEvent) for event in kinds):
            found = ", ".join(str(kind) for kind in kinds)
            raise PrivacyError(
                f"this theorem needs one Gaussian mechanism for all releases; the ledger holds "
                f"{found}"
            )
        return known.pop()

    @property
    def sampled(self) -> bool:
        """Whether some release was of a secret sample of the records (silo:SILO-2)."""
        return any(
            isinstance(event.promised(), SampledGaussianEvent) for event in self.ledger.events
        )

    @property
    def ideal(self) -> bool:
        """Whether some release was a float of real-number arithmetic: then all that is said is
        ideal (fp:FP-4)."""
        floats = (
            isinstance(event, WITH_ROUNDING) and event.rounding == math.inf
            for event in self.ledger.events
        )
        return self.arithmetic == "ideal" or any(floats)

    def all_rounding(self) -> float:
        """R of all that was drawn, by whomever (fp:FP-0): what a view with hidden messages is
        charged."""
        lines = zip(self.ledger.events, self.ledger.counts().sum(axis=0).tolist(), strict=True)
        return math.fsum(
            count * event.rounding
            for event, count in lines
            if count and isinstance(event, (*WITH_ROUNDING, Mask))
        )

    def own_rounding(self) -> Array:
        """R of every peer's own releases: what they are charged when all of them are seen
        # (n,)."""
        counts, total = self.ledger.counts(), np.zeros(self.n)
        for k, event in enumerate(self.ledger.events):
            if isinstance(event, WITH_ROUNDING):
                some = counts[:, k] > 0
                total[some] += counts[some, k] * event.rounding
        return total

    def mixed_rounding(self, messages: int) -> float:
        """R of linear mixing with so many messages (fp:FP-1), infinite unless each of them had a
        dither of its own, or sums of a butterfly were sent and none was missing (fp:FP-2)."""
        dithers = sum(
            count
            for event, count in zip(
                self.ledger.events, self.ledger.counts().sum(axis=0).tolist(), strict=True
            )
            if isinstance(event, Mask)
        )
        proven = not len(self.faults.round) if self.sums else dithers >= messages
        return self.all_rounding() if proven else math.inf

    @property
    def sums(self) -> bool:
        """Whether whole sums were sent, without dithers, as in a butterfly on a grid (fp:FP-2)."""
        facts = getattr(self.public, "exchange", self.public)
        return bool(getattr(facts, "radices", ())) and not self.ideal

    def failed(self, first: int, exchanges: int) -> bool:
        """Whether a link failed in so many exchanges from `first` on."""
        return bool(np.any((self.faults.round >= first) & (self.faults.round < first + exchanges)))

    def data_lines(self) -> Bools:
        """Which ledger lines read data (masks do not)  # (lines,)."""
        kinds = self.ledger.column("event")
        return self.ledger.is_data()[kinds] if len(kinds) else np.zeros(0, bool)

    def releases(self) -> Ints:
        """How many data releases each peer made  # (n,)."""
        data = self.ledger.is_data()
        return np.asarray(self.ledger.counts()[:, data].sum(axis=1), np.int64)


def out_of_reach(facts: Facts, failures: bool = False, sizes: bool = False) -> str:
    """Why no theorem on views speaks of these facts, whatever the algorithm; empty if nothing
    stands in the way. `failures`: of those that hold when peers are missing, or a run is stopped;
    `sizes`: of those that are about noise of different sizes, known to all."""
    if facts.opened:
        return f"{facts.opened}; every release is charged as local DP"
    if facts.interrupted and not failures:
        return (
            f"the run was {facts.interrupted}, and the theorems on views are about whole runs;"
            " every release that was made is charged as local DP"
        )
    if facts.missed and not failures:
        return (
            f"{facts.missed} exchanges were missed or made up for later, so the views are not those"
            " of the agreed protocol; they are charged as local DP"
        )
    if facts.unequal and not (sizes and facts.deviations):
        return (
            "peers add noise of different sizes, and this protocol's theorems on views are about"
            " equal noise; every release is charged as local DP"
        )
    return ""


@dataclass(frozen=True)
class Theorem(ABC):
    """One statement about views; final subclasses are frozen dataclasses.

    `about` names the algorithms whose messages the proof looked at, as `Algorithm.name` says them:
    a subclass of one of them says other things and is another algorithm."""

    title: ClassVar[str]
    spec: ClassVar[str]
    status: ClassVar[Status] = "proven"
    samples: ClassVar[bool] = False  # whether its proof holds for secret samples too
    alike: ClassVar[bool] = False  # whether every single observer sees the same
    failures: ClassVar[bool] = False  # whether it holds when peers are missing, or a run is stopped
    sizes: ClassVar[bool] = False  # whether it is about noise of different sizes, known to all
    about: tuple[str, ...] = field(default=(), kw_only=True)

    @final
    def check(self, facts: Facts) -> tuple[Hypothesis, ...]:
        """The hypotheses, those that can be checked checked; raises PrivacyError when one fails."""
        if facts.algorithm not in self.about:
            named = ", ".join(self.about) or "no algorithm that it names"
            found = facts.algorithm or "a protocol without a name"
            raise PrivacyError(
                f"it is about {named}, and this is {found}; what is proven of one algorithm says"
                " nothing of another"
            )
        why = out_of_reach(facts, self.failures, self.sizes)
        if why:
            raise PrivacyError(why)
        if facts.sampled and not self.samples:
            raise PrivacyError(SECRET_SAMPLE)
        conditions = self.conditions(facts)
        if self.status != "proven":
            return conditions
        if facts.ideal:
            return (*conditions, REAL)
        if not np.all(np.asarray(self.rounding(facts)) < math.inf):
            raise PrivacyError(
                "it is proven for real numbers, and not for the arithmetic of this protocol, of"
                " which it says nothing that holds for what is sent (fp:FP-4)"
            )
        return (*conditions, EXACT)

    def rounding(self, facts: Facts) -> Array | float:
        """R of the views it speaks of (fp:FP-0), one for all peers or one each; infinite: the
        arithmetic of the protocol is not proven for the bits that are sent, and nothing is."""
        return math.inf

    @abstractmethod
    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        """The theorem's own hypotheses, for an algorithm that it is about; raises PrivacyError when
        one fails."""

    @abstractmethod
    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        """Loss of every peer in the joint view of the observers, in local-DP units  # (n,)."""

    def unit(self, facts: Facts) -> float:
        """The noise multiplier z in whose units losses are measured: the pair is mu-GDP with mu =
        sqrt(loss) / z."""
        return facts.noise_multiplier()

    def events(
        self, facts: Facts, observers: tuple[int, ...], delta: float
    ) -> tuple[tuple[Event, ...], Ints] | None:
        """What the view costs where no Gaussian loss says it: events, and how often each peer pays
        each  # (n, events).

        They compose as releases would; statements about them may use up part of delta. None:
        `losses` says all.
        """
        return None

    def joint(
        self, facts: Facts, members: tuple[int, ...], observers: tuple[int, ...]
    ) -> float | None:
        """Loss of several peers whose data all change at once; None: nothing sharper than the sum
        of their mu is known."""
        return None

    def sharp(self, facts: Facts) -> bool:
        """Whether its losses are equalities for some data, so that no other theorem can say
        less."""
        return False

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
        heard = [
            len(neighborhood(facts.at(t), chosen))
            for t in range(facts.steps if fixed is None else 1)
        ]
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
        for v, losses in enumerate(in_chunks(_Observer(self, facts), range(facts.n), progress)):
            m[:, v] = losses
        np.fill_diagonal(m, np.nan)
        return m


@dataclass(frozen=True)
class _Observer:
    """What a theorem says of the view of one observer."""

    theorem: Theorem
    facts: Facts

    def __call__(self, observer: int) -> Array:
        return self.theorem.losses(self.facts, (observer,))


def released_before(facts: Facts) -> None:
    """Refuses unless every peer released once at most, before the first message."""
    releases = facts.releases()
    if np.any(releases > 1):
        worst = int(np.argmax(releases))
        raise PrivacyError(
            f"the averaging theorems need one release per peer, but peer {worst} made"
            f" {releases[worst]}; use seen_by='everybody' (local DP)"
        )
    if np.any(facts.ledger.column("clock")[facts.data_lines()] > 0):
        raise PrivacyError(
            "the averaging theorems need every release before the first message; some came later"
        )


def one_release(facts: Facts) -> Hypothesis:
    """Every peer released its value once, before the first message; raises otherwise."""
    released_before(facts)
    facts.noise_multiplier()
    return Hypothesis(
        "one Gaussian release per peer, all with the same noise multiplier", checked=True
    )
