"""Examples in hand as one table: a name or a file, arrays, tensors, or a Dataset of torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bruit.errors import ConfigError
from bruit.tasks.data.agreed_columns import AgreedColumns
from bruit.tasks.data.choice import Choice
from bruit.tasks.data.public import Agreed
from bruit.tasks.data.sources import load
from bruit.tasks.data.table import (
    Table,
    agreed_codes,
    check_labels,
    choose,
    make_table,
    number_owners,
)

Examples = str | tuple[Any, ...] | Any


def table_of(
    data: Examples,
    label: str | None,
    owner: str | None,
    agreed: Agreed,
    choice: Choice,
    columns: AgreedColumns | None,
) -> tuple[Table, tuple[int, ...]]:
    """The table, and the shape of one input where it is known: () for rows of columns."""
    if isinstance(data, str | Path) or hasattr(data, "columns"):
        return load(data, label, owner, agreed, choice, columns=columns), ()
    if label is not None or owner is not None or columns is not None:
        raise ConfigError(
            "arrays and Datasets have no columns with names; leave label, owner and columns_file out"
        )
    inputs, targets, owners = _arrays(data)
    flat = inputs.reshape(len(inputs), -1)
    label_names: tuple[str, ...] = ()
    if agreed.classes:
        marks = [f"{one:g}" for one in targets.tolist()]
        targets, label_names = agreed_codes("arrays", marks, agreed.classes)
    check_labels("arrays", targets, bool(agreed.classes))
    names = tuple(f"x{k}" for k in range(flat.shape[1]))
    numbered, owner_names = (None, ()) if owners is None else number_owners(owners)
    table = make_table(
        "arrays",
        flat,
        targets,
        numbered,
        feature_names=names,
        label_names=label_names,
        owner_names=owner_names,
        classes_from="agreed" if agreed.classes else "private rows",
    )
    return choose(table, choice), tuple(inputs.shape[1:]) if inputs.ndim > 2 else ()


def _arrays(data: Any) -> tuple[Any, Any, tuple[str, ...] | None]:
    """Inputs, targets and owners as arrays of numbers."""
    if isinstance(data, tuple | list) and len(data) in (2, 3):
        inputs, targets = numbers(data[0], "inputs"), numbers(data[1], "targets")
        owners = tuple(str(one) for one in np.asarray(data[2])) if len(data) == 3 else None
    elif hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        inputs, targets, owners = *_of_dataset(data), None
    else:
        raise ConfigError(
            "data is a name, a path, a data frame, a pair (inputs, targets) of arrays or tensors, or a Dataset of "
            f"such pairs with a length, found {type(data).__name__}"
        )
    if inputs.ndim < 2 or targets.shape != inputs.shape[:1] or not len(targets):
        raise ConfigError(
            f"inputs are {inputs.shape} and targets {targets.shape}; give one input and one target "
            "a record"
        )
    for what, found in (("inputs", inputs), ("targets", targets)):
        bad = np.flatnonzero(~np.isfinite(found.reshape(len(found), -1)).all(axis=1))
        if len(bad):
            raise ConfigError(f"the {what} of record {bad[0]} hold a number that is not finite")
    return inputs, targets, owners


def _of_dataset(data: Any) -> tuple[Any, Any]:
    pairs: list[Any] = []
    for k in range(len(data)):
        pair = data[k]
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise ConfigError(
                f"item {k} of the Dataset is a {type(pair).__name__}; give (input, target) pairs"
            )
        pairs.append(pair)
    if not pairs:
        raise ConfigError("the Dataset is empty; give at least one record for every peer")
    inputs = [numbers(one, "inputs") for one, _ in pairs]
    shapes = {one.shape for one in inputs}
    if len(shapes) != 1:
        raise ConfigError(
            f"inputs of the Dataset have different shapes, {' and '.join(map(str, sorted(shapes)[:2]))}; "
            "make them equal"
        )
    targets = [float(numbers(one, "targets")) for _, one in pairs]
    return np.stack(inputs), np.array(targets)


def numbers(found: Any, what: str) -> Any:
    """An array of float64 from an array or a tensor; another device or type is refused."""
    device = getattr(found, "device", None)
    if device is not None and str(getattr(device, "type", "cpu")) != "cpu":
        raise ConfigError(f"the {what} are on the device {device}; give them on the CPU: .cpu()")
    if hasattr(found, "detach"):
        found = found.detach()
        if str(found.dtype) == "torch.bfloat16":
            raise ConfigError(f"the {what} are of type bfloat16; convert them: .double()")
    array = np.asarray(found)
    if array.dtype.kind not in "buif":
        raise ConfigError(f"the {what} are of type {array.dtype}; they must be real numbers")
    return array.astype(np.float64)
