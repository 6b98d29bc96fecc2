"""What views cost every peer: a `Charge` carries all numbers between theorems and answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import PrivacyError
from bruit.privacy.composition import compose
from bruit.privacy.events import Event, Exact, GaussianEvent, Mask, MaskedEvent
from bruit.privacy.profile import EventsProfile, GaussianProfile, Profile, Rounded
from bruit.privacy.theorem import Facts
from bruit.privacy.toolbox.rounding import rounded_epsilons


@dataclass(frozen=True, eq=False)
class Charge:
    """What views cost every peer: the only carrier of numbers between theorems and answers.

    Row u is a Gaussian pair of squared mu `energy[u]` = loss[u] / unit**2, composed with counts[u,
    k] releases of events[k], whose noise is of other kinds. A loss is in units of one release with
    noise multiplier `unit`; it is infinite for what is seen without noise while others have some.
    Without any noise the unit is 0 and every loss above 0 costs infinitely much. `loss` is a row of
    numbers for one view, or a matrix whose column v is the view of v alone. `rounding` is R of what
    was sent (fp:FP-0), and adds up as losses do.
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
            raise PrivacyError(
                f"only Gaussian noise is scaled here, found {_event_names(self.events)}"
            )
        return replace(self, unit=factor * self.unit)

    def plus(self, other: Charge) -> Charge:
        """Both, the other one later: losses are told in its unit, if it has one."""
        unit = other.unit if other.unit > 0 else self.unit
        loss = rescaled(self.loss, self.unit, unit) + rescaled(other.loss, other.unit, unit)
        parts = [(part.events, part.counts) for part in (self, other) if part.counts is not None]
        counts = (
            np.concatenate([counts for _, counts in parts if counts is not None], axis=1)
            if parts
            else None
        )
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
        """One row: all members change their data at once, one after the other, so that their mu add
        up."""
        if self.counts is not None:
            raise PrivacyError(
                f"mu adds up for Gaussian noise only, found {_event_names(self.events)}"
            )
        chosen = list(members)
        loss = np.sqrt(self.loss[chosen]).sum(keepdims=True) ** 2
        return replace(self, loss=loss, rounding=float(self.rounded()[chosen].sum()))

    def profile(self, row: int) -> Profile:
        """Of one peer in one view."""
        energy, amount = float(self.energy[row]), float(self.rounded()[row])
        pair = GaussianProfile(math.sqrt(energy))
        parts: list[Profile] = [Rounded(pair, amount) if amount > 0 and energy > 0 else pair]
        if self.counts is not None:
            counted = zip(self.events, self.counts[row].tolist(), strict=True)
            parts.append(EventsProfile(tuple((event, count) for event, count in counted if count)))
        return compose(parts)

    def epsilons(self, delta: float) -> Array:
        """The epsilon of every entry; equal rows of noise that is not Gaussian are composed once  #
        as `loss`."""
        if self.counts is None:
            return rounded_epsilons(np.sqrt(self.energy), self.rounded(), delta)
        _, first, back = self._distinct()
        return np.array([self.profile(int(u)).epsilon(delta) for u in first])[back]

    def largest(self, delta: float) -> float:
        """The largest epsilon of all Gaussian entries: of every R, that of the largest loss; nan is
        left out."""
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
            raise not_gaussian(self.events)
        lines = np.concatenate([self.energy[:, None], self.rounded()[:, None], self.counts], axis=1)
        rows, first, back = np.unique(lines, axis=0, return_index=True, return_inverse=True)
        return rows, first, back.reshape(-1)

    def worst(self, peers: Ints, delta: float) -> int:
        """The peer with the largest epsilon: within equal counts, the one with the largest
        energy."""
        if self.counts is None or not len(peers):
            return int(peers[np.argmax(self.loss[peers])]) if len(peers) else 0
        groups: dict[tuple[int, ...], int] = {}
        for u in peers.tolist():
            key = tuple(self.counts[u].tolist())
            if key not in groups or self.loss[groups[key]] < self.loss[u]:
                groups[key] = u
        return max(groups.values(), key=lambda u: self.profile(u).epsilon(delta))

    def in_local_units(self) -> Array:
        """Losses in local-DP units: where noise is not Gaussian but of one kind, releases; else nan
        # as `loss`."""
        if self.counts is None:
            return self.loss
        if len(self.events) == 1 and not np.nan_to_num(self.loss).any():
            releases = self.counts[:, 0].astype(np.float64)
            return np.asarray(
                np.broadcast_to(
                    releases[:, None] if self.loss.ndim > 1 else releases, self.loss.shape
                )
            )
        return np.full(self.loss.shape, np.nan)


def rescaled(loss: Array, unit: float, to: float) -> Array:
    """The same squared mu told in another unit: loss (to / unit)**2. Without noise (unit 0) any
    loss is infinite."""
    if unit == to:
        return loss
    if unit == 0:
        return np.where(loss > 0, np.inf, loss)
    with np.errstate(invalid="ignore", over="ignore"):
        found = loss * np.square(np.float64(to / unit))
    return np.where(loss == 0, 0.0, found)


def _event_names(events: Sequence[Event]) -> str:
    return ", ".join(str(event) for event in events)


def not_gaussian(events: Sequence[Event]) -> PrivacyError:
    return PrivacyError(
        f"losses of pairs are for Gaussian noise, and the ledger holds {_event_names(events)};"
        " ask for the epsilon of one pair"
    )


def unit_of(facts: Facts) -> float:
    """The noise multiplier that losses are told in: that of the release with the most noise, or of
    the mechanism if nobody released with noise of its own; 0 without noise."""
    priced = [event.promised() for event in facts.ledger.events]
    known = [event.noise_multiplier for event in priced if isinstance(event, GaussianEvent)]
    return max(known) if known else facts.sigma / (2 * facts.clip)


def charged_locally(facts: Facts) -> Charge:
    """Everything each peer ever released, seen by everybody, from its ledger lines
    (gossip:DP-8)."""
    counts, unit = facts.ledger.counts(), unit_of(facts)
    loss, rounding, others = np.zeros(facts.n), np.zeros(facts.n), []
    for k, line in enumerate(facts.ledger.events):
        event = line.opened if isinstance(line, MaskedEvent) else line
        if isinstance(event, GaussianEvent):
            rounding += counts[:, k] * (event.rounding if event.rounding < math.inf else 0.0)
            loss += rescaled(counts[:, k].astype(np.float64), event.noise_multiplier, unit)
        elif isinstance(event, Exact):
            loss += rescaled(counts[:, k].astype(np.float64), 0.0, unit)
        elif not isinstance(event, Mask):
            others.append(k)
    events = tuple(facts.ledger.events[k] for k in others)
    return Charge(loss, unit, events, counts[:, others] if others else None, rounding)
