"""A run's charge on the account of its records: reserved before its first word, settled after its last.

    reserved = the releases planned, each at what it costs          settled = the releases that were made

One that stopped before it released anything gives back what it has reserved itself, and reserves again when
it goes on. What an earlier start reserved stays: its journal may have been put back since.
A release that the reservation does not cover is charged before it is committed, so whatever left is in
the account at any moment; a run that was killed stays charged in full. One that goes on from its journal
is not charged again. One that begins anew, with a new journal, draws new noise: that is another charge,
and it is told.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import final

from bruit.accounts.account import Account
from bruit.accounts.prices import Charged, Price, kind_of
from bruit.errors import BrokenStateError
from bruit.how_many import how_many
from bruit.privacy.events import (
    BoundedEvent,
    Event,
    Exact,
    Mask,
)
from bruit.privacy.ledger import AT_MOST, Budget
from bruit.privacy.toolbox.pld import compose_epsilon, most_releases

log = logging.getLogger("bruit.accounts")
Counts = tuple[tuple[Event, int], ...]


def ahead(events: Iterable[Event], most: int, budget: Budget | None) -> Counts:
    """What is reserved for at most so many releases of these kinds, under a budget that the door
    keeps."""
    worst: dict[Event, Event] = {}
    for event in (one.promised() for one in events if not isinstance(one, Mask)):
        _keep_worst(worst, event)
    counts = tuple((event, most) for event in worst.values())
    if budget is None or compose_epsilon(counts, budget.delta) <= budget.epsilon * AT_MOST:
        return counts
    if len(counts) == 1 and not isinstance(counts[0][0], Exact):
        event = counts[0][0]
        fewer = min(most, most_releases(event, budget.epsilon * AT_MOST, budget.delta))
        return ((event, fewer),)
    return _all_of(budget)


def _all_of(budget: Budget) -> Counts:
    """Whatever keeps to a budget, as one statement."""
    return ((BoundedEvent(budget.epsilon, budget.delta), 1),)


def _keep_worst(worst: dict[Event, Event], event: Event) -> None:
    """Of events that differ in their rounding only, the one of the largest."""
    known = worst.setdefault(kind_of(event), event)
    if _rounding(known) < _rounding(event) < float("inf"):
        worst[kind_of(event)] = event


def _rounding(event: Event) -> float:
    return float(getattr(event, "rounding", 0.0))


@final
@dataclass
class Reservation:
    """Of one run of one peer. `price` says what is reserved; `budget` what the door keeps to, if it
    does."""

    account: Account
    run: str
    price: Price
    budget: Budget | None = None
    made_now: bool = field(default=False, init=False)  # by this start, and by no earlier one

    def check(self, released: int) -> None:
        """Refuse the run if it would cost too much; write nothing. `released`: lines that its journal
        holds already, which the account must know of. A run that was settled has released no less."""
        balance = self.account.balance()
        balance.check_complete(self.account.path)
        known = balance.known(self.price.key)
        if released and known is None:
            raise BrokenStateError(
                f"the journal of this run holds {how_many(released, 'release')}, and the account"
                f" {self.account.path} knows of none: it is an old copy, or another one. Put back the"
                " newest"
            )
        paid = sum(count for _, count in known.price.events) if known and known.settled else 0
        if paid > released:
            raise BrokenStateError(
                f"the journal of this run is an old copy: the account {self.account.path} knows of"
                f" {how_many(paid, 'release')} until its end, and the journal holds {released}. What"
                " it released again would be new noise that nobody pays for; put back the newest"
            )
        if known is None or _at_nothing(known):
            balance.check(self.price, self.account.limit, self.account.path)

    def begin(self) -> None:
        """Charge it, unless this very run is charged already; settled at nothing it is not."""
        balance = self.account.balance()
        known = balance.known(self.price.key)
        if known is not None and not _at_nothing(known):
            log.info("this run is charged already: it goes on from its journal")
            self.price = known.price
            return
        before = [
            one for one in balance.charged if self.run in one.price.about and not _at_nothing(one)
        ]
        if before:
            log.warning(
                "the run %s was begun before with another journal, and paid epsilon %.4g then; it"
                " draws new noise, and is charged again",
                self.run,
                before[-1].price.epsilon,
            )
        self.account.charge(self.price)
        self.made_now = True

    def give_back(self) -> None:
        """This start stopped before it released anything, and paid for nothing then. A reservation
        that was there already stays: an old copy of the journal knows of no release either."""
        if self.made_now:
            self.settle(())

    def cover(self, counts: Iterable[tuple[Event, int]]) -> None:
        """Before releases are committed: charge what the reservation does not hold, all that the door
        lets pass if there is a budget."""
        whole = None if self.budget is None else _all_of(self.budget)
        if self.price.events == whole:
            return
        held: Counter[Event] = Counter()
        for event, count in self.price.events:
            held[kind_of(event)] += count
        made: Counter[Event] = Counter()
        worst: dict[Event, Event] = {}
        for event, count in counts:
            if not isinstance(event, Mask):
                made[kind_of(event)] += count
                _keep_worst(worst, event.promised())
        beyond = {kind for kind, count in made.items() if count > held[kind]}
        if beyond and whole is not None:
            self.price = priced(self.price, whole)
            self.account.charge(self.price)
        elif beyond:
            rest = []
            for event, count in self.price.events:
                if kind_of(event) in beyond:
                    _keep_worst(worst, event)
                else:
                    rest.append((event, count))
            more = ((worst[kind], 2 * made[kind]) for kind in made if kind in beyond)
            self.price = priced(self.price, (*rest, *more))
            self.account.charge(self.price)

    def settle(self, counts: Iterable[tuple[Event, int]]) -> None:
        """The run has ended: what it released is what it cost."""
        made = tuple(
            (event.promised(), count) for event, count in counts if not isinstance(event, Mask)
        )
        known = self.account.balance().known(self.price.key)
        if known is None or not known.settled or known.price.events != made:
            self.account.settle(priced(self.price, made))


def _at_nothing(known: Charged) -> bool:
    """Whether it was settled before it had released anything."""
    return known.settled and not known.price.events


def priced(price: Price, events: Counts) -> Price:
    """The same with other events, and what they cost at its delta."""
    return replace(price, events=events, epsilon=compose_epsilon(events, price.delta))
