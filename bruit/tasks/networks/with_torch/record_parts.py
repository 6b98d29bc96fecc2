"""The records of a task's peers, a few peers at a time, as sums over single records read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.tasks.networks.with_torch.record_sums import (
    MOST_RECORDS,
    RecordAsk,
    RecordChunks,
    chunk_of,
    slots_alike,
)
from bruit.tasks.record_gradients import chosen

if TYPE_CHECKING:
    from bruit.tasks.networks.network_task import Torch


def record_parts(
    task: Torch, ids: Ints, x: Array, coins: Array | None, rate: float
) -> Iterator[tuple[slice | Ints, Bools, RecordAsk]]:
    """For some peers at a time: which rows of the answer they are, which of their records are taken,
    and what a sum over them is told."""
    most = int(task.sizes.max())
    if most > MOST_RECORDS:
        raise ConfigError(
            f"a peer holds {most} records, and roundings are charged for at most {MOST_RECORDS}"
        )
    network = task.network
    chunk = chunk_of(network, most)
    width = max(task.dim, chunk * network.numbers)
    for part in task.records.parts(ids, width):
        some = None if coins is None else coins[part.rows]
        taken = chosen(some, rate, *part.targets.shape) & (part.weights > 0)
        records = RecordChunks(x[part.rows], part.features, part.targets)
        asked = RecordAsk(network, records, chunk, moving=False)
        moving = coins is not None and slots_alike(asked)
        yield part.rows, taken, asked._replace(moving=moving)
