"""Doorway: what a `Home` sees of its door, and the twin that shows whether raw data went past it.

A home asks questions; task, dice and ledger stay behind the doorway. `keep` is the one question
whose answer is raw. From the first raw answer on, a run has a *twin*: the same peers with other raw
answers and, to every other question, the very answers the door gave (`Twinned`). What they say must
be the same to the last bit: messages may depend on what the door answered, never on what was kept.
It is compared before anything is sent, at every message of the run. An algorithm that keeps nothing
has no twin and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, cast

import numpy as np

from bruit.algorithms.messages import Edges, Inbox, Message, Slots, join, put
from bruit.arrays import Array, Ints
from bruit.errors import BruitError, LocalProtocolError, PrivacyError

if TYPE_CHECKING:
    from bruit.algorithms.algorithm import Algorithm
    from bruit.algorithms.door import Door
    from bruit.algorithms.home import Home

S = TypeVar("S")

QUESTIONS = frozenset(
    (
        "beginning",
        "value",
        "value_with",
        "gradient",
        "gradient_with",
        "prox",
        "envelope_gradient",
        "descent",
        "pair_value",
        "pair_gradient",
        "loss",
        "keep",
        "choice",
        "common",
        "noise",
        "copy_noise",
        "pair_noise",
        "fine_grid",
        "reach",
        "value_on",
        "gradient_on",
        "descent_on",
        "noise_on",
        "dither_on",
        "copy_noise_on",
        "pair_noise_on",
        "grain",
        "masked_gradient",
        "pair_words",
        "summed_gradient",
        "next_clip",
    )
)
NUMBERS = frozenset(
    ("dim", "sigma", "gamma", "warm", "before")
)  # facts about the door, not answers
SHOWN = frozenset(
    (
        "beginning",
        "common",
        "pair_value",
        "pair_gradient",
        "fine_grid",
        "reach",
        "grain",
        "summed_gradient",
        "next_clip",
    )
)
"""Functions of what is public or was shown."""
POINTS = {
    "gradient": 1,
    "gradient_with": 1,
    "gradient_on": 1,
    "prox": 2,
    "envelope_gradient": 2,
    "descent": 1,
    "descent_on": 1,
    "loss": 1,
    "masked_gradient": 1,
}
"""How many arguments say where data is asked."""


@dataclass
class Watch:
    """What is known of raw answers in one run: how often there were any, and why the twin may have
    seen nothing."""

    raw: int = 0
    blind: str = ""


class AnsweredQuestion(NamedTuple):
    """One question and its answer, as the door gave it."""

    name: str
    where: tuple[Any, ...]
    answer: Array


class Doorway:
    """A door reduced to its questions. `log` keeps every answer; a `script` gives the answers of a
    log again, in order, and to `keep` those of other data."""

    __slots__ = ("__inner", "__left", "__log")

    def __init__(
        self,
        door: Door,
        log: list[AnsweredQuestion] | None = None,
        script: list[AnsweredQuestion] | None = None,
    ) -> None:
        self.__inner: Callable[[], Any] = lambda: door  # the door itself is nobody's attribute
        self.__log, self.__left = log, None if script is None else list(reversed(script))

    def __getattr__(self, name: str) -> Any:
        if name in NUMBERS:
            return getattr(self.__inner(), name)
        if name not in QUESTIONS:
            raise AttributeError(
                f"a home has no {name!r}: data, dice and ledger stay behind the door;"
                " a question to it is listed in bruit.algorithms.doorway.QUESTIONS"
            )
        return lambda *asked: self.__answer(name, asked)

    def raw(self) -> int:
        """How often a raw answer was given so far."""
        return cast(int, self.__inner().watch.raw)

    def lines(self) -> int:
        """How often the ledger was written so far."""
        ledger = getattr(self.__inner(), "ledger", None)
        return 0 if ledger is None else cast(int, ledger.calls)

    def logged(self, log: list[AnsweredQuestion], lines: int | None = None) -> Doorway:
        """The same door with its answers kept; as it was after so many ledger calls, writing no
        line, if they are given."""
        door = self.__inner()
        if lines is not None:
            door = door.with_ledger(door.ledger.head(lines))
        return Doorway(door, log)

    def rewound(self, lines: int) -> Doorway:
        """The same door as it was after so many ledger calls, writing no line of the run's."""
        door = self.__inner()
        if getattr(door, "ledger", None) is None:
            return self
        return Doorway(door.with_ledger(door.ledger.head(lines)))

    def scripted(self, script: list[AnsweredQuestion]) -> Doorway:
        """The answers of a log again."""
        return Doorway(self.__inner(), None, script)

    def __answer(self, name: str, asked: tuple[Any, ...]) -> Array:
        if self.__left is not None and name not in SHOWN:
            return self.__again(name, asked)
        answer = cast(Array, getattr(self.__inner(), name)(*asked))
        if self.__log is not None and name not in SHOWN:
            self.__log.append(AnsweredQuestion(name, _place(name, asked), np.array(answer)))
        return answer

    def __again(self, name: str, asked: tuple[Any, ...]) -> Array:
        """The answer that the door gave at this place, or that of other data."""
        left = cast("list[AnsweredQuestion]", self.__left)
        known = left.pop() if left else None
        if known is None or known.name != name or not same(known.where, _place(name, asked)):
            raise PrivacyError(
                "what it asks at the door, of whom or with how much noise, depends on raw data it "
                "kept"
            )
        return (
            cast(Array, self.__inner().keep_other(*asked, known.answer))
            if name == "keep"
            else known.answer.copy()
        )

    def close(self) -> None:
        """Nothing of the script may be left."""
        if self.__left:
            raise PrivacyError("how often it asks at the door depends on raw data it kept")


def _place(name: str, asked: tuple[Any, ...]) -> tuple[Any, ...]:
    """Where and how a question was asked, without the points it was asked at."""
    if name == "keep":
        return asked[:1]
    return (asked[0], *asked[1 + POINTS.get(name, 0) :])


def same(one: Any, other: Any) -> bool:
    """Bitwise, of arrays and of records of arrays; what is not a number equals itself."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        floats = one.dtype.kind == other.dtype.kind == "f"
        return one.shape == other.shape and bool(np.array_equal(one, other, equal_nan=floats))
    if isinstance(one, Slots | Edges):
        return type(one) is type(other) and same(
            tuple(vars(one).values()), tuple(vars(other).values())
        )
    if isinstance(one, tuple):
        return isinstance(other, tuple) and len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def other_answer(
    ask: Callable[[Ints], Array], ids: Ints, peers: int, known: Array, watch: Watch
) -> Array:
    """A raw answer of other data: that of the next peer's records, else the same numbers moved.

    Numbers are moved where records are the same or not to be had (a real peer has its own only), by
    more than any rounding hides; whole numbers are left alone, since they may be places in an
    array: the twin is then blind.
    """
    try:
        found = np.asarray(ask((ids + 1) % peers))
        if found.shape == known.shape and found.dtype == known.dtype and not same(found, known):
            return found
    except LocalProtocolError:
        pass  # records of others are not here
    if known.dtype.kind != "f":
        watch.blind = (
            "raw answers that are whole numbers and the same for all peers could not be changed"
        )
        return known.copy()
    spread = 1.0 + np.abs(known).max(initial=0.0)
    return cast(
        Array, known + spread * np.cos(np.arange(1.0, known.size + 1.0)).reshape(known.shape)
    )


class Twinned(NamedTuple):
    """A state, that of its twin, and the step at which each lane was last seen."""

    real: Any
    other: Any
    step: Ints  # (lanes,)


def untwinned(state: Any) -> tuple[Any, Any]:
    """A state, and its twin's if it has one."""
    return (state.real, state.other) if isinstance(state, Twinned) else (state, None)


def twinned(state: Any, like: Any) -> Any:
    """The state with a twin if `like` has one: so far the two are the same."""
    if not isinstance(like, Twinned) or isinstance(state, Twinned):
        return state
    return Twinned(state, deepcopy(state), np.zeros(lanes_of(state), np.int64))


def lanes_of(state: Any) -> int:
    """How many peers a state is of."""
    if isinstance(state, Slots):
        return len(state.start) - 1
    return len(state) if isinstance(state, np.ndarray) else lanes_of(state[0])


def stored(state: S, lanes: Ints, new: S) -> S:
    """The state with new rows of the chosen lanes, written in place."""
    state = cast(S, twinned(state, new))
    put(state, lanes, new)
    return state


def joined(states: list[Any]) -> Any:
    """One batch from batches of one, in order; all have a twin if one has."""
    like = next((state for state in states if isinstance(state, Twinned)), None)
    return join([twinned(state, like) for state in states])


def begun(algorithm: Algorithm[Any], home: Home) -> Any:
    """The first state of a batch of peers, with a twin if anything raw was kept."""
    return _followed(
        algorithm, home, algorithm.start, algorithm.start, False, {"function": "start"}
    )


def resumed(algorithm: Algorithm[Any], state: Any, home: Home) -> Any:
    """The state of an earlier phase, made ready to speak again; that of its twin, too."""
    real, other = untwinned(state)
    before = real if other is None else other
    return _followed(
        algorithm,
        home,
        lambda at: algorithm.resume(real, at),
        lambda at: algorithm.resume(before, at),
        other is not None,
        {"function": "resume", "state": real},
    )


def absorbed(algorithm: Algorithm[Any], state: Any, inbox: Inbox, home: Home) -> Any:
    """The state after hearing one exchange; its twin heard the same."""
    real, other = untwinned(state)
    before = real if other is None else other
    return _followed(
        algorithm,
        home,
        lambda at: algorithm.absorb(real, inbox if at is home else inbox.aside(), at),
        lambda at: algorithm.absorb(before, inbox.aside(), at),
        other is not None,
        {"function": "absorb", "state": real, "inbox": inbox},
    )


def adopted(algorithm: Algorithm[Any], state: Any, token: Any, public: Any) -> Any:
    """The state of peers that were told the last token of a walk; their twins were told the
    same."""
    real, other = untwinned(state)
    try:
        new_state = algorithm.adopt(real, token, public)
    except Exception as error:
        failed(error, algorithm, function="adopt", state=real, token=token)
    if other is None:
        return new_state
    return state._replace(real=new_state, other=algorithm.adopt(other, deepcopy(token), public))


def publishes(algorithm: Algorithm[Any]) -> bool:
    """Whether everybody is told the last token of a walk."""
    return bool(getattr(algorithm, "published", False))


def _followed(
    algorithm: Algorithm[Any],
    home: Home,
    step: Callable[[Home], Any],
    twin: Callable[[Home], Any],
    known: bool,
    called: dict[str, Any],
) -> Any:
    """One step of a batch, and of its twin where there is one or raw data was kept in this very
    step; `called`: which function that is, and what it is given."""
    door, log = home.doorway, list[AnsweredQuestion]()
    raw, lines = door.raw(), door.lines()
    if known:
        home.doorway = door.logged(log)
    try:
        after = step(home)
    except Exception as error:
        failed(error, algorithm, home=home.again(door.rewound(lines)), **called)
    if not known:
        if door.raw() == raw:
            return after
        step(
            home.again(door.logged(log, lines))
        )  # once more, for its answers: dice and kernels are functions
    scripted = door.scripted(log)
    at = f"{algorithm.name()}, {_who(home.ids)}, step {int(home.step.max(initial=0))}"
    try:
        other = twin(home.again(scripted))
        scripted.close()
    except PrivacyError as error:
        raise PrivacyError(
            f"{at}: {error}; what was kept must change nothing that others can see"
        ) from None
    except Exception as error:
        raise PrivacyError(
            f"{at}: with other raw data it fails ({error!r}), so nobody can tell whether its"
            " messages depend on what it kept; make it work for any data"
        ) from error
    return Twinned(after, other, np.array(home.step))


def spoken(algorithm: Algorithm[Any], state: Any, edges: Edges) -> Message:
    """What the peers say next, from a state without its private fields; refused if their twin says
    something else."""
    real, other = untwinned(state)
    try:
        message = algorithm.emit(algorithm.blank(real), edges)
    except Exception as error:
        failed(error, algorithm, function="emit", state=real, edges=edges)
    if other is None:
        return message
    twin = algorithm.emit(algorithm.blank(state.other), edges)
    if same(message, twin):
        return message
    lane = _first(message, twin, edges)
    fields = [
        name
        for name in getattr(state.real, "_fields", ())
        if name not in algorithm.private
        and not same(getattr(state.real, name), getattr(state.other, name))
    ]
    where = f"the field {' and '.join(map(repr, fields))} holds" if fields else "it says"
    raise PrivacyError(
        f"{algorithm.name()}, {_who(edges.ids[lane:])}, step {int(state.step[lane])}:"
        " the message changes with raw data that home.keep gave out, though the door's answers do"
        f" not: {where} what was to stay at home; list such a field in `private` and send only what"
        " the door released"
    )


def _first(message: Message, twin: Message, edges: Edges) -> int:
    """The first lane whose message differs."""
    lanes = (
        np.repeat(np.arange(len(edges.ids)), np.diff(edges.start))
        if message.each
        else np.arange(len(edges.ids))
    )
    for one, other in zip(_parts(message.rows), _parts(twin.rows), strict=False):
        if one.shape == other.shape and len(one) == len(lanes) and not same(one, other):
            return int(lanes[np.flatnonzero((one != other).reshape(len(one), -1).any(axis=1))[0]])
    return 0


def _parts(rows: Any) -> tuple[Any, ...]:
    return (rows,) if isinstance(rows, np.ndarray) else tuple(rows)


def _who(ids: Ints) -> str:
    return f"peer {int(ids[0])}" if len(ids) else "nobody"


def believed(algorithm: Algorithm[Any], state: Any) -> Array:
    """What each peer holds as its result."""
    real = untwinned(state)[0]
    try:
        return algorithm.estimate(real)
    except Exception as error:
        failed(error, algorithm, function="estimate", state=real)


def failed(error: Exception, algorithm: Algorithm[Any], **called: Any) -> NoReturn:
    """A function of an algorithm raised. A refusal goes on as it is; anything else is said with the
    algorithm, the function, the peer and its step (`crash.FailedCall`)."""
    if isinstance(error, BruitError | MemoryError):
        raise error
    from bruit.algorithms.crash import FailedCall  # it narrows homes, which ask through doorways

    raise FailedCall(algorithm=algorithm, **called).named(error) from error
