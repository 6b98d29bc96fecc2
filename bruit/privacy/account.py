"""The accountant: from facts and theorems to one honest answer about one pair, a coalition, a
group, or everybody.

There is one function from observers to numbers, `Accountant.charge`; pairs, tables, summaries,
groups, reports and pages are read off its `Charge`. Several theorems may hold. Each is an upper
bound of the same quantity, from public facts only, so for every peer the least of them is one too;
it is taken, and the answer names the theorem it came from. If none holds, local DP is said, with
the reasons. A theorem asked for by status "published" raises when its hypotheses fail. Asking what
a peer learns about itself is refused. Protocols that share a ledger compose: Gaussian parts add
their squared mu, others go through privacy loss distributions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bruit.arrays import Array
from bruit.errors import PrivacyError
from bruit.privacy.answers import (
    Progress,
    ProtocolAnswers,
    TheoremAnswer,
    Watching,
    charge_of_all,
    composed_title,
    door_hypothesis,
    least_costly,
    local_answer,
    statement,
    theorem_charge,
)
from bruit.privacy.as_a_whole import as_a_whole
from bruit.privacy.charge import Charge, not_gaussian
from bruit.privacy.events import Event, MaskedEvent
from bruit.privacy.guarantee import Guarantee, Hypothesis, Status, weakest
from bruit.privacy.pair_table import PairTable, Summary, all_pairs_alike, worst_median_mean
from bruit.privacy.profile import asks_pure
from bruit.privacy.question import peer_numbers, refuse_self_observers
from bruit.privacy.theorem import Facts, Theorem, out_of_reach

Observers = int | Iterable[int] | str | None
Peers = int | Iterable[int] | None

_Holding = tuple[Theorem, tuple[Hypothesis, ...]]
MOST_PEERS = 16_384  # of whom all pairs are told at once: two gigabytes a table


def observers_of(facts: Facts, seen_by: Observers) -> tuple[int, ...] | None:
    """The observers as a sorted tuple, None for everybody; unknown peers are refused by name."""
    if seen_by is None or seen_by == "everybody":
        return None
    if isinstance(seen_by, str):
        raise PrivacyError(f"seen_by is a peer, a set of peers or 'everybody', found {seen_by!r}")
    return peer_numbers(facts.n, seen_by, "seen_by")


@dataclass(frozen=True)
class Accountant:
    """Answers about one protocol; `theorems` come from its algorithm, those to be preferred among
    equals first.

    `earlier` is the protocol that ran before in the same ledger. When this one went on from its
    hidden states (`continued`), knowing the later messages is knowing more about the earlier ones:
    the earlier protocol is then charged as if all its releases were public, unless it ended in a
    state every observer knew (gossip:MUF-9).
    """

    facts: Facts
    theorems: tuple[Theorem, ...]
    earlier: Accountant | None = None
    continued: bool = False

    def applicable(self, status: Status = "proven") -> tuple[list[_Holding], tuple[str, ...]]:
        """The theorems of that status whose hypotheses hold, with these, and the reasons why others
        do not.

        After one that is an equality no other is asked; of formulas that prove nothing only the
        first is wanted."""
        refused, found = list[str](), list[_Holding]()
        for theorem in self.theorems:
            if theorem.status != status or out_of_reach(
                self.facts, theorem.failures, theorem.sizes
            ):
                continue
            try:
                watched = () if not self.facts.unwatched else (door_hypothesis(self.facts),)
                found.append(
                    (theorem, (*theorem.check(self.facts), *watched, *self.facts.declared))
                )
            except PrivacyError as error:
                refused.append(f"{theorem.title} ({theorem.spec}) does not apply: {error}")
                continue
            if status != "proven" or theorem.sharp(self.facts):
                break
        why = out_of_reach(self.facts)
        if why and not found:
            refused = [why, *refused]
        if status != "proven" and not found:
            name = self.facts.algorithm or "this algorithm"
            raise PrivacyError(
                "; ".join(refused)
                or f"no {status} formula is listed for runs of {name};"
                " `bruit list theorems` shows all there are"
            )
        return found, tuple(refused)

    def theorem(
        self, status: Status = "proven"
    ) -> tuple[Theorem | None, tuple[Hypothesis, ...], tuple[str, ...]]:
        """The first theorem of that status whose hypotheses hold, with the reasons why others do
        not."""
        found, refused = self.applicable(status)
        return (*found[0], refused) if found else (None, (), refused)

    def charge(
        self, seen_by: Observers = None, delta: float = 1e-6, status: Status = "proven"
    ) -> Charge:
        """What the joint view of the observers costs every peer: all answers are read off this.

        Observers' own rows mean nothing. Statements that hold but for some probability use up a
        part of delta."""
        asks_pure(delta)
        return charge_of_all(self._phases(observers_of(self.facts, seen_by), status, delta))

    def charges(
        self, delta: float = 1e-6, status: Status = "proven", progress: Progress | None = None
    ) -> Charge:
        """The same for all peers as single observers at once: column v is `charge(v)`, by what
        theorems know of whole matrices; the diagonal is nan."""
        asks_pure(delta)
        return charge_of_all(self._phases("each", status, delta, progress))

    def guarantee(
        self,
        of: Peers = None,
        seen_by: Observers = None,
        delta: float = 1e-6,
        status: Status = "proven",
    ) -> Guarantee:
        """What `seen_by` could have learned about `of`: the worst peer by default; about several
        peers, when all of them change their data at once (gossip:MUF-12)."""
        members = None if of is None else peer_numbers(self.facts.n, of, "of")
        observers = observers_of(self.facts, seen_by)
        refuse_self_observers(members or (), observers or ())
        asks_pure(delta)
        phases = self._phases(observers, status, delta, asked=members)
        if members is not None and len(members) > 1:
            return self._of_group(phases, members, observers, delta)
        charge = charge_of_all(phases)
        peers = np.setdiff1d(np.arange(self.facts.n), observers or ())
        row = charge.worst(peers, delta) if members is None else members[0]
        nobody = members is None and not len(peers)
        named = "the worst peer" if members is None else f"peer {row}"
        return statement(
            self.facts,
            [phase.by((row,)) for phase in phases],
            _one(charge, row, nobody),
            observers,
            named,
        )

    def _of_group(
        self,
        phases: Sequence[ProtocolAnswers],
        members: tuple[int, ...],
        observers: tuple[int, ...] | None,
        delta: float,
    ) -> Guarantee:
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
        return statement(
            self.facts, [answer for answer, _ in chosen], charge, observers, named, notes
        )

    def whole_peer(self, of: int, records: int, delta: float = 1e-6) -> float:
        """The epsilon of everything that a peer holds, so many records, against everybody, beside
        what was said of one record (silo:SILO-6). Usually very large: not protected, then."""
        if self.facts.level != "record":
            raise PrivacyError(
                f"what is said at {self.facts.level} level is about everything that a peer holds "
                f"already"
            )
        (peer,) = peer_numbers(self.facts.n, int(of), "of")
        lines: list[tuple[Event, int]] = []
        part: Accountant | None = self
        while part is not None:
            lines, part = [*lines, *part.facts.ledger.counts_of(peer)], part.earlier
        return as_a_whole(lines, records, delta)

    def learned(self, seen_by: Observers, delta: float = 1e-6, status: Status = "proven") -> Array:
        """Epsilon of every peer in the joint view of the observers, who are nan themselves
        # (n,)."""
        found = self.charge(seen_by, delta, status).epsilons(delta)
        found[list(observers_of(self.facts, seen_by) or ())] = np.nan
        return found

    def _phases(
        self,
        watching: Watching,
        status: Status,
        delta: float,
        progress: Progress | None = None,
        opened: bool = False,
        asked: tuple[int, ...] | None = None,
    ) -> list[ProtocolAnswers]:
        """The answers about each protocol, the earliest first."""
        if watching == "each" and self.facts.n > MOST_PEERS:
            raise PrivacyError(
                f"all pairs of {self.facts.n} peers are {self.facts.n**2:,} numbers;"
                f" tables are made for up to {MOST_PEERS} peers. Ask about one pair, or about one"
                " observer (of, seen_by)"
            )
        before: list[ProtocolAnswers] = []
        if self.earlier is not None:
            hidden = self.continued and not self.earlier.ends_known(status)
            before = self.earlier._phases(watching, status, delta / 2, None, hidden, asked)
        if watching is None or opened:
            why = (
                "the next protocol went on from its hidden states, so all its releases count as "
                "seen",
            )
            return [
                *before,
                least_costly(
                    (
                        local_answer(
                            self.facts, watching, why if opened and watching is not None else ()
                        ),
                    ),
                    delta,
                ),
            ]
        found, refused = self.applicable(status)
        if not found:
            reasons = refused or ("no theorem on views is known for this algorithm",)
            return [*before, least_costly((local_answer(self.facts, watching, reasons),), delta)]
        answers = [
            TheoremAnswer(
                self.facts,
                theorem_charge(self.facts, theorem, watching, delta / 2, progress),
                theorem,
                hypotheses,
                refused,
            )
            for theorem, hypotheses in found
        ]
        if status == "proven" and any(answer.charge.counts is not None for answer in answers):
            answers.append(
                local_answer(
                    self.facts,
                    watching,
                    (*refused, "local DP says less than the theorems that hold"),
                )
            )
        return [*before, least_costly(tuple(answers), delta, asked)]

    def ends_known(self, status: Status) -> bool:
        """Whether its last states are a function of what every observer saw: a fact, whichever
        theorem is used."""
        return any(theorem.ends_known(self.facts) for theorem, _ in self.applicable(status)[0])

    def losses(self, status: Status = "proven", progress: Progress | None = None) -> Array:
        """m[u, v]: loss of u in the view of v in local-DP units, diagonal nan; local DP if no
        theorem holds.

        The unit is one release of this protocol; earlier ones are converted by their noise
        multipliers."""
        return self._pair_losses(self.charges(status=status, progress=progress))

    def _pair_losses(self, charge: Charge) -> Array:
        m = charge.in_local_units()
        if self.facts.n > 1 and np.isnan(m).all():
            raise not_gaussian(charge.events)
        if m is not charge.loss:
            m = m.copy()
        np.fill_diagonal(m, np.nan)
        return m

    def table(
        self, delta: float = 1e-6, status: Status = "proven", progress: Progress | None = None
    ) -> PairTable:
        """All pairs: their losses, and the worst, typical and mean of them beside what local DP
        alone would say."""
        everybody = self.guarantee(None, None, delta)
        refused = self.applicable(status)[1]
        if any(phase.charge.counts is not None for phase in self._phases(None, status, delta)):
            noise = "of secret samples" if self.facts.sampled else "not Gaussian"
            one = self.any_pair(delta, status)
            alike = self._alike(everybody if one is None else one, everybody, delta, refused)
            says = "what local DP says" if one is None else "by one theorem for all of them"
            why = f"the releases are {noise}, so all pairs are charged alike: {says}"
            return PairTable(alike, None, why)
        phases = self._phases("each", status, delta, progress)
        charge = charge_of_all(phases)
        m = self._pair_losses(charge)
        known = worst_median_mean(m)
        worst, most = charge.largest(delta), float(charge.rounded().max(initial=0.0))
        others = replace(charge, loss=np.array(known[1:]), rounding=most).epsilons(delta)
        table = [worst, *np.minimum(others, worst).tolist()]
        place = (
            None
            if self.facts.n < 2
            else tuple(int(k) for k in np.unravel_index(np.nanargmax(m), m.shape))
        )
        answers = [phase.answers[0] if place is None else phase.by(place) for phase in phases]
        theorem, spec = composed_title(answers)
        summary = Summary(
            theorem=theorem,
            spec=spec,
            status=weakest(answer.status for answer in answers),
            level=self.facts.level,
            delta=delta,
            noise_multiplier=charge.unit,
            losses=known,
            epsilons=(table[0], table[1], table[2]),
            local_epsilon=float(everybody.epsilon(delta)),
            local_loss=everybody.loss,
            hypotheses=tuple(dict.fromkeys(h for answer in answers for h in answer.hypotheses)),
            refused=refused,
            adjacency=self.facts.adjacency,
            masked=self._masked(),
            alike=self._masked() and all_pairs_alike(m),
        )
        return PairTable(summary, m, "", charge.rounded())

    def any_pair(self, delta: float, status: Status = "proven") -> Guarantee | None:
        """What one peer could have learned about the worst of the others, where a theorem says the
        same of all observers; None where none does."""
        found = self.applicable(status)[0]
        if self.facts.n < 2 or not any(theorem.alike for theorem, _ in found):
            return None
        known = [self.guarantee(None, (v,), delta, status) for v in (0, 1)]
        return max(known, key=lambda one: float(one.epsilon(delta)))

    def _alike(
        self, pair: Guarantee, everybody: Guarantee, delta: float, refused: tuple[str, ...]
    ) -> Summary:
        """Noise that is not Gaussian: every pair is charged alike, as if everybody looked on unless
        a theorem says less of all of them."""
        epsilon, loss = float(pair.epsilon(delta)), pair.loss
        return Summary(
            theorem=pair.theorem,
            spec=pair.spec,
            status=pair.status,
            level=self.facts.level,
            delta=delta,
            noise_multiplier=0.0,
            losses=(loss,) * 3,
            epsilons=(epsilon,) * 3,
            local_epsilon=float(everybody.epsilon(delta)),
            local_loss=everybody.loss,
            hypotheses=pair.hypotheses,
            refused=refused,
            adjacency=self.facts.adjacency,
            masked=self._masked(),
            alike=self._masked() and len(np.unique(self.facts.ledger.counts(), axis=0)) == 1,
        )

    def _masked(self) -> bool:
        """Whether releases are under masks, so that all of them together are seen by nobody."""
        return any(isinstance(event, MaskedEvent) for event in self.facts.ledger.events)

    def summary(
        self, delta: float = 1e-6, status: Status = "proven", progress: Progress | None = None
    ) -> Summary:
        """Worst, typical and mean pair, and what local DP alone would say. Of more peers than a table
        has room for, every pair is told what local DP says, which holds for all."""
        if self.facts.n <= MOST_PEERS:
            return self.table(delta, status, progress).summary
        everybody, refused = self.guarantee(None, None, delta), self.applicable(status)[1]
        one = self.any_pair(delta, status)
        room = (
            f"of more than {MOST_PEERS} peers each pair is told what holds for all; ask about one"
        )
        return self._alike(one or everybody, everybody, delta, (*refused, room))


def _one(charge: Charge, row: int, nobody: bool) -> Charge:
    """One row of a charge; nothing at all if there is nobody left to learn about."""
    return Charge(np.zeros(1), charge.unit) if nobody else charge.of([row])
