"""What a release costs, described apart from how the cost is computed.

Frozen records of only the parameters that matter to accounting, after the vocabulary of
dp_accounting (which is imported only by `to_dp_accounting`). noise_multiplier = noise /
sensitivity, so an event already knows its level of adjacency. Any accountant may read an event; one
it does not know is refused by name, never skipped.

Gaussian noise also carries `rounding`, the number R of fp:FP-0: how far the bits that are sent may
be from the real numbers of its theorem. It adds up next to mu**2 and is converted once, at the end.
Infinite: the noise was a float or met float arithmetic, so that statements about it are `ideal`, of
real numbers only.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from bruit.errors import PrivacyError

Adjacency = Literal["replace", "add-remove"]
"""What may differ between two neighboring sets of records: one record is another one, or is there
or not (silo:SILO-2)."""


class Event(ABC):
    """Something that touched private data (or, for a mask, is known not to have)."""

    kind: ClassVar[str]

    @abstractmethod
    def key(self) -> tuple[object, ...]:
        """A hashable name: equal events have equal keys. Ledgers intern events by it."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """A JSON-able description; `event_from` reads it back."""

    @abstractmethod
    def to_dp_accounting(self) -> Any:
        """The same event in dp_accounting's words."""

    def to_json(self) -> str:
        """Its description as JSON text; `from_json` reads it back."""
        return json.dumps(self.describe(), sort_keys=True)

    def parts(self) -> Iterator[tuple["Event", int]]:
        """The simple events it is made of, each with its count."""
        yield self, 1

    def promised(self) -> "Event":
        """What a budget charges for it, under the hypotheses of the protocol: the event itself,
        unless masks hide it (`MaskedEvent`)."""
        return self


@dataclass(frozen=True)
class Exact(Event):
    """A read of private data without noise: epsilon is infinite."""

    kind: ClassVar[str] = "exact"

    def key(self) -> tuple[object, ...]:
        return (self.kind,)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind}

    def to_dp_accounting(self) -> Any:
        import dp_accounting

        return dp_accounting.NonPrivateDpEvent()


@dataclass(frozen=True)
class Mask(Event):
    """Noise without data: it costs nothing, but it is named, since views on a graph must know of
    it."""

    sigma: float
    rounding: float = math.inf
    kind: ClassVar[str] = "mask"

    def __post_init__(self) -> None:
        _check_noise(self, self.sigma)
        _check_noise(self, self.rounding)

    def key(self) -> tuple[object, ...]:
        return (self.kind, self.sigma, self.rounding)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "sigma": self.sigma, **_finite(self.rounding)}

    def to_dp_accounting(self) -> Any:
        import dp_accounting

        return dp_accounting.NoOpDpEvent()


class _Noisy(Event):
    """An additive mechanism known by its noise multiplier."""

    noise_multiplier: float

    def key(self) -> tuple[object, ...]:
        return (self.kind, self.noise_multiplier)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "noise_multiplier": self.noise_multiplier}


@dataclass(frozen=True)
class GaussianEvent(_Noisy):
    """Gaussian noise of std noise_multiplier * (L2 sensitivity): exactly (1 / noise_multiplier)-GDP
    (walk:F-1)."""

    noise_multiplier: float
    rounding: float = math.inf
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        _check_noise(self, self.noise_multiplier)
        _check_noise(self, self.rounding)

    def key(self) -> tuple[object, ...]:
        return (self.kind, self.noise_multiplier, self.rounding)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "noise_multiplier": self.noise_multiplier,
            **_finite(self.rounding),
        }

    def to_dp_accounting(self) -> Any:
        import dp_accounting

        return dp_accounting.GaussianDpEvent(self.noise_multiplier)


@dataclass(frozen=True)
class SampledGaussianEvent(_Noisy):
    """Gaussian noise of deviation noise_multiplier * C on a sum of records clipped to C, each of
    which joined by its owner's own secret coin of chance `rate`, fresh in this release
    (silo:SILO-2).

    noise_multiplier is z = sigma / C under *both* adjacencies, as in dp_accounting; that of a
    GaussianEvent is sigma / sensitivity, which is z / 2 when a record is replaced. Where every
    record joins, `record_event` makes the GaussianEvent that it is."""

    noise_multiplier: float
    rate: float
    adjacency: Adjacency = "replace"
    rounding: float = math.inf
    kind: ClassVar[str] = "sampled_gaussian"

    def __post_init__(self) -> None:
        _check_noise(self, self.noise_multiplier)
        _check_noise(self, self.rounding)
        _check_adjacency(self.adjacency)
        if (
            isinstance(self.rate, bool)
            or not isinstance(self.rate, int | float)
            or not 0 < self.rate < 1
        ):
            raise PrivacyError(
                f"a record joins a secret sample with a chance between 0 and 1, found "
                f"{self.rate!r}; a sum over all records is a gaussian event"
            )

    def key(self) -> tuple[object, ...]:
        return (self.kind, self.noise_multiplier, self.rate, self.adjacency, self.rounding)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "noise_multiplier": self.noise_multiplier,
            "rate": self.rate,
            "adjacency": self.adjacency,
            **_finite(self.rounding),
        }

    def to_dp_accounting(self) -> Any:
        """Its relation of neighbors is the accountant's to know: REPLACE_ONE or
        ADD_OR_REMOVE_ONE."""
        import dp_accounting

        return dp_accounting.PoissonSampledDpEvent(
            self.rate, dp_accounting.GaussianDpEvent(self.noise_multiplier)
        )


def record_event(
    noise_multiplier: float,
    rate: float,
    adjacency: Adjacency = "replace",
    rounding: float = math.inf,
) -> GaussianEvent | SampledGaussianEvent:
    """The event of one noisy sum of clipped records, z = sigma / C: sampled below rate 1, and at
    rate 1 the GaussianEvent of multiplier z / 2 (replace) or z (add-remove) (silo:SILO-2).

    >>> record_event(2.0, 1.0).noise_multiplier, record_event(2.0, 0.5).noise_multiplier
    (1.0, 2.0)
    """
    if rate == 1:
        _check_adjacency(adjacency)
        half = noise_multiplier / 2 if adjacency == "replace" else noise_multiplier
        return GaussianEvent(noise_multiplier=half, rounding=rounding)
    return SampledGaussianEvent(
        noise_multiplier=noise_multiplier, rate=rate, adjacency=adjacency, rounding=rounding
    )


@dataclass(frozen=True)
class MaskedEvent(Event):
    """A release under masks that cancel in a sum, with a share of the noise of that sum
    (silo:SILO-4).

    `hidden` is what the sum costs while the masks hold: against any coalition of at most as many
    peers as were planned for. `opened` is what the release costs if all masks were opened one day:
    it has its own share of the noise only. Accountants that know nothing of masks charge `opened`;
    the theorem on masked sums, and budgets, charge `hidden`."""

    hidden: GaussianEvent | SampledGaussianEvent
    opened: GaussianEvent | SampledGaussianEvent
    kind: ClassVar[str] = "masked"

    def __post_init__(self) -> None:
        kinds = [
            (event.rate, event.adjacency) if isinstance(event, SampledGaussianEvent) else None
            for event in (self.hidden, self.opened)
        ]
        if type(self.hidden) is not type(self.opened) or kinds[0] != kinds[1]:
            raise PrivacyError(
                "a masked event has one kind of noise, rate and adjacency, opened or not; found"
                f" {self.hidden} and {self.opened}"
            )
        if not self.opened.noise_multiplier <= self.hidden.noise_multiplier:
            raise PrivacyError(
                f"masks only hide: opened, a release has no more noise than under them, found "
                f"{self.opened.noise_multiplier:g} and {self.hidden.noise_multiplier:g}"
            )

    @property
    def rounding(self) -> float:
        """R of the release by itself, the larger of the two."""
        return self.opened.rounding

    def key(self) -> tuple[object, ...]:
        return (self.kind, self.hidden.key(), self.opened.key())

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "hidden": self.hidden.describe(),
            "opened": self.opened.describe(),
        }

    def to_dp_accounting(self) -> Any:
        return self.opened.to_dp_accounting()

    def parts(self) -> Iterator[tuple[Event, int]]:
        yield self.opened, 1

    def promised(self) -> Event:
        return self.hidden


@dataclass(frozen=True)
class LaplaceEvent(_Noisy):
    """Laplace noise of scale noise_multiplier * (L1 sensitivity): (1 / noise_multiplier, 0)-DP."""

    noise_multiplier: float
    kind: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        _check_noise(self, self.noise_multiplier)

    def to_dp_accounting(self) -> Any:
        import dp_accounting

        return dp_accounting.LaplaceDpEvent(self.noise_multiplier)


@dataclass(frozen=True)
class DiscreteGaussianEvent(_Noisy):
    """Discrete Gaussian noise of parameter noise_multiplier * (L2 sensitivity): 1 / (2
    noise_multiplier**2)-zCDP."""

    noise_multiplier: float
    kind: ClassVar[str] = "discrete_gaussian"

    def __post_init__(self) -> None:
        _check_noise(self, self.noise_multiplier)

    @property
    def rho(self) -> float:
        """The zCDP parameter: the Renyi divergence of order alpha is at most alpha * rho."""
        return math.inf if self.noise_multiplier == 0 else 0.5 / self.noise_multiplier**2

    def to_dp_accounting(self) -> Any:
        import dp_accounting

        return dp_accounting.ZCDpEvent(self.rho)


@dataclass(frozen=True)
class BoundedEvent(Event):
    """A mechanism known by one (epsilon, delta) statement only: randomized response, a two-party
    protocol."""

    epsilon: float
    delta: float = 0.0
    kind: ClassVar[str] = "bounded"

    def __post_init__(self) -> None:
        _check_noise(self, self.epsilon)
        if not 0 <= self.delta <= 1:
            raise PrivacyError(
                f"the delta of a bounded event must be between 0 and 1, found {self.delta!r}"
            )

    def key(self) -> tuple[object, ...]:
        return (self.kind, self.epsilon, self.delta)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "epsilon": self.epsilon, "delta": self.delta}

    def to_dp_accounting(self) -> Any:
        import dp_accounting

        return dp_accounting.EpsilonDeltaDpEvent(self.epsilon, self.delta)


@dataclass(frozen=True)
class Composed(Event):
    """Several events, each of which may look at the outputs of the earlier ones."""

    events: tuple[Event, ...]
    kind: ClassVar[str] = "composed"

    def __post_init__(self) -> None:
        for event in self.events:
            _check_event(self, event)

    def key(self) -> tuple[object, ...]:
        return (self.kind, *(event.key() for event in self.events))

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "events": [event.describe() for event in self.events]}

    def to_dp_accounting(self) -> Any:
        import dp_accounting

        return dp_accounting.ComposedDpEvent([event.to_dp_accounting() for event in self.events])

    def parts(self) -> Iterator[tuple[Event, int]]:
        for event in self.events:
            yield from event.parts()


@dataclass(frozen=True)
class SelfComposed(Event):
    """The same event, count times."""

    event: Event
    count: int
    kind: ClassVar[str] = "self_composed"

    def __post_init__(self) -> None:
        _check_event(self, self.event)
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 0:
            raise PrivacyError(
                f"an event happens a whole number of times >= 0, found {self.count!r} for "
                f"{self.event}"
            )

    def key(self) -> tuple[object, ...]:
        return (self.kind, self.event.key(), self.count)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "event": self.event.describe(), "count": self.count}

    def to_dp_accounting(self) -> Any:
        import dp_accounting

        return dp_accounting.SelfComposedDpEvent(self.event.to_dp_accounting(), self.count)

    def parts(self) -> Iterator[tuple[Event, int]]:
        for event, count in self.event.parts():
            yield event, count * self.count


def to_json(event: Event) -> str:
    """An event as JSON text."""
    return event.to_json()


def from_json(text: str) -> Event:
    """Read an event back from its JSON text."""
    try:
        record = json.loads(text)
    except ValueError as error:
        raise PrivacyError(
            f"the event {text!r} is not JSON ({error}), so it is refused; repair it"
        ) from error
    return event_from(record)


def event_from(record: Mapping[str, Any]) -> Event:
    """Read an event back from its description; an unknown kind or a missing field is refused by
    name."""
    kind = record.get("kind") if isinstance(record, Mapping) else None
    try:
        if kind == "exact":
            return Exact()
        if kind == "mask":
            return Mask(float(record["sigma"]), float(record.get("rounding", math.inf)))
        if kind == "bounded":
            return BoundedEvent(float(record["epsilon"]), float(record["delta"]))
        if kind == "composed":
            return Composed(tuple(event_from(part) for part in record["events"]))
        if kind == "self_composed":
            return SelfComposed(event_from(record["event"]), record["count"])
        if kind == "masked":
            return _masked_from(record)
        if kind == "gaussian":
            return GaussianEvent(
                float(record["noise_multiplier"]), float(record.get("rounding", math.inf))
            )
        if kind == "sampled_gaussian":
            return SampledGaussianEvent(
                noise_multiplier=float(record["noise_multiplier"]),
                rate=float(record["rate"]),
                adjacency=record["adjacency"],
                rounding=float(record.get("rounding", math.inf)),
            )
        for event in (LaplaceEvent, DiscreteGaussianEvent):
            if kind == event.kind:
                return event(float(record["noise_multiplier"]))
    except (KeyError, TypeError, ValueError) as error:
        raise PrivacyError(
            f"the event {record!r} cannot be read ({error!r}), so it is refused; repair it"
        ) from error
    raise PrivacyError(
        f"unknown event {record!r}: its cost is unknown, so it is refused; a newer version may "
        f"read it"
    )


def _masked_from(record: Mapping[str, Any]) -> MaskedEvent:
    hidden, opened = event_from(record["hidden"]), event_from(record["opened"])
    kinds = (GaussianEvent, SampledGaussianEvent)
    if not isinstance(hidden, kinds) or not isinstance(opened, kinds):
        raise ValueError("masks hide Gaussian noise only")
    return MaskedEvent(hidden, opened)


def _finite(rounding: float) -> dict[str, float]:
    """The rounding of an event as its description tells it: infinite is what is not told."""
    return {"rounding": rounding} if rounding < math.inf else {}


def _check_noise(event: Event, noise: object) -> None:
    if (
        isinstance(noise, bool)
        or not isinstance(noise, int | float)
        or math.isnan(noise)
        or noise < 0
    ):
        what = "epsilon" if event.kind == "bounded" else "noise"
        raise PrivacyError(
            f"the {what} of a {event.kind} event must be a number >= 0, found {noise!r}"
        )


def _check_adjacency(adjacency: object) -> None:
    if adjacency not in get_args(Adjacency):
        raise PrivacyError(
            f"records differ by 'replace' or 'add-remove', found {adjacency!r}; say which"
        )


def _check_event(whole: Event, part: object) -> None:
    if not isinstance(part, Event):
        raise PrivacyError(
            f"unknown event {part!r} in a {whole.kind} event; use the records of "
            f"bruit.privacy.events"
        )
