"""What a manifest says of a network task: what each number of a model is, and what is public."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bruit.arrays import Bools
from bruit.errors import ConfigError
from bruit.tasks.data.public import Fact, listed
from bruit.tasks.networks.observers import judging
from bruit.tasks.task import Manifest

if TYPE_CHECKING:
    from bruit.tasks.networks.network_task import Torch
    from bruit.tasks.networks.with_torch.network import ParameterPlace


def architecture_of(task: Torch) -> Manifest:
    """Names, shapes and places of parameters, and how a module is made that has them."""
    return {
        "module": task.module if isinstance(task.module, str) else None,
        "text": repr(task.network.module),
        "shape": list(task.shape),
        "outputs": task.outputs,
        "dtype": task.dtype,
        "predicts": task.predicts,
        "parameters": [
            {"name": p.name, "shape": list(p.shape), "begin": p.begin, "end": p.end}
            for p in task.network.places
        ],
    }


def described(task: Torch) -> Manifest:
    sizes = task.records.sizes
    given = "the weights that the module was given with"
    return {
        "task": "Torch",
        "peers": task.peers,
        "dim": task.dim,
        "l2": task.l2,
        "loss": task.loss if isinstance(task.loss, str) else name_of(task.loss),
        "network": architecture_of(task),
        "begins": given if _is_module(task.module) else f"drawn from the seed {task.weights}",
        "records": int(sizes.sum()),
        "records_per_peer": [int(sizes.min()), int(sizes.max())],
        "classes": list(task.records.classes) if task.classifies else [],
        "row_bound": None,
        **_public(task),
        **({"used": task.records.used} if task.records.used else {}),
        **judging(task),
        **({"local": list(task.local)} if task.local else {}),
    }


def local_numbers(local: Sequence[str], places: Sequence[ParameterPlace]) -> Bools:
    """Which numbers of a model a list of names means: parameters, or all that begin with a name
    # (d,)."""
    found = np.zeros(places[-1].end, np.bool_)
    for wanted in local:
        mine = [p for p in places if f"{p.name}.".startswith(f"{wanted}.")]
        if not mine:
            raise ConfigError(
                f"local names {wanted!r}, and no parameter is called that or begins with it; they "
                f"are {listed([p.name for p in places])}"
            )
        for place in mine:
            found[place.begin : place.end] = True
    return found


def name_of(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))


def _public(task: Torch) -> Manifest:
    manifest = task.records.manifest
    known = [*cast(list[object], manifest.get("public", []))]
    known.append(Fact("the network, its loss and its starting weights", "agreed").describe())
    if task.classifies and task.records.classes_from == "private rows":
        occur = Fact(f"the classes: {listed(task.records.classes)}", "private rows")
        known.append(occur.describe())
    return {**manifest, "public": known}


def _is_module(module: Any) -> bool:
    return hasattr(module, "named_parameters") and not isinstance(module, type)
