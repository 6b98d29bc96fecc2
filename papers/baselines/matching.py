"""Records from gradients by matching: find the input whose gradient looks like the observed one
(gossip:ATK-2).

    minimize over x   distance(grad_theta loss(model(x), y), g) + tv * (total variation of x)
    squared: ||grad - g||^2          cosine: 1 - <grad, g> / (||grad|| ||g||)

The model is any torch module that ends in class scores; the label is given, or read off the
gradient of the last bias (the only negative entry for one record). Needs the extra `torch`, which
is loaded only when something here is called. Descent is Adam with a decaying rate from a seeded
random start; it finds a local minimum, not always the record.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from math import cos, isfinite, pi
from typing import Any, Literal

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.randomness import Replay

Objective = Literal["cosine", "squared"]


@dataclass(frozen=True, kw_only=True)
class Matching:
    """How to search: objective, smoothness asked of images, steps of Adam, restarts, and bounds on
    inputs (or None)."""

    objective: Objective = "cosine"
    total_variation: float = 0.0
    steps: int = 500
    rate: float = 0.1
    restarts: int = 1
    bounds: tuple[float, float] | None = (0.0, 1.0)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.objective not in ("cosine", "squared"):
            raise ConfigError(
                f"gradients are matched by 'cosine' or 'squared' distance, found {self.objective!r}"
            )
        if self.steps < 1 or self.restarts < 1:
            raise ConfigError(
                f"matching needs at least 1 step and 1 start, found {self.steps} and "
                f"{self.restarts}"
            )
        if not (self.rate > 0 and isfinite(self.rate)) or self.total_variation < 0:
            raise ConfigError(
                "matching needs a positive rate and a total variation weight >= 0, found"
                f" {self.rate} and {self.total_variation}"
            )
        if self.bounds is not None and not self.bounds[0] < self.bounds[1]:
            raise ConfigError(f"the bounds of inputs must be (low, high), found {self.bounds}")


@dataclass(frozen=True, eq=False)
class Matched:
    """The input found, its label, and the distance of its gradient to the observed one."""

    inputs: Array  # (shape of one input)
    label: int
    distance: float


def convnet(
    shape: tuple[int, int, int],
    classes: int,
    channels: tuple[int, ...] = (32, 64),
    hidden: int = 1024,
    kernel: int = 5,
    seed: int = 0,
) -> Any:
    """A convolutional network: (convolution, ReLU, max-pool) per channel count, a hidden layer,
    class scores.

    shape is (channels, height, width). Convolutions keep the size, each pooling halves it, so the
    flattened length is channels[-1] * (height // 2^k) * (width // 2^k): 4096 for 32 x 32, 3136 for
    28 x 28 (gossip:EXP-11).
    """
    torch = _torch()
    side = 2 ** len(channels)
    if len(shape) != 3 or min(shape) < 1 or shape[1] < side or shape[2] < side:
        raise ConfigError(
            f"inputs are {shape}; {len(channels)} poolings need (channels, height, width) of at"
            f" least {side} x {side} pixels"
        )
    if classes < 2 or hidden < 1 or not channels or kernel < 1 or kernel % 2 == 0:
        raise ConfigError(
            f"a convolutional network needs 2 classes or more, a hidden layer, channels and an odd "
            f"kernel; found {classes}, {hidden}, {channels} and {kernel}"
        )
    nn, layers = torch.nn, []
    with torch.random.fork_rng(
        devices=[]
    ):  # initial weights from the seed, and nobody else's draws disturbed
        torch.manual_seed(seed)
        for before, after in pairwise((shape[0], *channels)):
            layers += [
                nn.Conv2d(before, after, kernel, padding=kernel // 2),
                nn.ReLU(),
                nn.MaxPool2d(2),
            ]
        flat = channels[-1] * (shape[1] // side) * (shape[2] // side)
        layers += [nn.Flatten(), nn.Linear(flat, hidden), nn.ReLU(), nn.Linear(hidden, classes)]
        return nn.Sequential(*layers).double()


def gradient_of(model: Any, inputs: Array, labels: int | list[int]) -> Array:
    """The gradient of the mean cross-entropy of some inputs, flattened in the order of the model's
    parameters."""
    torch = _torch()
    batch = torch.as_tensor(np.asarray(inputs), dtype=_kind(model))
    targets = torch.as_tensor(np.atleast_1d(np.asarray(labels, dtype=np.int64)))
    with torch.enable_grad():
        parts = _gradient(torch, model, batch, targets)
    flat: Array = torch.cat([part.reshape(-1) for part in parts]).detach().double().numpy()
    return flat


def distance(
    model: Any, gradient: Array, inputs: Array, label: int, objective: Objective = "cosine"
) -> float:
    """How far the gradient of one input is from the observed one."""
    torch = _torch()
    found = torch.as_tensor(gradient_of(model, inputs[None], label))
    return float(
        _distance(
            torch,
            found,
            torch.as_tensor(_flat(model, gradient)),
            Matching(objective=objective).objective,
        )
    )


def label_of(model: Any, gradient: Array) -> int:
    """The class of a single record: the most negative gradient of the last bias, p - e_y
    (gossip:ATK-1)."""
    *_, last = model.parameters()
    if last.dim() != 1:
        raise ConfigError(
            "the last layer of this model has no bias, so the label cannot be read off the"
            " gradient; give the label"
        )
    return int(_flat(model, gradient)[-last.numel() :].argmin())


def invert(
    model: Any,
    gradient: Array,
    shape: tuple[int, ...],
    label: int | None = None,
    how: Matching | None = None,
) -> Matched:
    """The input of this shape whose gradient is closest to the observed one, over all restarts."""
    torch, chosen = _torch(), Matching() if how is None else how
    observed = torch.as_tensor(_flat(model, gradient), dtype=_kind(model))
    if not bool(observed.any()):
        raise ConfigError(
            "the observed gradient is zero: the record is fitted exactly and nothing can be matched"
        )
    target = label_of(model, gradient) if label is None else int(label)
    found = [
        _descend(torch, model, observed, shape, target, chosen, start)
        for start in range(chosen.restarts)
    ]
    return min(found, key=lambda one: one.distance)


def _descend(
    torch: Any,
    model: Any,
    observed: Any,
    shape: tuple[int, ...],
    label: int,
    how: Matching,
    start: int,
) -> Matched:
    draws = Replay(how.seed).uniform("matching", np.array([start]), 0, 0, int(np.prod(shape)))
    low, high = how.bounds or (0.0, 1.0)
    x = torch.as_tensor(
        (low + (high - low) * draws).reshape(1, *shape), dtype=_kind(model)
    ).requires_grad_(True)
    targets, adam = torch.tensor([label]), torch.optim.Adam([x], lr=how.rate)
    best, kept = float("inf"), x.detach().clone()
    with torch.enable_grad():
        for step in range(how.steps):
            for group in adam.param_groups:
                group["lr"] = how.rate * (
                    1e-3 + (1 - 1e-3) * 0.5 * (1 + cos(pi * step / how.steps))
                )
            parts = _gradient(torch, model, x, targets, create_graph=True)
            gap = _distance(
                torch, torch.cat([part.reshape(-1) for part in parts]), observed, how.objective
            )
            reached = float(gap.detach())
            if reached < best:
                best, kept = reached, x.detach().clone()
            total = gap + how.total_variation * _variation(x) if how.total_variation else gap
            (x.grad,) = torch.autograd.grad(total, [x])
            adam.step()
            if how.bounds is not None:
                x.data.clamp_(low, high)
    return Matched(kept[0].double().numpy(), label, best)


def _gradient(torch: Any, model: Any, batch: Any, targets: Any, create_graph: bool = False) -> Any:
    loss = torch.nn.functional.cross_entropy(model(batch), targets)
    return torch.autograd.grad(loss, list(model.parameters()), create_graph=create_graph)


def _distance(torch: Any, found: Any, observed: Any, objective: Objective) -> Any:
    if objective == "squared":
        return ((found - observed) ** 2).sum()
    size = found.norm() * observed.norm()
    return 1.0 - (found * observed).sum() / torch.clamp(size, min=torch.finfo(size.dtype).tiny)


def _variation(x: Any) -> Any:
    """Mean absolute difference of neighboring pixels, over the last two axes."""
    if x.dim() < 3:
        return (x[..., 1:] - x[..., :-1]).abs().mean()
    return (x[..., 1:, :] - x[..., :-1, :]).abs().mean() + (
        x[..., :, 1:] - x[..., :, :-1]
    ).abs().mean()


def _flat(model: Any, gradient: Array) -> Array:
    count = sum(part.numel() for part in model.parameters())
    flat = np.asarray(gradient, dtype=np.float64).ravel()
    if len(flat) != count:
        raise ConfigError(
            f"the gradient has {len(flat)} numbers, the model {count} parameters; "
            "give the gradient of this model, flattened in the order of its parameters"
        )
    if not np.isfinite(flat).all():
        raise ConfigError(
            "the observed gradient has entries that are no finite numbers; check the estimate"
        )
    return flat


def _kind(model: Any) -> Any:
    first = next(iter(model.parameters()), None)
    if first is None:
        raise ConfigError("this model has no parameters, so it has no gradient to match")
    return first.dtype


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError:
        raise ConfigError(
            "gradient matching needs torch, which is not installed; install the extra: "
            "pip install bruit[torch]"
        ) from None
