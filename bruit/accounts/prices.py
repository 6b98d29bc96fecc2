"""Prices and balances: what one question or run costs, and what all of them cost together.

    epsilon(delta) of a unit = composition of the events of all its charges, by the package's accountants

A unit is a level and an adjacency. Charges of one unit compose. What is promised of all that a holder
has is true of each row in it, so these charges are in what one row has paid, too; a row that is replaced
and one that comes or goes are never added, they are told side by side. Charges against different
observers are added: that is true of an observer who sees all of it, if the hypotheses of each hold.

Composed are the questions that were asked, as if they had been fixed beforehand. Where one number adds up
they may as well have been chosen after earlier answers (gossip:DP-5): `however_chosen` says where.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, get_args

from bruit.errors import PrivacyError
from bruit.privacy.events import (
    Adjacency,
    BoundedEvent,
    Event,
    GaussianEvent,
    SampledGaussianEvent,
    event_from,
)
from bruit.privacy.guarantee import level_facts, level_words
from bruit.privacy.ledger import AT_MOST, Budget
from bruit.privacy.profile import USUAL_DELTA
from bruit.privacy.toolbox.pld import compose_epsilon, tally

LEVELS = ("record", "user")
WORTH = 0.99  # of a sum, from where on it is told as it is
Events = tuple[tuple[Event, int], ...]


class Unit(NamedTuple):
    """What a statement protects."""

    level: str
    adjacency: Adjacency

    @classmethod
    def of(cls, level: str, adjacency: str = "replace") -> Unit:
        """At user level records do not come or go one by one."""
        if level not in LEVELS or adjacency not in get_args(Adjacency):
            raise PrivacyError(
                f"an account is kept by level (record, user) and adjacency (replace, add-remove), "
                f"found {level!r}, {adjacency!r}"
            )
        return cls(level, "replace" if level == "user" else adjacency)  # type: ignore[arg-type]

    def covers(self, other: Unit) -> bool:
        """Whether what is promised of this one holds of the other: each row is a part of all that its
        holder has."""
        return self == other or self.level == "user"

    def words(self) -> str:
        held = "one row" if self.level == "record" else "all that one holder has in it"
        return f"{held} ({level_words(self.level, self.adjacency)})"


@dataclass(frozen=True, kw_only=True)
class Price:
    """What one question or run costs. `epsilon` at `delta` is what is told of it, `events` what is
    composed. `key` names what is charged once however often it is asked for, such as the journal of
    a run."""

    about: str
    unit: Unit
    events: Events
    epsilon: float
    delta: float
    against: str
    key: str = ""

    @classmethod
    def stated(cls, about: str, epsilon: float, delta: float, level: str, against: str) -> Price:
        """Of a question known by one (epsilon, delta) only."""
        if not (epsilon >= 0 and 0 <= delta <= 1):
            raise PrivacyError(
                f"a question costs epsilon >= 0 at a delta of 0 to 1, found {epsilon} at {delta}:"
                " ask with a smaller delta"
            )
        event = BoundedEvent(float(epsilon), float(delta))
        return cls(
            about=about,
            unit=Unit.of(level),
            events=((event, 1),),
            epsilon=float(epsilon),
            delta=float(delta),
            against=against,
        )

    def describe(self) -> dict[str, Any]:
        return {
            "about": self.about,
            **self.unit._asdict(),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "against": self.against,
            "events": [[event.describe(), count] for event, count in self.events],
            **({"key": self.key} if self.key else {}),
        }


def price_from(line: Mapping[str, Any]) -> Price:
    """A price as a line of an account says it."""
    return Price(
        about=str(line["about"]),
        unit=Unit.of(line["level"], line["adjacency"]),
        events=tuple((event_from(event), _count(count)) for event, count in line["events"]),
        epsilon=float(line["epsilon"]),
        delta=float(line["delta"]),
        against=str(line["against"]),
        key=str(line.get("key", "")),
    )


def _count(found: object) -> int:
    if type(found) is not int or found < 0:
        raise ValueError(f"an event happens a whole number of times, found {found!r}")
    return found


def kind_of(event: Event) -> Event:
    """The event without its rounding, which hardly costs and differs from place to place."""
    event = event.promised()
    if isinstance(event, GaussianEvent | SampledGaussianEvent):
        return replace(event, rounding=float("inf"))
    return event


def within(events: Iterable[tuple[Event, int]], limit: Budget) -> bool:
    """Whether all of it together is (epsilon, delta)-DP."""
    known = list(events)
    total = tally(known)
    pure = not (total.exact or total.gaussian() or total.failure)
    if pure and total.basic() <= limit.epsilon * AT_MOST:
        return True  # known without a privacy loss distribution
    return compose_epsilon(known, limit.delta) <= limit.epsilon * AT_MOST


def in_all(events: Iterable[tuple[Event, int]]) -> str:
    """What these cost together, in words: pure parts are added up, else at the sum of their deltas
    and the usual one."""
    known = list(events)
    total = tally(known)
    if total.exact:
        return "epsilon = inf"
    if total.gaussian():
        delta = min(0.5, total.failure + USUAL_DELTA)
        return f"epsilon = {compose_epsilon(known, delta):.6g}, delta = {delta:g}"
    return f"epsilon = {total.basic():.6g}" + (
        f", delta = {total.failure:g}" if total.failure else ""
    )


@dataclass(frozen=True)
class Charged:
    """One line of what was paid: its price as it stands now, when it was asked, and whether what was
    reserved for it has been settled."""

    when: str
    price: Price
    settled: bool = True


@dataclass(kw_only=True)
class Balance:
    """What an account says: charges in order, and limits by unit."""

    charged: list[Charged] = field(default_factory=list)
    limits: dict[Unit, Budget] = field(default_factory=dict)
    backup: str = ""  # when the backup was made that it came out of, if it did
    since_unknown: bool = False  # nobody has stated yet what was paid after that backup
    _places: dict[str, int] = field(default_factory=dict)

    def units(self) -> list[Unit]:
        """All that something was paid for, or that has a limit."""
        found = dict.fromkeys(one.price.unit for one in self.charged)
        return [*found, *(unit for unit in self.limits if unit not in found)]

    def events(self, unit: Unit, but: str = "") -> list[tuple[Event, int]]:
        """What was paid for a unit, but for one key; for one row also what was for all of its holder."""
        return [
            part
            for one in self.of(unit)
            if not (but and one.price.key == but)
            for part in one.price.events
        ]

    def of(self, unit: Unit) -> list[Charged]:
        """The charges that are in what a unit has paid."""
        return [one for one in self.charged if one.price.unit.covers(unit)]

    def epsilon(self, unit: Unit, delta: float) -> float:
        """All of it at delta. Pure epsilons that hardly cost less than their sum are added up."""
        events = self.events(unit)
        total, composed = tally(events), compose_epsilon(events, delta)
        pure = math.inf if total.exact or total.gaussian() or total.failure else total.basic()
        return pure if composed > WORTH * pure else composed

    def however_chosen(self, unit: Unit, delta: float) -> bool:
        """Whether `epsilon` would be proven, as a limit set beforehand, for whoever chose the kind and
        the size of every question after seeing the answers before it: one kind at most so often, pure
        epsilons or squares of Gaussian noise that add up (gossip:DP-5)."""
        events = self.events(unit)
        total = tally(events)
        kinds = {kind_of(part) for event, _ in events for part, _ in event.parts()}
        if len(kinds) <= 1 or total.exact or (total.only_gaussian() and not total.failure):
            return True
        return not total.gaussian() and self.epsilon(unit, delta) >= total.basic()

    def known(self, key: str) -> Charged | None:
        """What was charged under a key."""
        return self.charged[self._places[key]] if key in self._places else None

    def add(self, one: Charged) -> None:
        """A charge, in place of the one with its key."""
        key = one.price.key
        if key in self._places:
            before = self.charged[self._places[key]]
            self.charged[self._places[key]] = Charged(before.when, one.price, one.settled)
            return
        if key:
            self._places[key] = len(self.charged)
        self.charged.append(one)

    def check(self, price: Price, also: Budget | None, path: object) -> None:
        """Refuse a price that would exceed a limit, on its own unit or on one that it covers. Under
        limits on others only it is refused: it is not added to them, and would pass beside."""
        self.check_complete(path)
        kept = [(unit, limit) for unit, limit in self.limits.items() if price.unit.covers(unit)]
        kept += [] if also is None else [(price.unit, also)]
        if self.limits and not kept:
            unit = next(iter(self.limits))
            raise PrivacyError(
                f"{path} limits what {unit.words()} may pay, and this costs {price.unit.words()}: the"
                " two are never added. Give that a limit too (`bruit budget FILE --limit E --level"
                f" {price.unit.level} --adjacency {price.unit.adjacency}`), and it is kept beside"
            )
        for unit, limit in kept:
            before = self.events(unit, but=price.key)
            if not within([*before, *price.events], limit):
                raise self._too_much(unit, before, price, limit, path)

    def check_complete(self, path: object) -> None:
        """Refuse an account that came out of a backup as long as nobody says what it lacks."""
        if self.since_unknown:
            raise PrivacyError(
                f"the account {path} came out of a backup of {self.backup}: what was paid after that is"
                " not in it. Put back the newest one if it exists; else state what was paid since, at"
                " least what the runs begun since may cost: bruit budget FILE --since-backup EPSILON (0"
                " if nothing was asked)"
            )

    def _too_much(
        self,
        unit: Unit,
        before: Sequence[tuple[Event, int]],
        price: Price,
        limit: Budget,
        path: object,
    ) -> PrivacyError:
        deltas = tally([*before, *price.events]).failure
        if deltas > limit.delta:
            return PrivacyError(
                f"the rows have paid {in_all(before)} so far ({path}); with this question the deltas add"
                f" up to {deltas:g}, above {limit.delta:g}, that of the limit: ask with a smaller delta,"
                " or set the limit at a larger one (bruit budget --delta)"
            )
        return PrivacyError(
            f"the rows have paid {in_all(before)} so far ({path}); {price.epsilon:g} more would be above"
            f" the limit {limit.epsilon:g} at delta = {limit.delta:g} for {unit.words()}"
        )


def balance_of(lines: Iterable[Mapping[str, Any]]) -> Balance:
    """The balance that these lines of an account make."""
    balance = Balance()
    for line in lines:
        what = line.get("what")
        if what in ("charge", "settled"):
            balance.add(
                Charged(str(line["when"]), price_from(line), what == "settled" or "key" not in line)
            )
        elif what == "backup":
            balance.backup, balance.since_unknown = str(line["when"]), True
        elif what == "since":
            balance.since_unknown = False
        elif what == "limit":
            unit = Unit.of(line["level"], line["adjacency"])
            balance.limits.pop(unit, None)
            if line["epsilon"] is not None:
                balance.limits[unit] = Budget(float(line["epsilon"]), float(line["delta"]))
        elif what not in ("account", "contents", "torn"):
            raise ValueError(f"nobody knows what {what!r} means; a newer version may")
    return balance


def unit_facts(unit: Unit) -> dict[str, str]:
    """For machines to read."""
    return level_facts(unit.level, unit.adjacency)
