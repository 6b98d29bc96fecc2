"""From a module, a loss and records to a network that peers can be asked about, or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bruit.errors import ConfigError
from bruit.tasks.networks.telling import name_of
from bruit.tasks.records import Records

if TYPE_CHECKING:
    from bruit.tasks.networks.network_task import Torch
    from bruit.tasks.networks.with_torch.network import PeerNetwork

LOSSES = {"cross-entropy": "classes", "squared": "numbers"}


def predicted(loss: str | Callable[..., Any], predicts: str) -> str:
    """What is predicted, by what the loss says or was declared."""
    if isinstance(loss, str) and loss not in LOSSES:
        raise ConfigError(
            f"loss = {loss!r} is not known; use {' or '.join(LOSSES)}, or a function of (outputs, "
            "targets) that gives one number a record"
        )
    says = LOSSES[loss] if isinstance(loss, str) else predicts
    if says not in LOSSES.values() or (predicts and predicts != says):
        raise ConfigError(
            f'predicts is "classes" or "numbers", as the loss does, found {predicts!r} for the loss '
            f"{loss if isinstance(loss, str) else name_of(loss)}"
        )
    return says


def check_classes(records: Records) -> None:
    """Refuse records whose targets are no places of classes."""
    many = len(records.classes)
    if many < 2:
        raise ConfigError(
            f"classes are told apart where there are at least 2, these records have {many}; declare "
            'them (Records.of(.., classes=)), or use predicts = "numbers"'
        )
    for block in records.blocks:
        places = block.targets
        odd = np.argwhere((places != places.round()) | (places < 0) | (places >= many))
        if len(odd):
            place, record = odd[0]
            raise ConfigError(
                f"record {record} of peer {block.peers[place]} has label "
                f"{places[place, record]:g}; classes are 0..{many - 1}"
            )


def made_network(task: Torch) -> PeerNetwork:
    """The network of a task, after all that can be refused of it was."""
    from bruit.tasks.networks.with_torch import builders, refusals
    from bruit.tasks.networks.with_torch.losses import NAMED
    from bruit.tasks.networks.with_torch.network import DTYPES, PeerNetwork

    if task.dtype not in DTYPES:
        raise ConfigError(f"dtype is {' or '.join(DTYPES)}, found {task.dtype!r}")
    width = task.records.columns
    shape = tuple(task.shape) or builders.shape_of(task.module, width)
    if min(shape) < 1:
        raise ConfigError(f"the shape of an input is made of positive numbers, found {shape}")
    if not 0 <= task.weights < 2**63:
        raise ConfigError(
            f"weights is the seed of the starting weights, from 0 to 2^63 - 1, found {task.weights}"
        )
    if int(np.prod(shape)) != width:
        raise ConfigError(
            f"an input of shape {shape} holds {int(np.prod(shape))} numbers, and records have "
            f"{width}; say shape="
        )
    module = builders.made(task.module, shape, task.outputs, task.weights)
    refusals.refuse_module(module)
    refusals.refuse_size(sum(p.numel() for p in module.parameters()), task.peers)
    loss = NAMED[task.loss] if isinstance(task.loss, str) else task.loss
    network = PeerNetwork(module, loss, shape, task.dtype, task.classifies)
    refusals.refuse_behavior(network.module, loss, shape, task.outputs, task.classifies, task.dtype)
    refusals.refuse_slow_way(network)
    return network
