"""What the compiled walk needs ahead of the model: noise of all hops, ledger lines, records in blocks of eight."""

from __future__ import annotations

import numpy as np

from bruit.algorithms.home import TaskDoor
from bruit.arrays import Array, Bools, Ints
from bruit.privacy.events import Exact, Mask
from bruit.tasks import Records


def noise_of(door: TaskDoor, path: Ints, step: Ints, may: Bools, begun: Bools) -> Array:
    """The noise of every hop, at the addresses `Home` uses: a release is the first draw of a step, a mask the next."""
    noise = np.zeros((len(path), door.dim))
    if door.mechanism is None or door.sigma == 0:
        return noise
    if may.all():
        return door.mechanism.noise(door.dice, path, step, 0, door.dim, door.run)
    silent = begun & ~may
    noise[may] = door.mechanism.noise(door.dice, path[may], step[may], 0, door.dim, door.run)
    noise[silent] = door.sigma * door.dice.normal("noise", path[silent], step[silent], 1, door.dim, door.run)
    return noise  # (hops, d)


def record(door: TaskDoor, path: Ints, step: Ints, may: Bools, begun: Bools) -> None:
    """The ledger lines of all hops: contributions first, then the silent ones if they carry noise."""
    clock, data = np.arange(len(path)), Exact() if door.mechanism is None else door.mechanism.event()
    if may.all():
        door.ledger.record(path, step, clock, data)
        return
    door.ledger.record(path[may], step[may], clock[may], data)
    silent = begun & ~may
    if door.sigma > 0:
        door.ledger.record(path[silent], step[silent], clock[silent], Mask(float(door.sigma)))


def eights(records: Records) -> tuple[Ints, Array]:
    """Every peer's records in blocks of eight, each multiplied by its label, as `logistic_steps` wants them."""
    counts = -(-records.sizes // 8)
    start = np.concatenate(([0], np.cumsum(counts)))
    signed = np.zeros((start[-1], records.columns, 8))
    for block in records.blocks:
        for begin in range(0, block.targets.shape[1], 8):
            rows, some = np.flatnonzero(counts[block.peers] > begin // 8), slice(begin, begin + 8)
            labeled = block.features[rows, some] * block.targets[rows, some, None]  # padding is zero and stays zero
            signed[start[block.peers[rows]] + begin // 8, :, : labeled.shape[1]] = labeled.swapaxes(1, 2)
    return start, signed  # (n + 1,), (blocks, d, 8)
