"""The accountant: from facts and theorems to one honest answer about one pair, a coalition, a group, or everybody.

There is one function from observers to numbers, `Accountant.charge`; pairs, tables, summaries, groups, reports and
pages are read off its `Charge`. Several theorems may hold. Each is an upper bound of the same quantity, from public
facts only, so for every peer the least of them is one too; it is taken, and the answer names the theorem it came from.
If none holds, local DP is said, with the reasons. A theorem asked for by status "published" raises when its hypotheses
fail. Asking what a peer learns about itself is refused. Protocols that share a ledger compose: Gaussian parts add their
squared mu, others go through privacy loss distributions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import PrivacyError
from bruit.privacy.accountants.rounding import rounded_epsilons
from bruit.privacy.composition import compose
from bruit.privacy.events import Event, Exact, GaussianEvent, Mask
from bruit.privacy.guarantee import REAL, Guarantee, Hypothesis, Status, weakest
from bruit.privacy.network.theorem import Facts, Theorem, out_of_reach
from bruit.privacy.profile import EventsProfile, GaussianProfile, Profile, Rounded, asks_pure

Observers = int | Iterable[int] | str | None
Peers = int | Iterable[int] | None
Progress = Callable[[int, int], None]
Watching = tuple[int, ...] | Literal["each"] | None
"""Whose view: some peers together, each peer by itself (all pairs at once), or everybody (None)."""

_Holding = tuple[Theorem, tuple[Hypothesis, ...]]
MOST_PEERS = 16_384  # of whom all pairs are told at once: two gigabytes a table
LOCAL, LOCAL_SPEC = "local DP: composition of the ledger's lines", "gossip:DP-8"


def observers_of(facts: Facts, seen_by: Observers) -> tuple[int, ...] | None:
    """The observers as a sorted tuple, None for everybody; unknown peers are refused by name."""
    if seen_by is None or seen_by == "everybody":
        return None
    if isinstance(seen_by, str):
        raise PrivacyError(f"seen_by is a peer, a set of peers or 'everybody', found {seen_by!r}")
    return _chosen(facts, seen_by, "the set of observers is empty; name at least one peer, or 'everybody'")


def _chosen(facts: Facts, peers: int | Iterable[int], empty: str) -> tuple[int, ...]:
    chosen = {int(peers)} if isinstance(peers, int | np.integer) else {int(v) for v in peers}
    if not chosen:
        raise PrivacyError(empty)
    for v in chosen:
        if not 0 <= v < facts.n:
            raise PrivacyError(f"there is no peer {v}: the peers are 0..{facts.n - 1}")
    return tuple(sorted(chosen))


@dataclass(frozen=True, eq=False)
class Charge:
    """What views cost every peer: the only carrier of numbers between theorems and answers.

    Row u is a Gaussian pair of squared mu `energy[u]` = loss[u] / unit**2, composed with counts[u, k] releases of
    events[k], whose noise is of other kinds. A loss is in units of one release with noise multiplier `unit`; it is
    infinite for what is seen without noise while others have some. Without any noise the unit is 0 and every loss above
    0 costs infinitely much. `loss` is a row of numbers for one view, or a matrix whose column v is the view of v alone.
    `rounding` is R of what was sent (fp:FP-0), and adds up as losses do.
    """

    loss: Array  # (n,) or (n, n)
    unit: float
    events: tuple[Event, ...] = ()
    counts: Ints | None = None  # (n, events)
    rounding: Array | float = 0.0  # as `loss`, or (n,), or one for all

    @property
    def energy(self) -> Array:
        """mu**2 of the Gaussian part."""
        return rescaled(self.loss, self.unit, 1.0)

    def scaled(self, factor: float) -> Charge:
        """The same views with all Gaussian noise multiplied by the factor."""
        if self.counts is not None:
            raise PrivacyError(f"only Gaussian noise is scaled here, found {_kinds(self.events)}")
        return replace(self, unit=factor * self.unit)

    def plus(self, other: Charge) -> Charge:
        """Both, the other one later: losses are told in its unit, if it has one."""
        unit = other.unit if other.unit > 0 else self.unit
        loss = rescaled(self.loss, self.unit, unit) + rescaled(other.loss, other.unit, unit)
        parts = [(part.events, part.counts) for part in (self, other) if part.counts is not None]
        counts = np.concatenate([counts for _, counts in parts if counts is not None], axis=1) if parts else None
        events = tuple(event for events, _ in parts for event in events)
        return Charge(loss, unit, events, counts, self.rounded() + other.rounded())

    def rounded(self) -> Array:
        """R of every entry  # as `loss`."""
        amount = np.asarray(self.rounding, np.float64)
        rows = amount[:, None] if amount.ndim == 1 and self.loss.ndim == 2 else amount
        return np.broadcast_to(rows, self.loss.shape)

    def of(self, rows: Sequence[int]) -> Charge:
        """The charge of some peers only, in one view."""
        chosen = list(rows)
        counts = None if self.counts is None else self.counts[chosen]
        return replace(self, loss=self.loss[chosen], counts=counts, rounding=self.rounded()[chosen])

    def group(self, members: tuple[int, ...]) -> Charge:
        """One row: all members change their data at once, one after the other, so that their mu add up."""
        if self.counts is not None:
            raise PrivacyError(f"mu adds up for Gaussian noise only, found {_kinds(self.events)}")
        chosen = list(members)
        loss = np.sqrt(self.loss[chosen]).sum(keepdims=True) ** 2
        return replace(self, loss=loss, rounding=float(self.rounded()[chosen].sum()))

    def profile(self, row: int) -> Profile:
        """Of one peer in one view."""
        parts: list[Profile] = [GaussianProfile(math.sqrt(self.energy[row]))]
        if self.counts is not None:
            counted = zip(self.events, self.counts[row].tolist(), strict=True)
            parts.append(EventsProfile(tuple((event, count) for event, count in counted if count)))
        whole, amount = compose(parts), float(self.rounded()[row])
        return Rounded(whole, amount) if amount > 0 and self.energy[row] > 0 else whole

    def epsilons(self, delta: float) -> Array:
        """The epsilon of every entry; equal rows of noise that is not Gaussian are composed once  # as `loss`."""
        if self.counts is None:
            return rounded_epsilons(np.sqrt(self.energy), self.rounded(), delta)
        _, first, back = self._distinct()
        return np.array([self.profile(int(u)).epsilon(delta) for u in first])[back]

    def largest(self, delta: float) -> float:
        """The largest epsilon of all Gaussian entries: of every R, that of the largest loss; nan is left out."""
        known = ~np.isnan(self.loss)
        amounts, place = np.unique(self.rounded()[known], return_inverse=True)
        most = np.zeros(len(amounts))
        np.maximum.at(most, place, self.energy[known])
        return float(rounded_epsilons(np.sqrt(most), amounts, delta).max(initial=0.0))

    def kinds(self) -> int:
        """How many different rows there are."""
        return len(np.unique(self.loss)) if self.counts is None else len(self._distinct()[1])

    def _distinct(self) -> tuple[Array, Ints, Ints]:
        if self.counts is None or self.loss.ndim > 1:
            raise _not_gaussian(self.events)
        lines = np.concatenate([self.energy[:, None], self.rounded()[:, None], self.counts], axis=1)
        rows, first, back = np.unique(lines, axis=0, return_index=True, return_inverse=True)
        return rows, first, back.reshape(-1)

    def worst(self, peers: Ints, delta: float) -> int:
        """The peer with the largest epsilon: within equal counts, the one with the largest energy."""
        if self.counts is None or not len(peers):
            return int(peers[np.argmax(self.loss[peers])]) if len(peers) else 0
        groups: dict[tuple[int, ...], int] = {}
        for u in peers.tolist():
            key = tuple(self.counts[u].tolist())
            if key not in groups or self.loss[groups[key]] < self.loss[u]:
                groups[key] = u
        return max(groups.values(), key=lambda u: self.profile(u).epsilon(delta))

    def told(self) -> Array:
        """Losses in local-DP units: where noise is not Gaussian but of one kind, releases; else nan  # as `loss`."""
        if self.counts is None:
            return self.loss
        if len(self.events) == 1 and not np.nan_to_num(self.loss).any():
            releases = self.counts[:, 0].astype(np.float64)
            return np.asarray(np.broadcast_to(releases[:, None] if self.loss.ndim > 1 else releases, self.loss.shape))
        return np.full(self.loss.shape, np.nan)


def rescaled(loss: Array, unit: float, to: float) -> Array:
    """The same squared mu told in another unit: loss (to / unit)**2. Without noise (unit 0) any loss is infinite."""
    if unit == to:
        return loss
    if unit == 0:
        return np.where(loss > 0, np.inf, loss)
    with np.errstate(invalid="ignore", over="ignore"):
        found = loss * np.square(np.float64(to / unit))
    return np.where(loss == 0, 0.0, found)


def _kinds(events: Sequence[Event]) -> str:
    return ", ".join(str(event) for event in events)


def _not_gaussian(events: Sequence[Event]) -> PrivacyError:
    return PrivacyError(f"losses of pairs are for Gaussian noise, and the ledger holds {_kinds(events)}; ask for the"
                        " epsilon of one pair")  # fmt: skip


def unit_of(facts: Facts) -> float:
    """The noise multiplier that losses are told in: that of the release with the most noise, or of the mechanism if
    nobody released with noise of its own; 0 without noise."""
    known = [event.noise_multiplier for event in facts.ledger.events if isinstance(event, GaussianEvent)]
    return max(known) if known else facts.sigma / (2 * facts.clip)


def door_hypothesis(facts: Facts) -> Hypothesis:
    """Whether data left through the door only: checked while the run went on, or assumed, and why."""
    text = "every release went through the door and its ledger line"
    return Hypothesis(f"{text} ({facts.unwatched})" if facts.unwatched else text, checked=not facts.unwatched)


def charged_locally(facts: Facts) -> Charge:
    """Everything each peer ever released, seen by everybody, from its ledger lines (gossip:DP-8)."""
    counts, unit = facts.ledger.counts(), unit_of(facts)
    loss, rounding, others = np.zeros(facts.n), np.zeros(facts.n), []
    for k, event in enumerate(facts.ledger.events):
        if isinstance(event, GaussianEvent):
            rounding += counts[:, k] * (event.rounding if event.rounding < math.inf else 0.0)
            loss += rescaled(counts[:, k].astype(np.float64), event.noise_multiplier, unit)
        elif isinstance(event, Exact):
            loss += rescaled(counts[:, k].astype(np.float64), 0.0, unit)
        elif not isinstance(event, Mask):
            others.append(k)
    events = tuple(facts.ledger.events[k] for k in others)
    return Charge(loss, unit, events, counts[:, others] if others else None, rounding)


@dataclass(frozen=True, eq=False)
class _Answer:
    """What one theorem, or local DP (None), says about some views of one protocol."""

    facts: Facts
    charge: Charge
    theorem: Theorem | None
    hypotheses: tuple[Hypothesis, ...]
    why: tuple[str, ...] = ()  # no theorem speaks

    @property
    def title(self) -> str:
        return LOCAL if self.theorem is None else self.theorem.title

    @property
    def spec(self) -> str:
        return LOCAL_SPEC if self.theorem is None else self.theorem.spec

    @property
    def status(self) -> Status:
        told: Status = "proven" if self.theorem is None else self.theorem.status
        return "ideal" if told == "proven" and self.facts.ideal else told

    def notes(self, observers: tuple[int, ...] | None) -> tuple[str, ...]:
        told = () if self.theorem is None or observers is None else self.theorem.notes(self.facts, observers)
        return (*self.why, *told)

    def seen(self, observers: tuple[int, ...] | None) -> str:
        if self.theorem is None or observers is None:
            return f"all {int(self.facts.releases().sum())} releases of all peers, as if they were published"
        return self.theorem.seen(self.facts, observers)

    def advice(self, observers: tuple[int, ...] | None) -> tuple[str, ...]:
        if self.theorem is None or observers is None:
            return ("release less often",)
        return self.theorem.advice(self.facts, observers)

    def group(self, members: tuple[int, ...], observers: tuple[int, ...] | None) -> Charge:
        """One row for all members at once: the least of what the theorem knows of groups, of what the members' own
        charges add up to, and of all their releases (independent, so that squared mu add up)."""
        local = charged_locally(self.facts).of(members)
        counts = None if local.counts is None else local.counts.sum(axis=0, keepdims=True)
        amount = float(local.rounded().sum())
        released = replace(local, loss=local.loss.sum(keepdims=True), counts=counts, rounding=amount)
        if counts is not None or self.theorem is None or observers is None or self.charge.counts is not None:
            return released
        known = self.theorem.joint(self.facts, members, observers)
        certain = self.theorem.status == "proven"
        losses = [self.charge.group(members).loss[0], released.loss[0] if certain else math.inf]
        if known is not None:
            losses.append(float(rescaled(np.array(known), self.theorem.unit(self.facts), local.unit)))
        return replace(released, loss=np.array([min(losses)]),
                       rounding=max(amount, float(self.charge.rounded().max())))  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Phase:
    """The answers about one protocol, and the least of them, entry by entry."""

    answers: tuple[_Answer, ...]
    charge: Charge
    which: Ints | None  # as the charge's loss: the answer each entry came from; None: all from the first

    def by(self, entry: tuple[int, ...]) -> _Answer:
        return self.answers[0 if self.which is None else int(self.which[entry])]


def _least(answers: tuple[_Answer, ...], delta: float, asked: Sequence[int] | None = None) -> _Phase:
    """For every peer the answer that costs it least; the first one among equals.

    Where noise is not Gaussian epsilons are compared, of those peers only that are asked about: they cost time."""
    best = answers[0].charge
    if len(answers) == 1:
        return _Phase(answers, best, None)
    rounding = np.max([answer.charge.rounded() for answer in answers], axis=0)
    which: Ints = np.zeros(best.loss.shape, np.int64)
    if all(answer.charge.counts is None for answer in answers):
        loss = best.loss
        for k, answer in enumerate(answers[1:], 1):
            lower = answer.charge.loss < loss
            loss, which = np.where(lower, answer.charge.loss, loss), np.where(lower, k, which)
        return _Phase(answers, replace(best, loss=loss, rounding=rounding), which)
    chosen = list(range(len(best.loss)) if asked is None else asked)
    which[chosen] = np.argmin([answer.charge.of(chosen).epsilons(delta) for answer in answers], axis=0)
    rows, events, counts = np.zeros_like(best.loss), list[Event](), []
    for k, answer in enumerate(answers):
        rows[which == k] = answer.charge.loss[which == k]
        if answer.charge.counts is not None:
            events += answer.charge.events
            counts.append(np.where((which == k)[:, None], answer.charge.counts, 0))
    return _Phase(answers, Charge(rows, best.unit, tuple(events), np.concatenate(counts, axis=1), rounding), which)


def _summed(phases: Sequence[_Phase]) -> Charge:
    """All protocols together."""
    charge = phases[0].charge
    for phase in phases[1:]:
        charge = charge.plus(phase.charge)
    return charge


@dataclass(frozen=True)
class Accountant:
    """Answers about one protocol; `theorems` come from its algorithm, those to be preferred among equals first.

    `earlier` is the protocol that ran before in the same ledger. When this one went on from its hidden states
    (`continued`), knowing the later messages is knowing more about the earlier ones: the earlier protocol is then
    charged as if all its releases were public, unless it ended in a state every observer knew (gossip:MUF-9).
    """

    facts: Facts
    theorems: tuple[Theorem, ...]
    earlier: Accountant | None = None
    continued: bool = False

    def applicable(self, status: Status = "proven") -> tuple[list[_Holding], tuple[str, ...]]:
        """The theorems of that status whose hypotheses hold, with these, and the reasons why others do not.

        After one that is an equality no other is asked; of formulas that prove nothing only the first is wanted."""
        why = out_of_reach(self.facts)
        refused, found = [why] if why else [], []
        for theorem in self.theorems:
            if theorem.status != status or why:
                continue
            try:
                watched = () if not self.facts.unwatched else (door_hypothesis(self.facts),)
                found.append((theorem, (*theorem.check(self.facts), *watched, *self.facts.declared)))
            except PrivacyError as error:
                refused.append(f"{theorem.title} ({theorem.spec}) does not apply: {error}")
                continue
            if status != "proven" or theorem.sharp(self.facts):
                break
        if status != "proven" and not found:
            name = self.facts.algorithm or "this algorithm"
            raise PrivacyError("; ".join(refused) or f"no {status} formula is listed for runs of {name};"
                               " `bruit list theorems` shows all there are")  # fmt: skip
        return found, tuple(refused)

    def theorem(self, status: Status = "proven") -> tuple[Theorem | None, tuple[Hypothesis, ...], tuple[str, ...]]:
        """The first theorem of that status whose hypotheses hold, with the reasons why others do not."""
        found, refused = self.applicable(status)
        return (*found[0], refused) if found else (None, (), refused)

    def charge(self, seen_by: Observers = None, delta: float = 1e-6, status: Status = "proven") -> Charge:
        """What the joint view of the observers costs every peer: all answers are read off this.

        Observers' own rows mean nothing. Statements that hold but for some probability use up a part of delta."""
        asks_pure(delta)
        return _summed(self._phases(observers_of(self.facts, seen_by), status, delta))

    def charges(self, delta: float = 1e-6, status: Status = "proven", progress: Progress | None = None) -> Charge:
        """The same for all peers as single observers at once: column v is `charge(v)`, by what theorems know of whole
        matrices; the diagonal is nan."""
        asks_pure(delta)
        return _summed(self._phases("each", status, delta, progress))

    def guarantee(self, of: Peers = None, seen_by: Observers = None, delta: float = 1e-6,
                  status: Status = "proven") -> Guarantee:  # fmt: skip
        """What `seen_by` could have learned about `of`: the worst peer by default; about several peers, when all of
        them change their data at once (gossip:MUF-12)."""
        members = None if of is None else _chosen(self.facts, of, "the group is empty; name at least one peer")
        observers = observers_of(self.facts, seen_by)
        watched = sorted(set(members or ()) & set(observers or ()))
        if watched:
            raise PrivacyError(f"peer {watched[0]} is among the observers {list(observers or ())}: nobody has secrets"
                               " from oneself")  # fmt: skip
        asks_pure(delta)
        phases = self._phases(observers, status, delta, asked=members)
        if members is not None and len(members) > 1:
            return self._of_group(phases, members, observers, delta)
        charge = _summed(phases)
        peers = np.setdiff1d(np.arange(self.facts.n), observers or ())
        row = charge.worst(peers, delta) if members is None else members[0]
        nobody = members is None and not len(peers)
        named = "the worst peer" if members is None else f"peer {row}"
        return self._stated([phase.by((row,)) for phase in phases], _one(charge, row, nobody), observers, named)

    def _of_group(self, phases: Sequence[_Phase], members: tuple[int, ...], observers: tuple[int, ...] | None,
                  delta: float) -> Guarantee:  # fmt: skip
        chosen = []
        for phase in phases:
            rows = [answer.group(members, observers) for answer in phase.answers]
            best = min(range(len(rows)), key=lambda k: rows[k].profile(0).epsilon(delta))
            chosen.append((phase.answers[best], rows[best]))
        charge = chosen[0][1]
        for _, row in chosen[1:]:
            charge = charge.plus(row)
        named = f"peers {', '.join(map(str, members))} together"
        notes = ("all members may change their data at once and in any direction (gossip:MUF-12)",)
        return self._stated([answer for answer, _ in chosen], charge, observers, named, notes)

    def learned(self, seen_by: Observers, delta: float = 1e-6, status: Status = "proven") -> Array:
        """Epsilon of every peer in the joint view of the observers, who are nan themselves  # (n,)."""
        found = self.charge(seen_by, delta, status).epsilons(delta)
        found[list(observers_of(self.facts, seen_by) or ())] = np.nan
        return found

    def _stated(self, answers: Sequence[_Answer], charge: Charge, observers: tuple[int, ...] | None, of: str,
                more: tuple[str, ...] = ()) -> Guarantee:  # fmt: skip
        """The statement about the one row of the charge, by these answers, one for each protocol."""
        last, single = answers[-1], len(answers) == 1
        titles = "; then ".join(f"{answer.title} ({answer.spec})" for answer in answers)
        plain = charge.counts is None and 0 < charge.unit < math.inf
        return Guarantee(
            last.title if single else f"composition of {titles}", last.spec if single else "gossip:DP-5",
            weakest(answer.status for answer in answers), self.facts.level, of, _named(observers),
            tuple(dict.fromkeys(h for answer in answers for h in answer.hypotheses)),
            charge.profile(0), float(charge.told()[0]), charge.unit if plain else 0.0,
            (*(note for answer in answers for note in answer.notes(observers)), *more),
            "; then ".join(answer.seen(observers) for answer in answers),
            tuple(dict.fromkeys(text for answer in answers for text in answer.advice(observers))), self.facts.noise,
        )  # fmt: skip

    def _phases(self, watching: Watching, status: Status, delta: float, progress: Progress | None = None,
                opened: bool = False, asked: tuple[int, ...] | None = None) -> list[_Phase]:  # fmt: skip
        """The answers about each protocol, the earliest first."""
        if watching == "each" and self.facts.n > MOST_PEERS:
            raise PrivacyError(f"all pairs of {self.facts.n} peers are {self.facts.n**2:,} numbers; tables are made for"
                               f" up to {MOST_PEERS} peers. Ask about one pair, or about one observer (of, seen_by)")
        before: list[_Phase] = []
        if self.earlier is not None:
            hidden = self.continued and not self.earlier.ends_known(status)
            before = self.earlier._phases(watching, status, delta / 2, None, hidden, asked)
        if watching is None or opened:
            why = ("the next protocol went on from its hidden states, so all its releases count as seen",)
            return [*before, _least((self._local(watching, why if opened and watching is not None else ()),), delta)]
        found, refused = self.applicable(status)
        if not found:
            told = refused or ("no theorem on views is known for this algorithm",)
            return [*before, _least((self._local(watching, told),), delta)]
        answers = [_Answer(self.facts, self._charged(theorem, watching, delta / 2, progress), theorem, hypotheses,
                           refused) for theorem, hypotheses in found]  # fmt: skip
        if status == "proven" and any(answer.charge.counts is not None for answer in answers):
            answers.append(self._local(watching, (*refused, "local DP says less than the theorems that hold")))
        return [*before, _least(tuple(answers), delta, asked)]

    def _charged(self, theorem: Theorem, watching: tuple[int, ...] | Literal["each"], delta: float,
                 progress: Progress | None) -> Charge:  # fmt: skip
        """What the theorem says the view costs, using up at most delta for events. A proven loss of a peer is never
        above that of all its releases, seen by everybody (gossip:DP-8)."""
        local = charged_locally(self.facts)
        if watching == "each":
            losses = theorem.matrix(self.facts, progress)
        else:
            counted = theorem.events(self.facts, watching, delta)
            if counted is not None:
                return Charge(np.zeros(self.facts.n), local.unit, *counted)
            losses = theorem.losses(self.facts, watching)
        losses = rescaled(losses, theorem.unit(self.facts), local.unit)
        if theorem.status == "proven" and local.counts is None:
            losses = np.minimum(losses, local.loss if losses.ndim == 1 else local.loss[:, None], out=losses)
        charge = replace(local, loss=losses, events=(), counts=None, rounding=0.0)
        if theorem.status != "proven" or self.facts.ideal:
            return charge
        charge = replace(charge, rounding=theorem.rounding(self.facts))
        if local.counts is not None:
            return charge
        known = np.broadcast_to(local.loss if losses.ndim == 1 else local.loss[:, None], losses.shape)
        least = replace(charge, loss=known, rounding=local.rounding).rounded()
        return replace(charge, rounding=np.where(losses >= known, least, charge.rounded()))

    def ends_known(self, status: Status) -> bool:
        """Whether its last states are a function of what every observer saw: a fact, whichever theorem is used."""
        return any(theorem.ends_known(self.facts) for theorem, _ in self.applicable(status)[0])

    def _local(self, watching: Watching, why: tuple[str, ...] = ()) -> _Answer:
        charge = charged_locally(self.facts)
        if watching == "each":
            pairs = np.repeat(charge.loss[:, None], self.facts.n, axis=1)
            np.fill_diagonal(pairs, np.nan)
            charge = replace(charge, loss=pairs)
        real = (REAL,) if self.facts.ideal else ()
        return _Answer(self.facts, charge, None, (door_hypothesis(self.facts), *self.facts.declared, *real), why)

    def losses(self, status: Status = "proven", progress: Progress | None = None) -> Array:
        """m[u, v]: loss of u in the view of v in local-DP units, diagonal nan; local DP if no theorem holds.

        The unit is one release of this protocol; earlier ones are converted by their noise multipliers."""
        return self._told(self.charges(status=status, progress=progress))

    def _told(self, charge: Charge) -> Array:
        m = charge.told()
        if self.facts.n > 1 and np.isnan(m).all():
            raise _not_gaussian(charge.events)
        if m is not charge.loss:
            m = m.copy()
        np.fill_diagonal(m, np.nan)
        return m

    def table(self, delta: float = 1e-6, status: Status = "proven", progress: Progress | None = None) -> Table:
        """All pairs: their losses, and the worst, typical and mean of them beside what local DP alone would say."""
        everybody = self.guarantee(None, None, delta)
        refused = self.applicable(status)[1]
        if any(phase.charge.counts is not None for phase in self._phases(None, status, delta)):
            why = "the releases are not Gaussian, so all pairs are charged alike: what local DP says"
            return Table(self._alike(everybody, delta, status, refused), None, why)
        phases = self._phases("each", status, delta, progress)
        charge = _summed(phases)
        m = self._told(charge)
        known = _three(m)
        worst, most = charge.largest(delta), float(charge.rounded().max(initial=0.0))
        others = replace(charge, loss=np.array(known[1:]), rounding=most).epsilons(delta)
        table = [worst, *np.minimum(others, worst).tolist()]
        place = None if self.facts.n < 2 else tuple(int(k) for k in np.unravel_index(np.nanargmax(m), m.shape))
        answers = [phase.answers[0] if place is None else phase.by(place) for phase in phases]
        titles = "; then ".join(f"{answer.title} ({answer.spec})" for answer in answers)
        single = len(answers) == 1
        summary = Summary(
            answers[0].title if single else f"composition of {titles}", answers[0].spec if single else "gossip:DP-5",
            weakest(answer.status for answer in answers), self.facts.level, delta, charge.unit, known,
            (table[0], table[1], table[2]), float(everybody.epsilon(delta)), everybody.loss,
            tuple(dict.fromkeys(h for answer in answers for h in answer.hypotheses)), refused,
        )  # fmt: skip
        return Table(summary, m, "", charge.rounded())

    def _alike(self, everybody: Guarantee, delta: float, status: Status, refused: tuple[str, ...]) -> Summary:
        """Noise that is not Gaussian: every pair is charged as if everybody looked on."""
        epsilon, loss = float(everybody.epsilon(delta)), everybody.loss
        return Summary(everybody.theorem, everybody.spec, everybody.status, self.facts.level, delta, 0.0, (loss,) * 3,
                       (epsilon,) * 3, epsilon, loss, everybody.hypotheses, refused)  # fmt: skip

    def summary(self, delta: float = 1e-6, status: Status = "proven", progress: Progress | None = None) -> Summary:
        """Worst, typical and mean pair, and what local DP alone would say."""
        return self.table(delta, status, progress).summary


def _one(charge: Charge, row: int, nobody: bool) -> Charge:
    """One row of a charge; nothing at all if there is nobody left to learn about."""
    return Charge(np.zeros(1), charge.unit) if nobody else charge.of([row])


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


@dataclass(frozen=True, eq=False)
class Table:
    """All pairs of a run and their summary; `losses` is None where pairs have none of their own, for the `reason`.
    `rounding` is R of every pair."""

    summary: Summary
    losses: Array | None  # (n, n)
    reason: str
    rounding: Array | None = None  # (n, n)
