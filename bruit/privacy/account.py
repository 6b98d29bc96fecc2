"""The accountant: from facts and theorems to one honest answer about one pair, a coalition, or everybody.

The default returns the best proven guarantee, else local DP, and says which and why. A theorem asked for by status
"published" raises when its hypotheses fail. Asking what a peer learns about itself is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array
from bruit.errors import PrivacyError
from bruit.privacy.accountants.gaussian import epsilons
from bruit.privacy.accountants.pld import compose_epsilon
from bruit.privacy.events import GaussianEvent, Mask
from bruit.privacy.guarantee import Guarantee, Hypothesis, Status
from bruit.privacy.network.theorem import Facts, Theorem

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


def local(facts: Facts, of: int | None, delta: float, notes: tuple[str, ...] = ()) -> Guarantee:
    """Local DP: everything a peer ever released, seen by everybody, composed from its ledger lines (gossip:DP-8)."""
    counts, events = facts.ledger.counts(), facts.ledger.events
    data = [k for k, event in enumerate(events) if not isinstance(event, Mask)]
    rows = range(facts.n) if of is None else (of,)
    profiles = {tuple(int(c) for c in counts[u, data]): u for u in rows}
    gaussian = all(isinstance(events[k], GaussianEvent) for k in data)
    multipliers = {event.noise_multiplier for event in events if isinstance(event, GaussianEvent)}
    z = multipliers.pop() if gaussian and len(multipliers) == 1 else 0.0
    loss = float(max(sum(profile) for profile in profiles)) if profiles else 0.0
    fixed = None
    if not (gaussian and z):
        worst = max(
            compose_epsilon([(events[k], c) for k, c in zip(data, profile, strict=True) if c], delta)
            for profile in profiles
        )
        fixed = (worst, delta)
    if not data:
        fixed = (0.0, delta)
    hypotheses = (Hypothesis("every release went through the door and its ledger line", checked=True),)
    return Guarantee(
        "local DP: composition of the ledger's lines", "gossip:DP-8", "proven", facts.level,
        "the worst peer" if of is None else f"peer {of}", "everybody", hypotheses, loss, z, notes, fixed,
    )  # fmt: skip


@dataclass(frozen=True)
class Accountant:
    """Answers about one protocol; `theorems` come from its algorithm, sharpest first."""

    facts: Facts
    theorems: tuple[Theorem, ...]

    def theorem(self, status: Status = "proven") -> tuple[Theorem | None, tuple[Hypothesis, ...], tuple[str, ...]]:
        """The first theorem of that status whose hypotheses hold, with the reasons why others do not."""
        refused: list[str] = []
        if self.facts.phases > 1:
            refused.append(f"{self.facts.phases} protocols share this ledger; their views are composed as local DP")
            if status == "proven":
                return None, (), tuple(refused)
        if self.facts.missed:
            refused.append(f"{self.facts.missed} exchanges were missed or made up for later, so the views are not"
                           " those of the agreed protocol; they are charged as local DP")  # fmt: skip
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
        if observers is None:
            return local(self.facts, of, delta)
        if of in observers:
            raise PrivacyError(f"peer {of} is among the observers {list(observers)}: nobody has secrets from oneself")
        theorem, hypotheses, refused = self.theorem(status)
        if theorem is None:
            return local(self.facts, of, delta, refused or ("no theorem on views is known for this algorithm",))
        losses = theorem.losses(self.facts, observers)
        others = np.setdiff1d(np.arange(self.facts.n), observers)
        loss = float(losses[of]) if of is not None else float(losses[others].max(initial=0.0))
        if theorem.status == "proven":
            loss = min(loss, float(self.facts.releases().max()))
        against = f"peer {observers[0]}" if len(observers) == 1 else f"peers {', '.join(map(str, observers))} together"
        about = f"peer {of}" if of is not None else "the worst peer"
        return Guarantee(
            theorem.title, theorem.spec, theorem.status, self.facts.level, about, against, hypotheses, loss,
            self.facts.noise_multiplier(), refused + theorem.notes(self.facts, observers),
        )  # fmt: skip

    def losses(self, status: Status = "proven", progress: Callable[[int, int], None] | None = None) -> Array:
        """m[u, v]: loss of u in the view of v in local-DP units, diagonal nan; local DP if no theorem holds."""
        theorem, _, _ = self.theorem(status)
        if theorem is None:
            m = np.repeat(self.facts.releases().astype(np.float64)[:, None], self.facts.n, axis=1)
            np.fill_diagonal(m, np.nan)
            return m
        return theorem.matrix(self.facts, progress)

    def summary(self, delta: float = 1e-6, status: Status = "proven",
                progress: Callable[[int, int], None] | None = None) -> Summary:  # fmt: skip
        """Worst, typical and mean pair, and what local DP alone would say."""
        m = self.losses(status, progress)
        off = m[~np.eye(self.facts.n, dtype=bool)]
        theorem, hypotheses, refused = self.theorem(status)
        everybody = local(self.facts, None, delta)
        if theorem is None and everybody.fixed_epsilon is not None:
            z, table = 0.0, np.full(3, everybody.fixed_epsilon[0])
        else:
            z = self.facts.noise_multiplier()
        if not off.size:
            worst = typical = mean = 0.0
        else:
            worst, typical = float(off.max()), float(np.median(off))
            mean = float(np.max(np.nansum(m, axis=0)) / self.facts.n)
        if not (theorem is None and everybody.fixed_epsilon is not None):
            losses = np.array([worst, typical, mean])
            table = epsilons(np.sqrt(losses) / z, delta) if z > 0 else np.where(losses > 0, np.inf, 0.0)
        title = theorem.title if theorem is not None else everybody.theorem
        spec = theorem.spec if theorem is not None else everybody.spec
        return Summary(
            title, spec, status, self.facts.level, delta, z, (worst, typical, mean),
            (float(table[0]), float(table[1]), float(table[2])),
            float(everybody.epsilon(delta)), everybody.loss, hypotheses or everybody.hypotheses, refused,
        )  # fmt: skip


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
