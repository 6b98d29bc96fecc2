"""Layers that know of peers: a flat batch of P x B records goes through, and those of peer k meet
the weights of peer k, in one batched product.

A layer that has weights is replaced by its twin here; every other layer of a network treats records
one by one and may stay as it is. A twin that listens keeps its input a and its output z. With the
gradient b of the records' losses in z, the gradient of one record in the weights is

    linear, one row a record     b (x) a              never stored: |b (x) a| = |b| |a|
    linear, several rows         sum over rows t of b_t (x) a_t
    convolution                  the same, a_t the patch that z_t looks at (unfolding)
    layer or group norm          sum over positions of b * normalized a
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional


class Outer(NamedTuple):
    """Gradients of single records that are outer products, kept as their two sides."""

    rows: Tensor  # (r, p) what went in
    slopes: Tensor  # (r, h) gradient of each record's loss in what came out
    places: tuple[int, ...]  # of weight and bias in the list of parameters


class Stored(NamedTuple):
    """Gradients of single records in one parameter, one row each."""

    gradients: Tensor  # (r, size)
    place: int


Term = Outer | Stored


def alone(term: Term) -> list[tuple[int, Tensor]]:
    """By place of a parameter: the gradients of single records, formed  # (r, size)."""
    if isinstance(term, Stored):
        return [(term.place, term.gradients)]
    products = (term.slopes[:, :, None] * term.rows[:, None, :]).flatten(1)
    return list(zip(term.places, (products, term.slopes), strict=False))


class Twin(nn.Module):
    """A layer whose weights are given for every peer, (P, ...), or once for all, (1, ...)."""

    def __init__(self, layer: nn.Module, places: dict[str, int]) -> None:
        super().__init__()
        self.places = places  # parameter name -> its place in the list of all parameters
        self.held: dict[str, Tensor] = {}
        self.listens = False
        self.calls = 0
        self.seen: Tensor | None = None
        self.spoken: Tensor | None = None

    def forward(self, a: Tensor) -> Tensor:
        z = self.answer(a)
        self.calls += 1
        if self.listens:
            if not z.requires_grad:
                z.requires_grad_()
            self.seen, self.spoken = a.detach(), z
        return z

    def answer(self, a: Tensor) -> Tensor:
        raise NotImplementedError

    def terms(self, a: Tensor, slopes: Tensor) -> list[Term]:
        raise NotImplementedError

    def numbers(self, a: Tensor, z: Tensor) -> int:
        """How many numbers one record takes here."""
        return a[0].numel() + 2 * z[0].numel()

    def of_peers(self, name: str) -> Tensor | None:
        return self.held.get(name)

    def _bias_terms(self, slopes: Tensor) -> list[Term]:
        """(r, h, positions..) summed over positions."""
        if "bias" not in self.places:
            return []
        return [Stored(slopes.flatten(2).sum(2), self.places["bias"])]


class LinearOfPeers(torch.autograd.Function):
    """rows (P, B, p) times weights (P, h, p), plus bias (P, h). Its gradient in the weights comes in
    the order of the weights: derived by torch it would be a transpose, dear to copy."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(rows, weight)
        return torch.baddbmm(bias[:, None], rows, weight.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        rows, weight = ctx.saved_tensors
        below = torch.bmm(slopes, weight) if ctx.needs_input_grad[0] else None
        return below, torch.bmm(slopes.transpose(1, 2), rows), slopes.sum(1)


class TwinLinear(Twin):
    def answer(self, a: Tensor) -> Tensor:
        weight, bias = self.held["weight"], self.of_peers("bias")
        if len(weight) == 1:
            return functional.linear(a, weight[0], None if bias is None else bias[0])
        rows = a.reshape(len(weight), -1, a.shape[-1])
        if bias is None:
            z = torch.bmm(rows, weight.transpose(1, 2))
        else:
            z = LinearOfPeers.apply(rows, weight, bias)
        return z.reshape(*a.shape[:-1], weight.shape[1])

    def terms(self, a: Tensor, slopes: Tensor) -> list[Term]:
        if a.ndim == 2:
            return [Outer(a, slopes, tuple(self.places.values()))]
        rows, back = a.flatten(1, -2), slopes.flatten(1, -2)
        per_record = torch.bmm(back.transpose(1, 2), rows).flatten(1)
        return [
            Stored(per_record, self.places["weight"]),
            *self._bias_terms(back.transpose(1, 2)),
        ]

    def numbers(self, a: Tensor, z: Tensor) -> int:
        return super().numbers(a, z) + (0 if a.ndim == 2 else self.held["weight"][0].numel())


class TwinConvolution(Twin):
    """Of one or two dimensions, by unfolding where peers have weights of their own."""

    def __init__(self, layer: Any, places: dict[str, int]) -> None:
        super().__init__(layer, places)
        self.flat = isinstance(layer, nn.Conv1d)
        self.layer_options = {
            "stride": layer.stride,
            "padding": layer.padding,
            "dilation": layer.dilation,
        }
        self.groups, self.kernel = layer.groups, layer.kernel_size

    def answer(self, a: Tensor) -> Tensor:
        weight, bias = self.held["weight"], self.of_peers("bias")
        if len(weight) == 1:
            native = functional.conv1d if self.flat else functional.conv2d
            once = None if bias is None else bias[0]
            return native(a, weight[0], once, groups=self.groups, **self.layer_options)
        peers, outputs = len(weight), weight.shape[1]
        patches = self._patches(a)  # (r, g, c k, l)
        records = len(a) // peers
        turned = weight.reshape(peers, 1, self.groups, outputs // self.groups, -1)
        z = torch.matmul(turned, patches.reshape(peers, records, *patches.shape[1:]))
        z = z.reshape(peers, records, outputs, -1)
        if bias is not None:
            z = z + bias[:, None, :, None]
        return z.reshape(len(a), outputs, *self._sizes(a))

    def terms(self, a: Tensor, slopes: Tensor) -> list[Term]:
        patches = self._patches(a)
        back = slopes.reshape(len(a), self.groups, slopes.shape[1] // self.groups, -1)
        per_record = torch.matmul(back, patches.transpose(2, 3)).flatten(1)
        return [Stored(per_record, self.places["weight"]), *self._bias_terms(slopes)]

    def numbers(self, a: Tensor, z: Tensor) -> int:
        return super().numbers(a, z) + self._patches(a[:1]).numel() + self.held["weight"][0].numel()

    def _patches(self, a: Tensor) -> Tensor:
        """What every output position looks at, by groups  # (r, groups, c k, l)."""
        rows, options = (a[:, :, None], self._two()) if self.flat else (a, self.layer_options)
        kernel = (1, *self.kernel) if self.flat else self.kernel
        found = functional.unfold(rows, kernel, **options)
        return found.reshape(len(a), self.groups, -1, found.shape[2])

    def _two(self) -> dict[str, Any]:
        """The options of a line, as those of a picture of height one."""
        first = {"stride": 1, "padding": 0, "dilation": 1}
        return {name: (first[name], *value) for name, value in self.layer_options.items()}

    def _sizes(self, a: Tensor) -> list[int]:
        options = self.layer_options
        return [
            (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
            for size, pad, dilation, kernel, stride in zip(
                a.shape[2:],
                options["padding"],
                options["dilation"],
                self.kernel,
                options["stride"],
                strict=True,
            )
        ]


class TwinNorm(Twin):
    """Layer or group norm: every record is normalized by itself."""

    def __init__(self, layer: Any, places: dict[str, int]) -> None:
        super().__init__(layer, places)
        self.shape = layer.normalized_shape if isinstance(layer, nn.LayerNorm) else None
        self.groups, self.eps = getattr(layer, "num_groups", 0), layer.eps

    def answer(self, a: Tensor) -> Tensor:
        z = self._normal(a) * self._spread("weight", a)
        return z if "bias" not in self.held else z + self._spread("bias", a)

    def terms(self, a: Tensor, slopes: Tensor) -> list[Term]:
        found = [Stored(self._summed(slopes * self._normal(a)), self.places["weight"])]
        if "bias" in self.places:
            found.append(Stored(self._summed(slopes), self.places["bias"]))
        return list(found)

    def _normal(self, a: Tensor) -> Tensor:
        if self.shape is not None:
            return functional.layer_norm(a, self.shape, eps=self.eps)
        return functional.group_norm(a, self.groups, eps=self.eps)

    def _spread(self, name: str, a: Tensor) -> Tensor:
        """Weights as they meet records: (1, ..) for all, or (r, ..), those of each record's peer."""
        held = self.held[name]
        if self.shape is not None:
            inner = a.ndim - 1 - len(self.shape)
            held = held.reshape(len(held), *[1] * inner, *self.shape)
        else:
            held = held.reshape(*held.shape, *[1] * (a.ndim - 2))
        if len(held) == 1:
            return held
        return held.repeat_interleave(len(a) // len(held), dim=0)

    def _summed(self, slopes: Tensor) -> Tensor:
        if self.shape is None:
            return slopes.flatten(2).sum(2)
        inner = list(range(1, slopes.ndim - len(self.shape)))
        return (slopes.sum(inner) if inner else slopes).flatten(1)


def twin_of(layer: nn.Module, places: dict[str, int]) -> Twin | None:
    """The twin of a layer of exactly a known type; None: there is none."""
    kind = type(layer)
    if kind is nn.Linear:
        return TwinLinear(layer, places)
    if isinstance(layer, nn.Conv1d | nn.Conv2d) and kind in (nn.Conv1d, nn.Conv2d):
        plain = layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
        return TwinConvolution(layer, places) if plain else None
    if kind in (nn.LayerNorm, nn.GroupNorm) and places:
        return TwinNorm(layer, places)
    return None
