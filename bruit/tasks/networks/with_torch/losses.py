"""Losses of one number a record, by name, and how outputs are judged."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

Loss = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """log(sum_k exp(s_k)) - s_y  # (r,)."""
    return functional.cross_entropy(outputs, targets, reduction="none")


def squared(outputs: Tensor, targets: Tensor) -> Tensor:
    """(s - y)^2 / 2  # (r,)."""
    return (outputs.reshape(targets.shape) - targets).square() / 2


NAMED: dict[str, Loss] = {"cross-entropy": cross_entropy, "squared": squared}


def hits(outputs: Tensor, targets: Tensor) -> Tensor:
    """Which records have their largest score at their class  # (k, r)."""
    return outputs.argmax(dim=-1) == targets


def errors(outputs: Tensor, targets: Tensor) -> Tensor:
    """The squared error of each record  # (k, r)."""
    return (outputs.reshape(targets.shape) - targets).to(torch.float64).square()
