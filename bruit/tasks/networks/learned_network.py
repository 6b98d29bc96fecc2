"""What the numbers of a learned network mean: names and shapes of its parameters, and how a module is
made that holds them.

Names, shapes and numbers are plain data: a saved run opens without torch, and nothing is unpickled.
A module is code. It is made from a built-in name, from the module that the task was given (while the
run is in memory), or by a factory that the reader hands over: a file of somebody else's never makes
this machine import something.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.tasks.networks.library import need_torch

BUILT_IN = ("mlp:", "cnn:")
PREDICTED = ("classes", "numbers")


@dataclass(frozen=True, eq=False)
class LearnedNetwork:
    """`about` is what `Torch.architecture` tells; `prototype` the module, where it is at hand."""

    about: Mapping[str, Any]
    prototype: Any = field(default=None, repr=False)

    @property
    def dim(self) -> int:
        return max(int(one["end"]) for one in self.about["parameters"])

    @property
    def classifies(self) -> bool:
        return bool(self.about["predicts"] == "classes")

    def arrays(self, numbers: Array) -> dict[str, Array]:
        """The parameters by name, as arrays; needs no torch."""
        return {
            str(one["name"]): numbers[one["begin"] : one["end"]].reshape(one["shape"])
            for one in self.about["parameters"]
        }

    def names(self) -> list[str]:
        """A name for every number of a model: that of its parameter, and its place in it."""
        return [
            f"{one['name']}[{', '.join(map(str, place))}]"
            for one in self.about["parameters"]
            for place in np.ndindex(*one["shape"])
        ]

    def state_dict(self, numbers: Array) -> dict[str, Any]:
        """The parameters by name, as tensors of the type that the network computes in."""
        need_torch()
        import torch

        kind = getattr(torch, str(self.about["dtype"]))
        return {
            name: torch.tensor(np.array(part)).to(kind)
            for name, part in self.arrays(numbers).items()
        }

    def module(self, numbers: Array, factory: Any = None) -> Any:
        """A new `torch.nn.Module` with these weights, ready to be asked. `factory`: the module, or
        what makes it, where the name of the network is no built-in one."""
        need_torch()
        import copy

        import torch

        from bruit.tasks.networks.with_torch.builders import made

        given = factory if factory is not None else self.prototype
        name = self.about["module"]
        if given is None and str(name).startswith(BUILT_IN):
            given = name
        if given is None:
            named = "a module that was given in Python" if name is None else f"{name!r}"
            raise ConfigError(
                f"the network of this model is {named}, which is code and in no file: hand over the "
                "module or its factory, model.module(factory) or `bruit predict --module "
                "package.mod:factory`"
            )
        asked = (given, tuple(self.about["shape"]), int(self.about["outputs"]), 0)
        if isinstance(given, str) and given.startswith(
            BUILT_IN
        ):  # sizes of a file are compared before anything so large is made
            with torch.device("meta"):
                self._refuse_other(made(*asked))
        found = copy.deepcopy(made(*asked))
        self._refuse_other(found)
        state = self.state_dict(numbers)
        found.to(next(iter(state.values())).dtype).load_state_dict(state, strict=False)
        return found.eval()

    def _refuse_other(self, module: Any) -> None:
        wanted = {one["name"]: tuple(one["shape"]) for one in self.about["parameters"]}
        has = {name: tuple(p.shape) for name, p in module.named_parameters()}
        if has != wanted:
            odd = next(iter(dict(set(wanted.items()) ^ set(has.items()))))
            raise ConfigError(
                f"this module is not the one that was learned: the parameter {odd} is "
                f"{has.get(odd, 'not there')}, and the model has {wanted.get(odd, 'none')}"
            )

    def scores(self, numbers: Array, rows: Array, factory: Any = None) -> Array:
        """What the network says of prepared rows  # (r, outputs)."""
        found = self.module(numbers, factory)
        import torch

        kind = getattr(torch, str(self.about["dtype"]))
        with torch.no_grad():
            inputs = torch.tensor(rows).to(kind).reshape(len(rows), *self.about["shape"])
            said = found(inputs).to(torch.float64).numpy()
        return np.asarray(said).reshape(len(rows), -1)


def network_from(content: Any, numbers: int) -> LearnedNetwork:
    """What a file says of a network; raises KeyError, TypeError or ValueError for anything else."""
    about: dict[str, Any] = {
        "module": None if content["module"] is None else str(content["module"]),
        "text": str(content["text"]),
        "shape": [int(size) for size in content["shape"]],
        "outputs": int(content["outputs"]),
        "dtype": str(content["dtype"]),
        "predicts": str(content["predicts"]),
        "parameters": [
            {
                "name": str(one["name"]),
                "shape": [int(size) for size in one["shape"]],
                "begin": int(one["begin"]),
                "end": int(one["end"]),
            }
            for one in content["parameters"]
        ],
    }
    at = 0
    for one in about["parameters"]:
        if one["begin"] != at or one["end"] - at != prod(one["shape"]):
            raise ValueError(f"the parameter {one['name']} has no place in a row of {numbers}")
        at = one["end"]
    if at != numbers:
        raise ValueError(f"there are {numbers} numbers, and parameters for {at}")
    if about["dtype"] not in ("float64", "float32") or about["predicts"] not in PREDICTED:
        raise ValueError(f"{about['predicts']!r} of {about['dtype']!r} are not predicted")
    if not about["shape"] or min(*about["shape"], about["outputs"]) < 1:
        raise ValueError(f"{about['outputs']} outputs of inputs of shape {about['shape']}")
    return LearnedNetwork(about)
