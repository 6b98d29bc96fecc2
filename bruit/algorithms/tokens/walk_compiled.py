"""What compiled walks need ahead of the model: noise of all hops, ledger lines, records as the
loops read them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.course import Stops
from bruit.algorithms.door import Door, OnGrid
from bruit.algorithms.doorway import absorbed, untwinned
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Inbox, Links
from bruit.algorithms.task_door import TaskDoor
from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError, ConformanceError
from bruit.mechanisms import Mechanism
from bruit.privacy.events import Event, Exact, Mask
from bruit.randomness.discrete_normal import discrete_normals
from bruit.tasks import Records

_EIGHTS: WeakKeyDictionary[Records, tuple[Ints, Array]] = (
    WeakKeyDictionary()
)  # twenty runs on one task need them once


CHUNK = 1 << 17  # numbers of hops at once: they stay in cache
REAL = OnGrid(
    0.0
)  # releases lie on the mechanism's own grid, and what is done with them is computed in floats


def private_door(door: Door) -> TaskDoor:
    """The door of a walk that can be compiled, whatever the task; otherwise what stands in the
    way."""
    if not isinstance(door, TaskDoor):
        raise ConfigError("a fused walk reads the records of a task; run this one with Bulk()")
    if door.budget is not None:
        raise ConfigError(
            "the fused walk does not look at a budget before each release; run this one with Bulk()"
        )
    if door.mechanism is not None and door.mechanism.norm != 2:
        raise ConfigError(
            f"the fused walk clips in L2, found the {door.mechanism.kind} mechanism; use Bulk()"
        )
    return door


def unbudgeted(door: Door) -> None:
    """A batch of hops asks for all releases at once, so that nobody can look at a budget in
    between."""
    if not isinstance(door, TaskDoor) or door.budget is not None:
        raise ConfigError(
            "a fused sum asks for many releases at once, and this door looks at each of them; use"
            " Bulk(fused=False)"
        )


def refusal(check: Callable[[Door], object], door: Door) -> str:
    """What the check says when it refuses; empty if it does not."""
    try:
        check(door)
    except ConfigError as error:
        return str(error)
    return ""


def noise_of(
    door: TaskDoor,
    path: Ints,
    step: Ints,
    may: Bools,
    begun: Bools,
    rates: Array | None = None,
    on: OnGrid = REAL,
) -> Array:
    """The noise of every hop, at the addresses `Home` uses: a release is the first draw of a step,
    a mask the next.

    On a grid it is the noise of the token, rates included; in real numbers that of the gradient."""
    noise = np.zeros((len(path), door.dim))
    if door.mechanism is None or door.sigma == 0:
        return noise
    if rates is not None and on.grid:
        for use, some in ((0, may), (1, begun & ~may)):
            for rate in np.unique(rates[some]).tolist():
                here = some & (rates == rate)
                noise[here] = discrete_normals(
                    dice=door.dice,
                    purpose="noise",
                    lanes=path[here],
                    steps=step[here],
                    use=use,
                    count=door.dim,
                    s=rate * door.sigma / on.grid,
                    run=door.run,
                    grid=on.grid,
                )
        return noise
    if may.all():
        return door.mechanism.noise(door.dice, path, step, 0, door.dim, door.run)
    silent, spacing = begun & ~may, door.mechanism.fine_grid()
    noise[may] = door.mechanism.noise(door.dice, path[may], step[may], 0, door.dim, door.run)
    if spacing:
        noise[silent] = discrete_normals(
            dice=door.dice,
            purpose="noise",
            lanes=path[silent],
            steps=step[silent],
            use=1,
            count=door.dim,
            s=door.sigma / spacing,
            run=door.run,
            grid=spacing,
        )
    else:
        noise[silent] = door.sigma * door.dice.normal(
            "noise", path[silent], step[silent], 1, door.dim, door.run
        )
    return noise  # (hops, d)


def record(
    door: TaskDoor, path: Ints, step: Ints, may: Bools, begun: Bools, clock: Ints, on: OnGrid = REAL
) -> None:
    """The ledger lines of these hops: contributions first, then the silent ones if they carry
    noise. To be called before anybody is told of them: a walk that is stopped there has released
    them."""
    amount = on.rounding(door.dim, door.sigma) if on.grid else math.inf
    data: Event = Exact()
    if door.mechanism is not None:
        data = door.mechanism.event_of(door.dim, amount if on.grid else None)
    if may.all():
        door.ledger.record(path, step, clock, data)
        return
    door.ledger.record(path[may], step[may], clock[may], data)
    silent = begun & ~may
    if door.sigma > 0:
        door.ledger.record(
            path[silent], step[silent], clock[silent], Mask(float(door.sigma), amount)
        )


def visits(path: Ints) -> Ints:
    """How many visits its peer has had at each hop, that hop included  # (hops,)."""
    order = np.argsort(path, kind="stable")
    first = np.flatnonzero(np.diff(path[order], prepend=-1))
    step = np.empty(len(path), np.int64)
    step[order] = np.arange(len(path)) - np.repeat(first, np.diff(first, append=len(path))) + 1
    return step


def standing(path: Ints, may: Bools, spent: Ints, latest: Ints) -> tuple[Ints, Ints]:
    """Before every hop, its holder's contributions so far and the hop of the last one  # (hops,),
    (hops,)."""
    order, hops = np.argsort(path, kind="stable"), len(path)
    peers, made = path[order], may[order]
    group = np.cumsum(np.diff(peers, prepend=-1) != 0)
    ahead: Ints = np.cumsum(made) - made
    first = np.flatnonzero(np.diff(peers, prepend=-1))
    counts, last = np.empty(hops, np.int64), np.empty(hops, np.int64)
    counts[order] = spent[peers] + ahead - np.repeat(ahead[first], np.diff(first, append=hops))
    place = np.maximum.accumulate(np.where(made, group * hops + order, -1))
    place = np.concatenate(([-1], place[:-1]))[:hops]
    last[order] = np.where(place >= group * hops, place - group * hops, latest[peers])
    return counts, last


def followed(
    algorithm: Algorithm[Any],
    door: Door,
    path: Ints,
    step: Ints,
    hops: Ints,
    heard: Array,
    state: Any,
    public: Any,
) -> Any:
    """What `absorb` makes of the tokens heard at these hops, as one batch through the door, ledger
    lines included."""
    here, source = path[hops], path[np.maximum(hops - 1, 0)]
    links = Links.of_meetings(here, source)
    home = Home(
        door, here, step[hops], hops, hops + 1 == len(path), Links.alone_at(here).edges, public
    )
    return untwinned(absorbed(algorithm, state, Inbox(links, heard, False, heard), home))[0]


def check_equal(found: Array, compiled: Array, hops: Ints, within: float) -> None:
    """Refuse a compiled token that is not the one that `absorb` makes."""
    off = np.abs(found - compiled).max(axis=1, initial=0.0)
    if not np.all(off <= within * max(1.0, float(np.abs(found).max(initial=0.0)))):
        raise ConformanceError(
            f"the compiled walk is {float(off.max()):.3g} away from the general one at hop"
            f" {int(hops[np.argmax(off)])}; run it with Bulk(fused=False), and please report this"
        )


def homes(door: Door, path: Ints, public: Any, stops: Stops) -> Iterator[tuple[slice, Home]]:
    """The homes of all hops of a token, many of them as one batch: for what does not depend on the
    token."""
    step, clock = visits(path), np.arange(len(path))
    for here in stops.parts(len(path), max(64, CHUNK // door.dim)):
        last = clock[here] + 1 == len(path)
        yield (
            here,
            Home(
                door,
                path[here],
                step[here],
                clock[here],
                last,
                Links.alone_at(path[here]).edges,
                public,
            ),
        )


def collected(
    door: Door,
    path: Ints,
    token: Array,
    added: Ints,
    public: Any,
    stops: Stops,
    state_of: Callable[[Array, Ints], Any],
    added_by: Callable[[Home], Array],
) -> None:
    """A token to which every holder adds something that does not depend on it: at each peer the sum
    as it last held it, and the contributions in it, both written in place. Additions are made in
    the order of the hops: the same bits."""
    so_far = token[path[0]].copy() if len(path) else np.zeros(door.dim)
    for here, home in homes(door, path, public, stops):
        sums = np.cumsum(np.concatenate((so_far[None], added_by(home))), axis=0)[1:]
        held, so_far = path[here], sums[-1]
        last = len(held) - 1 - np.unique(held[::-1], return_index=True)[1]
        token[held[last]], added[held[last]] = sums[last], home.clock[last] + 1
        stops.pass_by(here.stop, len(path), state_of(token, added))


def eights(records: Records) -> tuple[Ints, Array]:
    """Every peer's records in blocks of eight, each multiplied by its label; kept as long as the
    records."""
    if records not in _EIGHTS:
        _EIGHTS[records] = _eights(records)
    return _EIGHTS[records]


def _eights(records: Records) -> tuple[Ints, Array]:
    """The blocks, as `logistic_steps` wants them."""
    counts = -(-records.sizes // 8)
    start = np.concatenate(([0], np.cumsum(counts)))
    signed = np.zeros((start[-1], records.columns, 8))
    for block in records.blocks:
        for begin in range(0, block.targets.shape[1], 8):
            rows, some = np.flatnonzero(counts[block.peers] > begin // 8), slice(begin, begin + 8)
            labeled = (
                block.features[rows, some] * block.targets[rows, some, None]
            )  # padding is zero and stays zero
            signed[start[block.peers[rows]] + begin // 8, :, : labeled.shape[1]] = labeled.swapaxes(
                1, 2
            )
    return start, signed  # (n + 1,), (blocks, d, 8)


def flat(records: Records) -> tuple[Ints, Array, Array]:
    """Every peer's records one after the other, without padding: where each peer's begin, features,
    targets."""
    start = np.concatenate(([0], np.cumsum(records.sizes)))
    features, targets = np.empty((start[-1], records.columns)), np.empty(start[-1])
    for block in records.blocks:
        real = block.weights > 0
        places = (start[block.peers][:, None] + np.arange(real.shape[1]))[real]
        features[places], targets[places] = block.features[real], block.targets[real]
    return start, features, targets  # (n + 1,), (records, p), (records,)


def clip_and_spacing(mechanism: Mechanism | None) -> tuple[float, float]:
    """How a release is cut, and the grid its noise lies on; without noise neither."""
    return (math.inf, 0.0) if mechanism is None else (mechanism.clip, mechanism.spacing)


def or_infinite(bound: float | None) -> float:
    """A bound as compiled loops want it: without one, infinity."""
    return math.inf if bound is None else bound
