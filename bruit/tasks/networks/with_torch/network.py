"""A network that is asked for many peers at once: models are flat rows, one a peer.

    row = all parameters one after the other, in the order of `named_parameters`

Where all weights belong to layers with twins (`batched_layers`) the records of all peers go through
together, as one flat batch. Any other module is differentiated by `torch.func`, vectorized over
peers and, for single records, over records: slower, and every record's gradient is stored.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.tasks.counted import counted
from bruit.tasks.networks.with_torch.batched_layers import Stored, Term, Twin, alone, twin_of
from bruit.tasks.networks.with_torch.threads import threads_for

NEAR = 1e-3  # two ways to the gradient of a record are as near, beside its norm
DTYPES = {"float64": torch.float64, "float32": torch.float32}


class ParameterPlace(NamedTuple):
    """Where a parameter is in a flat row."""

    name: str
    shape: tuple[int, ...]
    begin: int
    end: int


class Batch(NamedTuple):
    """Records of P peers, B each, as tensors."""

    inputs: Tensor  # (P, B, ...)
    targets: Tensor  # (P, B)

    def __repr__(self) -> str:
        return counted("Batch", self._asdict())


class PeerNetwork:
    """A module and a loss of one number a record, for rows of models.

    `loss(outputs, targets)` gives one number a record. `numbers` is about how many numbers one
    record takes while it is differentiated. The module that was given is never changed.
    """

    def __init__(
        self,
        module: nn.Module,
        loss: Callable[[Tensor, Tensor], Tensor],
        shape: tuple[int, ...],
        dtype: str,
        classes: bool,
    ) -> None:
        self.module = _own_copy(module).to(DTYPES[dtype])
        self.loss, self.shape, self.classes = loss, shape, classes
        self.dtype, self.dtype_name = DTYPES[dtype], dtype
        self.places = tuple(_places(self.module))
        self.dim = self.places[-1].end
        self.start = np.concatenate(
            [p.detach().numpy().reshape(-1) for p in module.parameters()]
        ).astype(np.float64)
        self.alike: dict[tuple[int, int, int], bool] = {}  # whether slots of such a chunk are
        self._lock = RLock()
        self._twins: list[Twin] = []
        self._batched: nn.Module | None = None
        self.numbers = self.dim
        self._try_twins()

    def __getstate__(self) -> dict[str, Any]:
        """All but the lock, which is of one process."""
        return {name: kept for name, kept in vars(self).items() if name != "_lock"}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept, _lock=RLock())

    @property
    def batched(self) -> bool:
        """Whether all weights are in layers with twins."""
        return self._batched is not None

    def batch(self, features: Array, targets: Array) -> Batch:
        """Records as tensors: rows of numbers in the shape that the module takes."""
        rows = _tensor(features).to(self.dtype)
        marks = _tensor(targets)
        marks = marks.to(torch.int64 if self.classes else self.dtype)
        return Batch(rows.reshape(*features.shape[:2], *self.shape), marks)

    def outputs(self, models: Array, inputs: Tensor) -> Tensor:
        """What each model says of its records: models (P, d), inputs (P, B, ..)  # (P, B, c)."""
        with torch.no_grad(), self.threads(inputs):
            held = self._tensors(models)
            if self._batched is not None:
                with self._lock:
                    flat = self._through(held, inputs)
                return flat.reshape(*inputs.shape[:2], -1)
            if len(models) == 1:
                return self._functional([t[0] for t in held], inputs[0]).reshape(
                    1, inputs.shape[1], -1
                )
            found = vmap(self._functional)(held, inputs)
            return found.reshape(*inputs.shape[:2], -1)

    def gradients(self, models: Array, batch: Batch, weights: Array) -> Array:
        """Row k: the gradient at models[k] of sum_j weights[k, j] loss(record j of k)  # (P, d)."""
        with self.threads(batch.inputs):
            return self._gradients(models, batch, weights)

    def threads(self, inputs: Tensor) -> AbstractContextManager[None]:
        """Of a step with these records."""
        return threads_for(6.0 * inputs.shape[0] * inputs.shape[1] * max(self.numbers, self.dim))

    def _gradients(self, models: Array, batch: Batch, weights: Array) -> Array:
        held = [t.requires_grad_() for t in self._tensors(models)]
        each = _tensor(weights).to(self.dtype)
        if self._batched is not None:
            with self._lock:
                flat = self._through(held, batch.inputs)
            losses = self.loss(flat, batch.targets.reshape(-1))
            found = torch.autograd.grad((losses * each.reshape(-1)).sum(), held, allow_unused=True)
            found = [
                torch.zeros_like(t) if g is None else g for t, g in zip(held, found, strict=True)
            ]
        else:
            found = vmap(grad(self._weighted))(held, batch.inputs, batch.targets, each)
        return self._row(found)

    def record_terms(self, models: Array, batch: Batch) -> list[Term]:
        """The gradients of all single records of a batch, in as few numbers as their layers allow;
        records are flat, (P B, ..). `models` may be one row, which all peers share."""
        held = [tensor.clone() for tensor in self._tensors(models)]  # aligned alike in every call
        batch = Batch(batch.inputs.clone(), batch.targets)
        if self._batched is None:
            return self._terms_one_by_one(held, batch)
        with self._lock:
            for twin in self._twins:
                twin.listens = True
            try:
                flat = self._through(held, batch.inputs)
                seen = [(twin, twin.seen, twin.spoken) for twin in self._twins]
            finally:
                for twin in self._twins:
                    twin.listens, twin.seen, twin.spoken = False, None, None
        losses = self.loss(flat, batch.targets.reshape(-1))
        spoken = [z for _, _, z in seen]
        slopes = torch.autograd.grad(losses.sum(), spoken, allow_unused=True)
        return [
            term
            for (twin, a, z), b in zip(seen, slopes, strict=True)
            for term in twin.terms(a, torch.zeros_like(z) if b is None else b)
        ]

    def state(self, model: Array) -> dict[str, Tensor]:
        """The parameters of one flat row by name, as new tensors."""
        row = torch.tensor(np.asarray(model, np.float64))
        return {
            p.name: row[p.begin : p.end].reshape(p.shape).to(self.dtype).clone()
            for p in self.places
        }

    def module_with(self, model: Array) -> nn.Module:
        """A new module that holds the weights of one flat row."""
        found = copy.deepcopy(self.module)
        found.load_state_dict(self.state(model), strict=False)
        return found

    def _tensors(self, models: Array) -> list[Tensor]:
        rows = _tensor(models).to(self.dtype)
        return [
            rows[:, p.begin : p.end].reshape(len(models), *p.shape).detach() for p in self.places
        ]

    def _row(self, found: Any) -> Array:
        peers, answer = len(found[0]), np.empty((len(found[0]), self.dim))
        for place, part in zip(self.places, found, strict=True):
            answer[:, place.begin : place.end] = part.detach().reshape(peers, -1).numpy()
        return answer

    def _through(self, held: list[Tensor], inputs: Tensor) -> Tensor:
        """The outputs of a flat batch, with the weights of each peer for its own records."""
        assert self._batched is not None
        for twin in self._twins:
            twin.held = {name: held[place] for name, place in twin.places.items()}
        found: Tensor = self._batched(inputs.flatten(0, 1))
        return found

    def _functional(self, held: list[Tensor], inputs: Tensor) -> Tensor:
        named = {p.name: t for p, t in zip(self.places, held, strict=True)}
        found: Tensor = functional_call(self.module, named, (inputs,))
        return found

    def _weighted(self, held: list[Tensor], x: Tensor, y: Tensor, weights: Tensor) -> Tensor:
        return (self.loss(self._functional(held, x), y) * weights).sum()

    def _of_one(self, held: list[Tensor], x: Tensor, y: Tensor) -> Tensor:
        return self.loss(self._functional(held, x[None]), y[None])[0]

    def _terms_one_by_one(self, held: list[Tensor], batch: Batch) -> list[Term]:
        """By vectorized differentiation; records are differentiated as batches of one."""
        of_records = vmap(grad(self._of_one), in_dims=(None, 0, 0))
        if len(held[0]) == 1:
            one = [t[0] for t in held]
            found = of_records(one, batch.inputs.flatten(0, 1), batch.targets.flatten())
            return [Stored(g.flatten(1), k) for k, g in enumerate(found)]
        found = vmap(of_records)(held, batch.inputs, batch.targets)
        return [Stored(g.flatten(0, 1).flatten(1), k) for k, g in enumerate(found)]

    def _try_twins(self) -> None:
        """Replace layers by their twins, where all weights are in such layers and each is asked
        once; on a few public rows both ways must say the same, outputs and gradients."""
        batched, twins = _with_twins(copy.deepcopy(self.module))
        if batched is None:
            return
        rows = public_rows(3, self.shape).to(self.dtype)
        self._batched, self._twins = batched, twins
        try:
            with torch.no_grad():
                expected = self.module(rows)
                found = self._through(self._tensors(self.start[None]), rows[None])
            once = all(twin.calls == 1 for twin in twins)
            alike = torch.allclose(found, expected, rtol=1e-4, atol=1e-5)
            taken = self._count_numbers(rows) if once and alike else None
            if taken is not None and not all(self._records_told_apart(count) for count in (3, 5)):
                taken = None
        except Exception:  # whatever a stranger's module raises: it may be asked without twins
            taken = None
        if taken is None:
            self._batched, self._twins = None, []
        else:
            self.numbers = taken

    def _records_told_apart(self, count: int) -> bool:
        """Whether row j of what twins tell is the gradient of record j as a batch of one. It is not
        where a layer sees positions, or records in another order, on its first axis. Two counts of
        records are tried: one could be that of positions."""
        rows = public_rows(count, self.shape, seed=count).to(self.dtype)
        marks = torch.arange(count) % self.module(rows).reshape(count, -1).shape[1]
        batch = self.batch(rows.flatten(1)[None].numpy(), marks[None].numpy())
        parts: list[Tensor | None] = [None] * len(self.places)
        for term in self.record_terms(self.start[None], batch):
            for place, part in alone(term):
                parts[place] = part
        for record in range(count):
            held = [tensor[0].requires_grad_() for tensor in self._tensors(self.start[None])]
            lost = self._of_one(held, batch.inputs[0, record], batch.targets[0, record])
            wanted = torch.autograd.grad(lost, held, allow_unused=True, materialize_grads=True)
            for part, own in zip(parts, wanted, strict=True):
                if part is None or len(part) != count:
                    return False
                if (part[record] - own.flatten()).norm() > NEAR * own.norm() + NEAR**2:
                    return False
        return True

    def _count_numbers(self, rows: Tensor) -> int | None:
        """Numbers that one record takes; None where a layer's output is changed in place, so that
        its gradient could not be told."""
        for twin in self._twins:
            twin.listens = True
        self._through(self._tensors(self.start[None]), rows[None])
        taken = rows[0].numel()
        for twin in self._twins:
            assert twin.seen is not None
            assert twin.spoken is not None
            if twin.spoken._version:
                return None
            taken += twin.numbers(twin.seen, twin.spoken.detach())
            twin.listens, twin.seen, twin.spoken = False, None, None
        return taken


def public_rows(count: int, shape: tuple[int, ...], seed: int = 7) -> Tensor:
    """Made-up inputs that belong to nobody: what a module is tried on before it meets records."""
    made = torch.Generator().manual_seed(seed)
    return torch.randn(count, *shape, generator=made, dtype=torch.float64)


def _tensor(array: Array) -> Tensor:
    """A tensor on the same memory where that may be written to, else on a copy."""
    return torch.from_numpy(np.require(array, requirements=("C", "W")))


def _own_copy(module: nn.Module) -> nn.Module:
    """A copy that nobody else holds, without operations that overwrite their input."""
    try:
        found = copy.deepcopy(module).eval()
    except RuntimeError:
        raise ConfigError(
            "the network cannot be copied: it keeps tensors that were computed from its parameters "
            "(pruning, the older weight_norm); use torch.nn.utils.parametrizations"
        ) from None
    for layer in found.modules():
        if getattr(layer, "inplace", False) is True:
            layer.inplace = False
    return found


def _places(module: nn.Module) -> Iterator[ParameterPlace]:
    begin = 0
    for name, parameter in module.named_parameters():
        yield ParameterPlace(name, tuple(parameter.shape), begin, begin + parameter.numel())
        begin += parameter.numel()


def _with_twins(module: nn.Module) -> tuple[nn.Module | None, list[Twin]]:
    """The module with twins in place of all layers with weights, or None where one has no twin."""
    order = {name: k for k, (name, _) in enumerate(module.named_parameters())}
    twins: list[Twin] = []
    for name, layer in list(module.named_modules()):
        own = [n for n, _ in layer.named_parameters(recurse=False)]
        if not own:
            continue
        twin = twin_of(layer, {n: order[f"{name}.{n}" if name else n] for n in own})
        if twin is None:
            return None, []
        twins.append(twin)
        if not name:
            return twin, twins
        parent, _, last = name.rpartition(".")
        setattr(module.get_submodule(parent) if parent else module, last, twin)
    return module, twins
