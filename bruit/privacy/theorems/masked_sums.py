"""Masked sums: who colludes sees sums of noisy answers, never one of them (silo:SILO-4, SILO-5).

In an attempt with the list P every member says its clipped answer in grains, plus a discrete
Gaussian share of variance sigma^2 / (|P| - a), plus masks that cancel in the sum over P, modulo
2^64. A coalition of at most a peers learns, of one attempt, at most the sum over all members
outside of it, whose noise has at least the variance sigma^2. Every attempt that a peer spoke in is
charged to it, whether a sum came of it or not: at most steps + spare of them, each one release of
multiplier sigma / C (a sampled one below rate 1).

    against at most a peers, or whoever gets the models:   counts of attempts, noise sigma
    against more:                                          the same, noise sigma / sqrt(|P| - a): masks may be opened

Coalitions may lie in any way: sensitivities hold whatever model a peer is shown, so that attempts
compose adaptively, and masks are bound to list, model and keys. They can spoil the result and waste
attempts. Peers that are missing, and runs that were stopped, cost attempts and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.domains import whole
from bruit.errors import PrivacyError
from bruit.how_many import how_many
from bruit.privacy.events import Event, GaussianEvent, MaskedEvent
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.theorem import CHANNELS, PUBLIC, Facts, Theorem

NEAR = 1e-9  # by how much floats may miss a whole number of shares
KEYS = Hypothesis("nobody breaks X25519, HKDF or AES, from which the masks are made", checked=False)


@dataclass(frozen=True)
class MaskedSums(Theorem):
    """`colluders` is a: so many peers may put together all they see, now and later."""

    colluders: int
    title: ClassVar[str] = "masked sums, noise made together"
    spec: ClassVar[str] = "silo:SILO-4, SILO-5"
    samples: ClassVar[bool] = True
    failures: ClassVar[bool] = True
    alike: ClassVar[bool] = True
    about: tuple[str, ...] = field(default=("masked-sgd",), kw_only=True)

    def __post_init__(self) -> None:
        whole(self, "colluders", error=PrivacyError)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        hidden = self._hidden(facts)
        data = facts.data_lines()
        places = np.stack((facts.ledger.column("peer"), facts.ledger.column("clock")))[:, data]
        if len(np.unique(places, axis=1).T) < places.shape[1]:
            raise PrivacyError(
                "some peer spoke twice in one attempt; then two answers may be under the same masks"
            )
        self._check_shares(facts, hidden)
        a = self.colluders
        missing = "any one of the members" if a == 1 else f"any {a} of the members"
        few = "no peer" if a == 0 else "at most 1 peer"
        together = (
            f"{few} puts together what it sees, now or later, or lies"
            if a < 2
            else f"at most {a} peers put together what they see, now or later, or lie"
        )
        return (
            Hypothesis(
                "in each attempt every member answers once, with fresh coins, noise and masks; every"
                " attempt is charged",
                checked=True,
            ),
            Hypothesis(f"shares of noise add up to sigma without {missing}", checked=True),
            Hypothesis(
                f"{together}; all others add their noise",
                checked=False,
            ),
            KEYS,
            CHANNELS,
            PUBLIC,
        )

    def _hidden(self, facts: Facts) -> MaskedEvent | None:
        """The one masked release of the whole run, up to the number of members."""
        kinds = [
            event
            for event, data in zip(facts.ledger.events, facts.ledger.is_data(), strict=True)
            if data
        ]
        masked = [event for event in kinds if isinstance(event, MaskedEvent)]
        if len(masked) < len(kinds) or len({event.hidden for event in masked}) > 1:
            found = ", ".join(str(kind) for kind in kinds)
            raise PrivacyError(
                f"masked sums need one kind of noise for all attempts; the ledger holds {found}"
            )
        return masked[0] if masked else None

    def _check_shares(self, facts: Facts, hidden: MaskedEvent | None) -> None:
        if hidden is None:
            return
        for event in facts.ledger.events:
            if not isinstance(event, MaskedEvent):
                continue
            ratio = (event.hidden.noise_multiplier / event.opened.noise_multiplier) ** 2
            shares = round(ratio)
            if abs(ratio - shares) > NEAR * ratio or not 1 <= shares <= facts.n - self.colluders:
                raise PrivacyError(
                    f"a release has a share of the noise as for {ratio:g} honest members of"
                    f" {facts.n} peers, of whom {self.colluders} may collude"
                )

    def rounding(self, facts: Facts) -> Array:
        """R of one's own attempts: an attempt shows one sum (fp:FP-2); that of opened releases is
        larger."""
        return facts.own_rounding()

    def unit(self, facts: Facts) -> float:
        known = self._hidden(facts)
        return math.inf if known is None else known.hidden.noise_multiplier

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        if facts.sampled:
            raise PrivacyError(
                "losses of pairs are for Gaussian noise on all records, and these releases are of "
                "secret samples; ask for the epsilon of one pair"
            )
        counts, total = facts.ledger.counts(), np.zeros(facts.n)
        for k, event in enumerate(facts.ledger.events):
            if isinstance(event, MaskedEvent):
                opened = (event.hidden.noise_multiplier / event.opened.noise_multiplier) ** 2
                total += counts[:, k] * (opened if len(observers) > self.colluders else 1.0)
        return total

    def events(
        self, facts: Facts, observers: tuple[int, ...], delta: float
    ) -> tuple[tuple[Event, ...], Ints] | None:
        if not facts.sampled:
            return None
        masked = [k for k, one in enumerate(facts.ledger.events) if isinstance(one, MaskedEvent)]
        shown = len(observers) > self.colluders
        events = [facts.ledger.events[k] for k in masked]
        return tuple(one if shown else one.promised() for one in events), facts.ledger.counts()[
            :, masked
        ]

    def seen(self, facts: Facts, observers: tuple[int, ...]) -> str:
        attempts = len(np.unique(facts.ledger.column("clock")[facts.data_lines()]))
        return (
            f"the sums and models of {how_many(attempts, 'attempt')}, masked answers, and the observers' own"
            " values, noise and masks"
        )

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        if len(observers) <= self.colluders:
            return (
                "if all masks were opened one day, each release still has its own share of the"
                " noise: ask for seen_by='everybody'",
            )
        return (
            f"{len(observers)} observers are more than the {self.colluders} that the noise was made"
            " for: masks are charged as opened",
        )

    def advice(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        known = self._hidden(facts)
        fewer = ("fewer rounds",)
        if (
            known is not None
            and isinstance(known.hidden, GaussianEvent)
            and facts.level == "record"
        ):
            return (*fewer, "a smaller sample_rate, with more rounds")
        return fewer

    def ends_known(self, facts: Facts) -> bool:
        """The models are functions of the sums, which everybody sees."""
        return True
