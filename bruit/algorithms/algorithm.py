"""Algorithm: five small functions over a batch of peers, and the schedule they follow.

    one step at peer i:   inbox --> absorb(state, inbox, home) --> state --> emit(state) --> neighbors

Kernels are pure: state in, state out, arrays whose first axis is the batch. The same code runs for a million
simulated peers and for one real peer. `emit` sees neither data nor dice, so a message sent twice is the same message
and what follows a release is post-processing.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, cast, get_type_hints

import numpy as np

from bruit.algorithms.home import Door, Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.schedules import Rounds, Schedule
from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.network.theorem import Theorem
from bruit.randomness import Dice

State = TypeVar("State")


class Stops(NamedTuple):
    """Where a compiled loop stops to be looked at: after every so many steps (0: only where it likes), `at` is told how
    many are done, and the state. `watched`: what it finds is given to `absorb`, which must say the same, so that all
    data leaves through the door and its ledger line."""

    every: int = 0
    at: Callable[[int, Any], None] = lambda done, state: None
    watched: bool = False

    def parts(self, total: int, longest: int) -> Iterator[slice]:
        """The steps in order, in parts of at most that length that end where somebody looks."""
        begin = 0
        while begin < total:
            due = (begin // self.every + 1) * self.every if self.every else total
            end = min(begin + longest, due, total)
            yield slice(begin, end)
            begin = end

    def pass_by(self, done: int, total: int, state: Any) -> None:
        """Tell the state after so many steps; the last one is the engine's to tell."""
        if done < total:
            self.at(done, state)


class Public:
    """No public facts beyond the graph: what `prepare` makes unless an algorithm says otherwise."""


class Algorithm(ABC, Generic[State]):
    """What every algorithm offers; concrete ones are frozen dataclasses, one per file.

    `linear` claims that messages are linear in what the door released (tested by superposition); `private` lists
    state fields that must stay at home and are blanked before `emit`; `guarantees` lists the theorems that apply.
    `fused_within` is how far a fused path may be from the general one, relative to the largest number of the state (or
    to 1); `fused_by_door` says that a watched one (`Stops`) reads no record past a `Home`, as `absorb` does.
    """

    linear: ClassVar[bool] = False
    private: ClassVar[tuple[str, ...]] = ()
    simulated_only: ClassVar[str] = ""  # why real peers cannot run it, if they cannot
    fused_within: ClassVar[float] = 1e-9
    fused_by_door: ClassVar[bool] = False

    @property
    def schedule(self) -> Schedule:
        """When peers speak; rounds unless the algorithm has a field of that name."""
        return Rounds()

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Any:
        """Public facts, made once before the run and written to its manifest; never from the records."""
        return Public()

    @abstractmethod
    def start(self, home: Home) -> State:
        """The state before anything was heard."""

    def resume(self, state: State, home: Home) -> State:
        """The state of an earlier phase of this algorithm, ready to speak again: what its last step left out, since
        nobody was to hear it, is made up for here. `home.before` says how many steps there were."""
        return state

    @abstractmethod
    def emit(self, state: State, edges: Edges) -> Message:
        """What each peer says next."""

    @abstractmethod
    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        """The state after hearing one exchange."""

    @abstractmethod
    def estimate(self, state: State) -> Array:
        """What each peer holds as its result  # (lanes, d)."""

    def bare(self, graph: Graph | GraphSequence, steps: int, peer: int) -> str:
        """Why something of that peer's leaves it without noise of its own, so that only others hide it; "": nothing."""
        return ""

    def adopt(self, state: State, token: Any, public: Any) -> State:
        """The state of peers that are told the last token of a walk, one row each; of walks that may be `published`."""
        raise ConfigError(f"{self.name()} has no token that could be published")

    def fused_rounds(self, state: State, graph: Graph, steps: int, public: Any) -> State | None:
        """The state after all rounds, computed by one compiled loop; for algorithms that read nothing after `start`.

        Fused paths must equal the generic one up to rounding and write the same ledger lines; None: not offered.
        """
        return None

    def fused_pairs(self, state: State, graph: Graph, steps: int, dice: Dice) -> tuple[State, int] | None:
        """The state after the meetings that the schedule draws from these dice, and how many they were."""
        return None

    def fused_walk(self, state: State, path: Ints, door: Door, stops: Stops) -> State | None:
        """The state after the token visited the peers of the path in order, reading data through the door; it is looked
        at on the way, at the `stops`."""
        return None

    def fused_wakes(self, state: State, graph: Graph, woken: Ints, door: Door) -> State | None:
        """The state after these peers woke in this order, reading data through the door."""
        return None

    def fused_points(self, state: State, graph: Graph, steps: int, door: Door, dice: Dice) -> tuple[State, int] | None:
        """The state after all exchanges of an algorithm whose peers pass points on, and how many they were.

        For such algorithms everything after `start` is public: draws, exchanges, and what the door says of pairs.
        """
        return None

    def not_fused(self, door: Door) -> str:
        """Why the fused path cannot read through this door; empty if it can."""
        return ""

    def guarantees(self) -> tuple[Theorem, ...]:
        """Theorems on this algorithm's views, each naming it; the least that holds is taken, local DP if none does."""
        return ()

    @classmethod
    def name(cls) -> str:
        """Its name in experiments and on the command line: GossipSGD is gossip-sgd."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower()

    def describe(self) -> dict[str, Any]:
        """Name and parameters, as a manifest keeps them."""
        return {"name": self.name(), **_plain(self)}

    def blank(self, state: State) -> State:
        """The state with its private fields erased: what `emit` is given."""
        if not self.private:
            return state
        erased = {}
        for field in self.private:
            kept = getattr(state, field)
            erased[field] = np.full_like(kept, np.nan) if kept.dtype.kind == "f" else np.zeros_like(kept)
        return cast(State, cast(Any, state)._replace(**erased))


def _plain(record: Any) -> dict[str, Any]:
    plain = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if isinstance(value, Schedule):
            value = {"name": type(value).__name__.lower(), **_plain(value)}
        plain[field.name] = value
    return plain


def catalog() -> dict[str, type[Algorithm[Any]]]:
    """Every algorithm of the folder, by name: a new file is enrolled by being there."""
    import bruit.algorithms as folder

    found = {}
    for module in pkgutil.iter_modules(folder.__path__):
        for kind in vars(importlib.import_module(f"{folder.__name__}.{module.name}")).values():
            if inspect.isclass(kind) and issubclass(kind, Algorithm) and not inspect.isabstract(kind):
                found[kind.name()] = kind
    return dict(sorted(found.items()))


def algorithm_from(description: Mapping[str, Any]) -> Algorithm[Any]:
    """The algorithm a manifest or an experiment describes; unknown names and parameters are refused by name."""
    from difflib import get_close_matches

    parameters = dict(description)
    name = parameters.pop("name", None)
    known = catalog()
    if name not in known:
        near = get_close_matches(str(name), known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"there is no algorithm {name!r}{hint} (known: {', '.join(known)})")
    fields = {field.name: field for field in dataclasses.fields(cast(Any, known[name]))}
    hints = get_type_hints(known[name])
    for key, value in parameters.items():
        if key not in fields:
            near = get_close_matches(key, fields, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"{name} has no parameter {key!r}{hint} (it has: {', '.join(fields) or 'none'})")
        if key == "schedule":
            parameters[key] = Schedule.from_description(value)
        else:
            parameters[key] = _typed(name, key, value, hints[key])
    return known[name](**parameters)


def _typed(owner: str, key: str, value: Any, hint: Any) -> Any:
    """A number or word of the declared type, or a clear refusal; pydantic does the converting."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(hint, config={"strict": False}).validate_python(value)
    except ValidationError as error:
        raise ConfigError(f"{owner}: {key} = {value!r} is not valid: {error.errors()[0]['msg'].lower()}") from None
