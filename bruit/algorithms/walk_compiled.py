"""What compiled walks need ahead of the model: noise of all hops, ledger lines, records as the loops read them."""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

import numpy as np

from bruit.algorithms.home import Door, OnGrid, TaskDoor
from bruit.arrays import Array, Bools, Ints
from bruit.discrete_normal import discrete_normals
from bruit.errors import ConfigError
from bruit.privacy.events import Event, Exact, Mask
from bruit.tasks import Records

_EIGHTS: WeakKeyDictionary[Records, tuple[Ints, Array]] = WeakKeyDictionary()  # twenty runs on one task need them once


REAL = OnGrid(0.0)  # releases lie on the mechanism's own grid, and what is done with them is computed in floats


def private_door(door: Door) -> TaskDoor:
    """The door of a walk that can be compiled, whatever the task; otherwise what stands in the way."""
    if not isinstance(door, TaskDoor):
        raise ConfigError("a fused walk reads the records of a task; run this one with Bulk()")
    if door.budget is not None:
        raise ConfigError("the fused walk does not look at a budget before each release; run this one with Bulk()")
    if door.mechanism is not None and door.mechanism.norm != 2:
        raise ConfigError(f"the fused walk clips in L2, found the {door.mechanism.kind} mechanism; use Bulk()")
    return door


def noise_of(door: TaskDoor, path: Ints, step: Ints, may: Bools, begun: Bools, rates: Array | None = None,
             on: OnGrid = REAL) -> Array:  # fmt: skip
    """The noise of every hop, at the addresses `Home` uses: a release is the first draw of a step, a mask the next.

    On a grid it is the noise of the token, rates included; in real numbers that of the gradient."""
    noise = np.zeros((len(path), door.dim))
    if door.mechanism is None or door.sigma == 0:
        return noise
    if rates is not None and on.grid:
        for use, some in ((0, may), (1, begun & ~may)):
            for rate in np.unique(rates[some]).tolist():
                here = some & (rates == rate)
                noise[here] = discrete_normals(door.dice, "noise", path[here], step[here], use, door.dim,
                                               rate * door.sigma / on.grid, door.run, on.grid)  # fmt: skip
        return noise
    if may.all():
        return door.mechanism.noise(door.dice, path, step, 0, door.dim, door.run)
    silent, spacing = begun & ~may, door.mechanism.fine_grid()
    noise[may] = door.mechanism.noise(door.dice, path[may], step[may], 0, door.dim, door.run)
    if spacing:
        noise[silent] = discrete_normals(door.dice, "noise", path[silent], step[silent], 1, door.dim,
                                         door.sigma / spacing, door.run, spacing)  # fmt: skip
    else:
        noise[silent] = door.sigma * door.dice.normal("noise", path[silent], step[silent], 1, door.dim, door.run)
    return noise  # (hops, d)


def record(door: TaskDoor, path: Ints, step: Ints, may: Bools, begun: Bools, on: OnGrid = REAL) -> None:
    """The ledger lines of all hops: contributions first, then the silent ones if they carry noise."""
    amount = on.rounding(door.dim, door.sigma) if on.grid else math.inf
    clock = np.arange(len(path))
    data: Event = Exact()
    if door.mechanism is not None:
        data = door.mechanism.event_of(door.dim, amount if on.grid else None)
    if may.all():
        door.ledger.record(path, step, clock, data)
        return
    door.ledger.record(path[may], step[may], clock[may], data)
    silent = begun & ~may
    if door.sigma > 0:
        door.ledger.record(path[silent], step[silent], clock[silent], Mask(float(door.sigma), amount))


def eights(records: Records) -> tuple[Ints, Array]:
    """Every peer's records in blocks of eight, each multiplied by its label; kept as long as the records."""
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
            labeled = block.features[rows, some] * block.targets[rows, some, None]  # padding is zero and stays zero
            signed[start[block.peers[rows]] + begin // 8, :, : labeled.shape[1]] = labeled.swapaxes(1, 2)
    return start, signed  # (n + 1,), (blocks, d, 8)


def flat(records: Records) -> tuple[Ints, Array, Array]:
    """Every peer's records one after the other, without padding: where each peer's begin, features, targets."""
    start = np.concatenate(([0], np.cumsum(records.sizes)))
    features, targets = np.empty((start[-1], records.columns)), np.empty(start[-1])
    for block in records.blocks:
        real = block.weights > 0
        places = (start[block.peers][:, None] + np.arange(real.shape[1]))[real]
        features[places], targets[places] = block.features[real], block.targets[real]
    return start, features, targets  # (n + 1,), (records, p), (records,)
