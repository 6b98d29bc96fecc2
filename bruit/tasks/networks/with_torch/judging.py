"""How good models are on rows, many models at a time: for observers only."""

from __future__ import annotations

import numpy as np
import torch

from bruit.arrays import Array
from bruit.tasks.networks.with_torch.losses import errors, hits
from bruit.tasks.networks.with_torch.network import PeerNetwork

NUMBERS_AT_ONCE = 1 << 22


def scored(
    network: PeerNetwork, models: Array, features: Array, targets: Array, weights: Array
) -> tuple[Array, Array]:
    """Row k: the weighted mean over rows of hits (squared errors of numbers), and of losses, of
    models[k] on features[k]; (1, ..) for rows that all models are asked about  # (k,) twice."""
    found, losses = np.zeros(len(models)), np.zeros(len(models))
    many = features.shape[1]
    rows = max(1, min(many, NUMBERS_AT_ONCE // network.numbers))
    peers = max(1, NUMBERS_AT_ONCE // (rows * network.numbers))
    for first in range(0, len(models), peers):
        here = slice(first, min(first + peers, len(models)))
        mine = here if len(features) > 1 else slice(0, 1)
        some, count = models[here], here.stop - here.start
        for begin in range(0, many, rows):
            part = slice(begin, begin + rows)
            shape = (count, *features[:1, part].shape[1:])
            batch = network.batch(
                np.broadcast_to(features[mine, part], shape),
                np.broadcast_to(targets[mine, part], shape[:2]),
            )
            outputs = network.outputs(some, batch.inputs)
            measure = hits if network.classes else errors
            each = torch.from_numpy(np.array(np.broadcast_to(weights[mine, part], shape[:2])))
            found[here] += (measure(outputs, batch.targets) * each).sum(1).numpy()
            with torch.no_grad():
                lost = network.loss(outputs.flatten(0, 1), batch.targets.flatten())
            lost = lost.reshape(shape[:2]).to(torch.float64)
            losses[here] += torch.where(each > 0, lost * each, 0.0).sum(1).numpy()
    return found, losses


def outputs_of(network: PeerNetwork, model: Array, rows: Array) -> Array:
    """What one model says of prepared rows  # (r, c)."""
    step = max(1, NUMBERS_AT_ONCE // network.numbers)
    parts = []
    for begin in range(0, len(rows), step):
        some = rows[None, begin : begin + step]
        batch = network.batch(some, np.zeros(some.shape[:2]))
        parts.append(network.outputs(model[None], batch.inputs)[0].to(torch.float64).numpy())
    return np.concatenate(parts)
