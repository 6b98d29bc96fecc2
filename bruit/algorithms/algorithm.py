"""Algorithm: five small functions over a batch of peers, and the schedule they follow.

    one step at peer i:   inbox --> absorb(state, inbox, home) --> state --> emit(state) --> neighbors

Kernels are pure: state in, state out, arrays whose first axis is the batch. The same code runs for
a million simulated peers and for one real peer. `emit` sees neither data nor dice, so a message
sent twice is the same message and what follows a release is post-processing.
"""

from __future__ import annotations

import dataclasses
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar, cast, get_type_hints

import numpy as np

from bruit.algorithms.course import Course, Reads
from bruit.algorithms.door import Door
from bruit.algorithms.expectation import DeclaredFacts, Expectation
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.schedules.rounds.schedule import Rounds
from bruit.algorithms.schedules.schedule import Schedule
from bruit.algorithms.turns import Turns
from bruit.arrays import Array
from bruit.discovery import classes
from bruit.errors import ConfigError, LocalProtocolError
from bruit.graphs import Graph, GraphSequence
from bruit.mechanisms.mechanism import Mechanism
from bruit.privacy.theorem import Theorem
from bruit.tasks.task import Task

State = TypeVar("State")
EVERYBODY = "everybody"


class Public:
    """No public facts beyond the graph: what `prepare` makes unless an algorithm says otherwise."""


class Algorithm(ABC, Generic[State]):
    """What every algorithm offers; concrete ones are frozen dataclasses, one per file.

    `asks` is what algorithms of exactly this class ask peers for, one of `bruit.tasks.task.QUESTIONS`;
    None: nothing is known. `linear` claims that messages are linear in what the door released
    (tested by superposition);
    `private` lists state fields that must stay at home and are blanked before `emit`; `guarantees`
    lists the theorems that apply. `fused_within` is how far a fused path may be from the general
    one, relative to the largest number of the state (or to 1); `fused_reads` is what it reads after
    `start`: "nothing"; "home", if a watched one (`Stops`) reads no record past a `Home`, as
    `absorb` does; else "unwatched", and such a path is taken only where it is asked for. `words`
    are parameters that an experiment may give by a word, which `explained` makes a number of;
    `counting` tells that it counts answers that are each one of several values; `in_blocks` claims
    that blocks of peers which hand over the rows of neighbors give the bits of all peers at once
    (tested).
    """

    asks: ClassVar[str | None] = None
    linear: ClassVar[bool] = False
    private: ClassVar[tuple[str, ...]] = ()
    shares_noise: ClassVar[bool] = False  # its first word hides under noise that neighbors share
    simulated_only: ClassVar[str] = ""  # why real peers cannot run it, if they cannot
    fused_within: ClassVar[float] = 1e-9
    fused_reads: ClassVar[Reads] = "unwatched"
    words: ClassVar[Mapping[str, str]] = {}
    counting: ClassVar[bool] = False
    in_blocks: ClassVar[bool] = False

    @property
    def schedule(self) -> Schedule:
        """When peers speak; rounds unless the algorithm has a field of that name."""
        return Rounds()

    @property
    def divides_noise(self) -> bool:
        """Whether some releases carry a part of the noise only, so that the noise must have parts."""
        return False

    @property
    def against(self) -> str:
        """Whom a budget, and what a real peer says it has spent, hold against: everybody together
        (local DP), unless masks hide what a peer says."""
        return EVERYBODY

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Any:
        """Public facts, made once before the run and written to its manifest; never from the
        records."""
        return Public()

    @abstractmethod
    def start(self, home: Home) -> State:
        """The state before anything was heard."""

    def resume(self, state: State, home: Home) -> State:
        """The state of an earlier phase of this algorithm, ready to speak again: what its last step
        left out, since nobody was to hear it, is made up for here. `home.before` says how many
        steps there were."""
        return state

    def retold(self, row: Any) -> State:
        """The state of a peer whose first word is this row, where neighbors share noise: a later
        start cannot draw it again, and goes on from what was said."""
        raise LocalProtocolError(f"{self.name()} does not say its whole state")

    @abstractmethod
    def emit(self, state: State, edges: Edges) -> Message:
        """What each peer says next."""

    @abstractmethod
    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        """The state after hearing one exchange."""

    @abstractmethod
    def estimate(self, state: State) -> Array:
        """What each peer holds as its result  # (lanes, d)."""

    def explained(
        self,
        key: str,
        task: Task,
        graph: Graph | GraphSequence,
        steps: int,
        privacy: Mechanism | None,
    ) -> Algorithm[State]:
        """The same with the number that the word of that parameter stands for, in a run of so many
        steps; one of those that have `words`."""
        raise ConfigError(f"{self.name()} has no word for {key!r}; give a number")

    def check_peers(self, graph: Graph | GraphSequence, steps: int) -> None:
        """Refuse a graph on which some peers would take no part."""

    def references(self, task: Task) -> dict[str, float]:
        """For observers only: what is measured of this algorithm on the whole task, beside the
        references of the task."""
        return {}

    def expected(self, known: DeclaredFacts) -> Expectation | None:
        """How close theory says it comes to the optimum; None: there is no statement on it. Raises
        ConfigError with the reason where the statement does not apply."""
        return None

    def charged(self, steps: int) -> int | None:
        """How many releases everybody is charged for, where the peers' own lines do not tell; None:
        they tell."""
        return None

    def released(self, turns: int) -> int | None:
        """How many releases a peer makes at most in so many turns, those before its first turn
        included, where turns differ; None: in every turn as many as in the one with the most."""
        return None

    def bare(self, graph: Graph | GraphSequence, steps: int, peer: int) -> str:
        """Why something of that peer's leaves it without noise of its own, so that only others hide
        it; "": nothing."""
        return ""

    def turns(self, graph: Graph | GraphSequence, steps: int) -> Turns:
        """When a peer may read its data: at every position of the schedule, unless an algorithm
        says otherwise."""
        return Turns()

    def adopt(self, state: State, token: Any, public: Any) -> State:
        """The state of peers that are told the last token of a walk, one row each; of walks that
        may be `published`."""
        raise ConfigError(f"{self.name()} has no token that could be published")

    def fused(self, state: State, course: Course) -> tuple[State, int] | None:
        """The state after the whole run, computed by one compiled loop, and how many events (rounds,
        meetings, hops, wakes) it was.

        It must equal the general path up to rounding and write the same ledger lines; None: not
        offered.
        """
        return None

    def not_fused(self, door: Door) -> str:
        """Why the fused path cannot read through this door; empty if it can."""
        return ""

    def guarantees(self) -> tuple[Theorem, ...]:
        """Theorems on this algorithm's views, each naming it; the least that holds is taken, local
        DP if none does."""
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
            erased[field] = (
                np.full_like(kept, np.nan) if kept.dtype.kind == "f" else np.zeros_like(kept)
            )
        return cast(State, cast(Any, state)._replace(**erased))


CAME_LATER = {"came_later": True}
"""Metadata of a key that an algorithm was given later. At its default it is not in the description:
runs that know nothing of it keep their name, and with it their draws."""


def _plain(record: Any) -> dict[str, Any]:
    plain = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.metadata.get("came_later") and value == field.default:
            continue
        if isinstance(value, Schedule):
            value = {"name": type(value).__name__.lower(), **_plain(value)}
        plain[field.name] = value
    return plain


def catalog() -> dict[str, type[Algorithm[Any]]]:
    """Every algorithm of the folder, by name: a new file is enrolled by being there."""
    import bruit.algorithms as folder

    # no algorithm is among the compiled loops, which are loaded when they are needed
    found = classes(folder, Algorithm, without=(".compiled",))  # type: ignore[type-abstract]
    return dict(sorted({kind.name(): kind for kind in found}.items()))


def algorithm_from(description: Mapping[str, Any]) -> Algorithm[Any]:
    """The algorithm a manifest or an experiment describes; unknown names and parameters are refused
    by name."""
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
            raise ConfigError(
                f"{name} has no parameter {key!r}{hint} (it has: {', '.join(fields) or 'none'})"
            )
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
        raise ConfigError(
            f"{owner}: {key} = {value!r} is not valid: {error.errors()[0]['msg'].lower()}"
        ) from None
