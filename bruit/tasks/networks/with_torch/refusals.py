"""What is refused of a module and a loss before they meet records, each in one sentence.

A record's gradient must be a function of that record, the model and public things (silo:SILO-1):
layers that look at several records at once, keep something of them, or draw, are refused by name;
what has no name is tried on made-up rows.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import vmap

from bruit.errors import ConfigError
from bruit.how_many import how_many
from bruit.tasks.networks.with_torch.network import DTYPES, PeerNetwork, public_rows

ROWS = 6
DECIDED = ("data-dependent control flow", ".item()")  # what torch says of branches by values
PARTS_OF_MEMORY = 4  # models, gradients, messages and one more, of all peers at once


def refuse_module(module: nn.Module) -> None:
    """Layers and parameters that cannot be learned from records one by one."""
    for name, layer in module.named_modules():
        _refuse_layer(f"layer {name or 'the module itself'} ({type(layer).__name__})", layer)
    parameters = list(module.named_parameters(remove_duplicate=False))
    if not parameters:
        raise ConfigError("the network has no parameters, so nothing can be learned")
    owners: dict[int, str] = {}
    for name, parameter in parameters:
        if id(parameter) in owners:
            raise ConfigError(
                f"the parameters {owners[id(parameter)]} and {name} are one tensor, and a model is "
                "one number a place; give each layer its own"
            )
        owners[id(parameter)] = name
        _refuse_parameter(name, parameter)


def _refuse_layer(where: str, layer: nn.Module) -> None:
    if isinstance(layer, nn.modules.batchnorm._BatchNorm):
        raise ConfigError(
            f"{where} takes statistics over a batch, so that a record's gradient depends on other "
            "records; use GroupNorm or LayerNorm"
        )
    if isinstance(layer, nn.modules.instancenorm._InstanceNorm) and layer.track_running_stats:
        raise ConfigError(
            f"{where} keeps running statistics of records; use track_running_stats=False or GroupNorm"
        )
    if isinstance(layer, nn.modules.dropout._DropoutNd) and layer.p > 0:
        raise ConfigError(
            f"{where} draws at random in every pass, and draws of a run have addresses; leave it "
            "out, and use l2"
        )
    if isinstance(layer, nn.RNNBase):
        raise ConfigError(
            f"{where} carries a state from step to step that cannot be differentiated for all peers "
            "at once; use convolutions, attention, or cells called one by one"
        )


def _refuse_parameter(name: str, parameter: Tensor) -> None:
    if isinstance(parameter, nn.parameter.UninitializedParameter):
        raise ConfigError(
            f"the parameter {name} has no size before its first input (a lazy layer); say the sizes"
        )
    if parameter.device.type != "cpu":
        raise ConfigError(
            f"the parameter {name} is on the device {parameter.device}; networks are learned on the "
            "CPU: call .cpu()"
        )
    if parameter.dtype not in DTYPES.values():
        raise ConfigError(
            f"the parameter {name} is of type {str(parameter.dtype).removeprefix('torch.')}; use "
            f"{' or '.join(DTYPES)}"
        )
    if not parameter.requires_grad:
        raise ConfigError(
            f"the parameter {name} is frozen (requires_grad=False), and every number of a model is "
            "learned; register it as a buffer"
        )
    if not bool(torch.isfinite(parameter).all()):
        raise ConfigError(f"the parameter {name} holds numbers that are not finite")


def refuse_size(numbers: int, peers: int) -> None:
    """A model of so many numbers, for so many peers, must fit into memory."""
    needed = 8 * numbers * peers * PARTS_OF_MEMORY
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise ConfigError(
            f"models of {numbers} numbers for {how_many(peers, 'peer')} need about {needed} bytes "
            f"({needed / 2**30:.1f} GB), and this machine has {there} ({there / 2**30:.1f} GB); use "
            "a smaller network or fewer peers"
        )


def refuse_behavior(
    module: nn.Module,
    loss: Callable[[Any, Any], Any],
    shape: tuple[int, ...],
    outputs: int,
    classes: bool,
    dtype: str,
) -> None:
    """What shows when made-up rows go through: a wrong shape, chance, memory, mixed records."""
    kind = DTYPES[dtype]
    rows = public_rows(ROWS, shape).to(kind)
    targets = torch.arange(ROWS) % outputs if classes else torch.linspace(-1, 1, ROWS, dtype=kind)
    before, given = [buffer.clone() for buffer in module.buffers()], rows.clone()
    first = _tried(module, rows)
    _refuse_changed(rows, given)
    if first.shape != (ROWS, outputs) and not (outputs == 1 and first.shape == (ROWS,)):
        wanted = f"({ROWS}, {outputs})" + (", one score a class" if classes else ", one number")
        raise ConfigError(
            f"the network makes {tuple(first.shape)} of {ROWS} records, and the task needs {wanted}"
        )
    if not torch.equal(first, _tried(module, rows)):
        raise ConfigError(
            "two passes of the same rows through the network differ: a layer draws at random or is "
            "not deterministic; leave it out"
        )
    if any(not torch.equal(old, new) for old, new in zip(before, module.buffers(), strict=True)):
        raise ConfigError(
            "a pass through the network changes its buffers, so it remembers records; use layers "
            "without running statistics"
        )
    _refuse_branches(module, "the network", rows)
    _refuse_mixing(module, rows)
    _refuse_loss(loss, first, targets)


def refuse_slow_way(network: PeerNetwork) -> None:
    """A network without twins must be one that torch can vectorize."""
    if network.batched:
        return
    rows = public_rows(2 * ROWS, network.shape).reshape(2, ROWS, -1).numpy()
    batch = network.batch(rows, np.zeros((2, ROWS)))
    models = np.tile(network.start, (2, 1))
    try:
        network.gradients(models, batch, np.ones((2, ROWS)))
        network.record_terms(models, batch)
    except Exception as error:  # whatever a stranger's module raises
        said = str(error).split(". ")[0] if str(error) else type(error).__name__
        raise ConfigError(
            f"the network cannot be differentiated for many records at once ({said}); use operations "
            "of torch only, and torch.where in place of masks as indices"
        ) from None


def _tried(module: nn.Module, rows: Tensor) -> Tensor:
    try:
        with torch.no_grad():
            found = module(rows)
    except Exception as error:  # whatever a stranger's module raises
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(
            f"the network does not take rows of shape {tuple(rows.shape[1:])}: {said}; say shape=, or "
            "change its first layer"
        ) from None
    if not isinstance(found, Tensor):
        raise ConfigError(f"the network returns a {type(found).__name__}, and not one tensor")
    return found


def _refuse_changed(rows: Tensor, before: Tensor) -> None:
    if not torch.equal(rows, before):
        raise ConfigError(
            "a pass through the network overwrites its input; work on a copy: x = x.clone()"
        )


def _refuse_branches(asked: Callable[..., Any], what: str, *rows: Tensor) -> None:
    """What values decide, one record would decide for its whole batch: `if x.max() > 1`, or an
    assertion."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of operations that are slow this way
            vmap(lambda *one: asked(*(part[None] for part in one)))(*rows)
    except RuntimeError as error:
        if any(sign in str(error) for sign in DECIDED):
            raise ConfigError(
                f"{what} decides by the values of a whole batch what is computed (an if, an "
                "assertion, .item()), so that one record decides for others; use torch.where"
            ) from None
    except Exception:  # what cannot be vectorized may still be batched by twins
        return


def _refuse_mixing(module: nn.Module, rows: Tensor) -> None:
    """No row of the output may depend on another row of the input."""
    asked = rows.clone().requires_grad_()
    found = module(asked)
    for row in range(ROWS):
        others = torch.arange(ROWS) != row
        moved = rows.clone()
        moved[others] = -3.0 * rows[others].flip(0)
        if not torch.allclose(found[row], _tried(module, moved)[row], rtol=1e-6) or _reaches(
            found[row].sum(), asked, others
        ):
            raise ConfigError(
                "the output of one record depends on other records of the batch; use layers that "
                "treat records one by one (the first axis is that of records)"
            )


def _reaches(number: Tensor, asked: Tensor, others: Tensor) -> bool:
    """Whether the derivative of a number in other rows is not zero."""
    if not number.requires_grad:
        return False
    try:
        slopes = torch.autograd.grad(number, asked, allow_unused=True, retain_graph=True)[0]
    except RuntimeError as error:
        said = str(error).split(":")[0]
        raise ConfigError(f"the network cannot be differentiated: {said}") from None
    return slopes is not None and bool((slopes[others] != 0).any())


def _refuse_loss(loss: Callable[[Any, Any], Any], outputs: Tensor, targets: Tensor) -> None:
    asked = outputs.clone().requires_grad_()
    try:
        found = loss(asked, targets)
    except Exception as error:  # whatever a stranger's loss raises
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"the loss cannot be computed of outputs and targets: {said}") from None
    if not isinstance(found, Tensor) or found.shape != (ROWS,):
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ConfigError(
            f"the loss gives {shape} for {ROWS} records, and must give one number a record: an "
            "average mixes them; use reduction='none'"
        )
    if not bool(torch.isfinite(found).all()):
        raise ConfigError("the loss of made-up records is not finite at the starting weights")
    _refuse_branches(loss, "the loss", outputs, targets)
    for row in range(ROWS):
        others = torch.arange(ROWS) != row
        outputs_there, targets_there = outputs.clone(), targets.clone()
        outputs_there[others] = -3.0 * outputs[others].flip(0)
        targets_there[others] = targets[row]
        some = slice(row, row + 1)
        elsewhere = (loss(outputs_there, targets_there)[row], loss(outputs[some], targets[some])[0])
        same = all(torch.allclose(found[row], one, rtol=1e-4, atol=1e-6) for one in elsewhere)
        if not same or _reaches(found[row], asked, others):
            raise ConfigError(
                "the loss of one record depends on other records, or on how many there are; it must "
                "give one number a record, from that record alone"
            )
