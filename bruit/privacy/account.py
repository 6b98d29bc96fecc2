"""The accountant: from facts and theorems to one honest answer about one pair, a coalition, or everybody.

The default returns the best proven guarantee, else local DP, and says which and why. A theorem asked for by status
"published" raises when its hypotheses fail. Asking what a peer learns about itself is refused. Protocols that share a
ledger compose: Gaussian parts add their squared mu, others go through privacy loss distributions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import PrivacyError
from bruit.privacy.accountants.gaussian import epsilons
from bruit.privacy.composition import compose
from bruit.privacy.events import Event, Exact, GaussianEvent, Mask
from bruit.privacy.guarantee import Guarantee, Hypothesis, Status
from bruit.privacy.network.theorem import Facts, Theorem
from bruit.privacy.profile import EventsProfile, GaussianProfile, Profile, check_delta

Observers = int | Iterable[int] | str | None


def observers_of(facts: Facts, seen_by: Observers) -> tuple[int, ...] | None:
    """The observers as a sorted tuple, None for everybody; unknown peers are refused by name."""
    if seen_by is None or seen_by == "everybody":
        return None
    if isinstance(seen_by, str):
        raise PrivacyError(f"seen_by is a peer, a set of peers or 'everybody', found {seen_by!r}")
    chosen = {int(seen_by)} if isinstance(seen_by, int | np.integer) else {int(v) for v in seen_by}
    if not chosen:
        raise PrivacyError("the set of observers is empty; name at least one peer, or 'everybody'")
    for v in chosen:
        _known(facts, v)
    return tuple(sorted(chosen))


def _known(facts: Facts, peer: int) -> None:
    if not 0 <= peer < facts.n:
        raise PrivacyError(f"there is no peer {peer}: the peers are 0..{facts.n - 1}")


@dataclass(frozen=True, eq=False)
class Charge:
    """What a view costs every peer: an exact Gaussian part and releases of other kinds.

    energy[u] = mu**2 = m(u) / z**2, infinite for a read without noise; counts[u, k] releases of events[k]."""

    energy: Array  # (n,)
    events: tuple[Event, ...] = ()
    counts: Ints | None = None  # (n, events)

    def profile(self, peer: int) -> Profile:
        others: list[Profile] = [GaussianProfile(math.sqrt(self.energy[peer]))]
        if self.counts is not None:
            counted = zip(self.events, self.counts[peer].tolist(), strict=True)
            others.append(EventsProfile(tuple((event, count) for event, count in counted if count)))
        return compose(others)

    def worst(self, peers: Ints, delta: float) -> int:
        """The peer with the largest epsilon: within equal counts, the one with the largest energy."""
        if self.counts is None or not len(peers):
            return int(peers[np.argmax(self.energy[peers])]) if len(peers) else 0
        groups: dict[tuple[int, ...], int] = {}
        for u in peers.tolist():
            key = tuple(self.counts[u].tolist())
            if key not in groups or self.energy[groups[key]] < self.energy[u]:
                groups[key] = u
        return max(groups.values(), key=lambda u: self.profile(u).epsilon(delta))

    def plus(self, other: Charge) -> Charge:
        parts = [part for part in (self, other) if part.counts is not None]
        counts = np.concatenate([part.counts for part in parts if part.counts is not None], axis=1) if parts else None
        return Charge(self.energy + other.energy, tuple(e for part in parts for e in part.events), counts)


def charged_locally(facts: Facts) -> Charge:
    """Everything each peer ever released, seen by everybody, from its ledger lines (gossip:DP-8)."""
    counts, energy = facts.ledger.counts(), np.zeros(facts.n)
    others = []
    for k, event in enumerate(facts.ledger.events):
        if isinstance(event, GaussianEvent):
            with np.errstate(divide="ignore"):
                energy += np.where(counts[:, k] > 0, counts[:, k] / np.float64(event.noise_multiplier) ** 2, 0.0)
        elif isinstance(event, Exact):
            energy[counts[:, k] > 0] = np.inf
        elif not isinstance(event, Mask):
            others.append(k)
    events = tuple(facts.ledger.events[k] for k in others)
    return Charge(energy, events, counts[:, others] if others else None)


@dataclass(frozen=True)
class Accountant:
    """Answers about one protocol; `theorems` come from its algorithm, sharpest first.

    `earlier` is the protocol that ran before in the same ledger. When this one went on from its hidden states
    (`continued`), knowing the later messages is knowing more about the earlier ones: the earlier protocol is then
    charged as if all its releases were public, unless it ended in a state every observer knew (gossip:MUF-9).
    """

    facts: Facts
    theorems: tuple[Theorem, ...]
    earlier: Accountant | None = None
    continued: bool = False

    def theorem(self, status: Status = "proven") -> tuple[Theorem | None, tuple[Hypothesis, ...], tuple[str, ...]]:
        """The first theorem of that status whose hypotheses hold, with the reasons why others do not."""
        refused: list[str] = []
        if self.facts.missed:
            refused.append(f"{self.facts.missed} exchanges were missed or made up for later, so the views are not"
                           " those of the agreed protocol; they are charged as local DP")  # fmt: skip
            if status == "proven":
                return None, (), tuple(refused)
        if self.facts.unequal:
            refused.append("peers add noise of different sizes, and the theorems on views are about equal noise; every"
                           " release is charged as local DP")  # fmt: skip
            if status == "proven":
                return None, (), tuple(refused)
        for theorem in self.theorems:
            if theorem.status != status:
                continue
            try:
                return theorem, theorem.check(self.facts), tuple(refused)
            except PrivacyError as error:
                refused.append(f"{theorem.title} ({theorem.spec}) does not apply: {error}")
        if status != "proven":
            raise PrivacyError("; ".join(refused) or f"no {status} formula is known for this algorithm")
        return None, (), tuple(refused)

    def guarantee(self, of: int | None = None, seen_by: Observers = None, delta: float = 1e-6,
                  status: Status = "proven") -> Guarantee:  # fmt: skip
        """What `seen_by` could have learned about `of` (the worst peer by default)."""
        if of is not None:
            _known(self.facts, of)
        observers = observers_of(self.facts, seen_by)
        if observers is not None and of in observers:
            raise PrivacyError(f"peer {of} is among the observers {list(observers)}: nobody has secrets from oneself")
        check_delta(delta)
        phases = self._phases(observers, status, delta)
        charge = _summed(phases)
        peers = np.setdiff1d(np.arange(self.facts.n), observers or ())
        chosen = charge.worst(peers, delta) if of is None else of
        nobody = of is None and not len(peers)
        return self._stated(phases, charge, observers, of, chosen, nobody)

    def learned(self, seen_by: Observers, delta: float = 1e-6, status: Status = "proven") -> Array:
        """Epsilon of every peer in the joint view of the observers, who are nan themselves  # (n,)."""
        observers = observers_of(self.facts, seen_by)
        check_delta(delta)
        charge = _summed(self._phases(observers, status, delta))
        if charge.counts is None:
            found = epsilons(np.sqrt(charge.energy), delta)
        else:
            found = np.array([charge.profile(u).epsilon(delta) for u in range(self.facts.n)])
        found[list(observers or ())] = np.nan
        return found

    def _stated(self, phases: list[_Answer], charge: Charge, observers: tuple[int, ...] | None, of: int | None,
                chosen: int, nobody: bool) -> Guarantee:  # fmt: skip
        last = phases[-1]
        single = len(phases) == 1
        multipliers = {part.multiplier for part in phases if part.count}
        z = multipliers.pop() if len(multipliers) == 1 else 0.0
        energy = float(charge.energy[chosen])
        loss = energy * z**2 if 0 < z < math.inf and energy < math.inf else math.nan
        if charge.counts is None and energy in (0.0, math.inf):
            seen = sum(part.count for part in phases) if z == 0 else math.inf
            loss = 0.0 if energy == 0 else seen
        titles = "; then ".join(f"{part.title} ({part.spec})" for part in phases)
        return Guarantee(
            last.title if single else f"composition of {titles}", last.spec if single else "gossip:DP-5", last.status,
            self.facts.level, "the worst peer" if of is None else f"peer {of}", _named(observers),
            tuple(dict.fromkeys(h for part in phases for h in part.hypotheses)),
            GaussianProfile(0.0) if nobody else charge.profile(chosen), 0.0 if nobody else loss,
            z if 0 < z < math.inf else 0.0, tuple(note for part in phases for note in part.notes),
            "; then ".join(part.seen for part in phases if part.seen),
            tuple(dict.fromkeys(text for part in phases for text in part.advice)),
        )  # fmt: skip

    def _phases(self, observers: tuple[int, ...] | None, status: Status, delta: float,
                opened: bool = False) -> list[_Answer]:  # fmt: skip
        """One answer per protocol, the earliest first."""
        before: list[_Answer] = []
        if self.earlier is not None:
            hidden = self.continued and not self.earlier.ends_known(status)
            before = self.earlier._phases(observers, status, delta / 2, hidden)
        if observers is None or opened:
            why = ("the next protocol went on from its hidden states, so all its releases count as seen",)
            return [*before, self._local(why if opened and observers is not None else ())]
        theorem, hypotheses, refused = self.theorem(status)
        if theorem is None:
            return [*before, self._local(refused or ("no theorem on views is known for this algorithm",))]
        charge, z = self._charged(theorem, observers, delta / 2)
        releases = self.facts.releases()
        notes = refused + theorem.notes(self.facts, observers)
        return [*before, _Answer(
            charge, theorem.title, theorem.spec, theorem.status, hypotheses, notes,
            theorem.seen(self.facts, observers), theorem.advice(self.facts, observers), z,
            float(releases.max(initial=0)),
        )]  # fmt: skip

    def _charged(self, theorem: Theorem, observers: tuple[int, ...], delta: float) -> tuple[Charge, float]:
        """What the theorem says the view costs, using up at most delta for events, and the noise multiplier that losses
        are measured in (0: there are none). A proven loss is never above that of the most exposed peer before all."""
        counted = theorem.events(self.facts, observers, delta)
        if counted is not None:
            return Charge(np.zeros(self.facts.n), *counted), 0.0
        losses, z = theorem.losses(self.facts, observers), theorem.unit(self.facts)
        with np.errstate(divide="ignore", invalid="ignore"):
            energy = np.where(losses > 0, losses / np.float64(z) ** 2, 0.0)
        if theorem.status == "proven":
            energy = np.minimum(energy, charged_locally(self.facts).energy.max(initial=0.0))
        return Charge(energy), z

    def ends_known(self, status: Status) -> bool:
        """Whether its last states are a function of what every observer saw."""
        theorem, _, _ = self.theorem(status)
        return theorem is not None and theorem.ends_known(self.facts)

    def _local(self, notes: tuple[str, ...] = ()) -> _Answer:
        charge, releases = charged_locally(self.facts), self.facts.releases()
        kinds = {e.noise_multiplier for e in self.facts.ledger.events if isinstance(e, GaussianEvent)}
        z = kinds.pop() if len(kinds) == 1 and charge.counts is None else 0.0
        door = Hypothesis("every release went through the door and its ledger line", checked=True)
        hypotheses = (door, *self.facts.declared)
        total = int(releases.sum())
        return _Answer(
            charge, "local DP: composition of the ledger's lines", "gossip:DP-8", "proven", hypotheses, notes,
            f"all {total} releases of all peers, as if they were published", ("release less often",), z,
            float(releases.max(initial=0)),
        )  # fmt: skip

    def losses(self, status: Status = "proven", progress: Callable[[int, int], None] | None = None) -> Array:
        """m[u, v]: loss of u in the view of v in local-DP units, diagonal nan; local DP if no theorem holds.

        The unit is one release of this protocol; earlier ones are converted by their noise multipliers."""
        if self.earlier is None:
            theorem = self.theorem(status)[0]
            if theorem is not None:
                return theorem.matrix(self.facts, progress)
            m = np.repeat(self.facts.releases().astype(np.float64)[:, None], self.facts.n, axis=1)
        else:
            energy = self._energies(status, progress, False)
            with np.errstate(invalid="ignore"):
                m = np.where(energy > 0, energy * self._unit(status) ** 2, 0.0)
        np.fill_diagonal(m, np.nan)
        return m

    def _unit(self, status: Status) -> float:
        """The noise multiplier that losses of pairs are told in."""
        kinds = {e.noise_multiplier for e in self.facts.ledger.events if isinstance(e, GaussianEvent)}
        hidden = not kinds and self.facts.ledger.has_exact()  # by noise that others add
        theorem = self.theorem(status)[0] if len(kinds) > 1 or hidden else None
        if len(kinds) == 1 or theorem is not None:
            return kinds.pop() if theorem is None else theorem.unit(self.facts)
        return 1.0 if kinds or self.earlier is not None else 0.0

    def _energies(self, status: Status, progress: Callable[[int, int], None] | None, opened: bool) -> Array:
        """mu**2 of every pair  # (n, n)."""
        n = self.facts.n
        total = np.zeros((n, n))
        if self.earlier is not None:
            total += self.earlier._energies(status, None, self.continued and not self.earlier.ends_known(status))
        theorem = None if opened else self.theorem(status)[0]
        if theorem is None:
            charge = charged_locally(self.facts)
            if charge.counts is not None:
                kinds = ", ".join(str(event) for event in charge.events)
                raise PrivacyError(f"losses of pairs are for Gaussian noise, and the ledger holds {kinds}; ask for the"
                                   " epsilon of one pair")  # fmt: skip
            return total + charge.energy[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            m = theorem.matrix(self.facts, progress)
            return total + np.where(m > 0, m / np.float64(theorem.unit(self.facts)) ** 2, 0.0)

    def summary(self, delta: float = 1e-6, status: Status = "proven",
                progress: Callable[[int, int], None] | None = None) -> Summary:  # fmt: skip
        """Worst, typical and mean pair, and what local DP alone would say."""
        everybody = self.guarantee(None, None, delta)
        theorem, hypotheses, refused = self.theorem(status)
        parts = self._phases(None, status, delta)
        z = self._unit(status)
        if any(part.charge.counts is not None for part in parts):  # not Gaussian: all pairs are charged alike
            theorem, hypotheses = None, everybody.hypotheses
            table, known = np.full(3, float(everybody.epsilon(delta))), (everybody.loss,) * 3
        else:
            known = _three(self.losses(status, progress))
            three = np.array(known)
            table = epsilons(np.sqrt(three) / z, delta) if z > 0 else np.where(three > 0, np.inf, 0.0)
        title, spec = (theorem.title, theorem.spec) if theorem is not None else (everybody.theorem, everybody.spec)
        return Summary(
            title, spec, status, self.facts.level, delta, z, known,
            (float(table[0]), float(table[1]), float(table[2])),
            float(everybody.epsilon(delta)), everybody.loss, hypotheses or everybody.hypotheses, refused,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Answer:
    """What one protocol says about a view."""

    charge: Charge
    title: str
    spec: str
    status: Status
    hypotheses: tuple[Hypothesis, ...]
    notes: tuple[str, ...]
    seen: str
    advice: tuple[str, ...]
    multiplier: float
    count: float


def _summed(phases: list[_Answer]) -> Charge:
    """All protocols together."""
    charge = phases[0].charge
    for phase in phases[1:]:
        charge = charge.plus(phase.charge)
    return charge


def _named(observers: tuple[int, ...] | None) -> str:
    if observers is None:
        return "everybody"
    return f"peer {observers[0]}" if len(observers) == 1 else f"peers {', '.join(map(str, observers))} together"


def _three(m: Array) -> tuple[float, float, float]:
    """Worst, median and mean of a pairwise matrix (mean as max over observers of the mean over peers)."""
    off = m[~np.eye(len(m), dtype=bool)]
    if not off.size:
        return 0.0, 0.0, 0.0
    return float(off.max()), float(np.median(off)), float(np.max(np.nansum(m, axis=0)) / len(m))


@dataclass(frozen=True)
class Summary:
    """The privacy table of a run. The mean protects no individual pair: it is a summary, printed beside the worst."""

    theorem: str
    spec: str
    status: Status
    level: str
    delta: float
    noise_multiplier: float
    losses: tuple[float, float, float]  # worst, typical (median), mean
    epsilons: tuple[float, float, float]
    local_epsilon: float
    local_loss: float
    hypotheses: tuple[Hypothesis, ...]
    refused: tuple[str, ...]
