"""Snapshots: a peer's memory as bytes and back, so that a journal need not keep every input for
ever.

What a machine remembers is made of numbers, texts, arrays, containers, and records (NamedTuples and
dataclasses) of this package or of the module that defines the algorithm. A tree of JSON names them,
the arrays follow as raw bytes. Nothing is executed on reading but the constructors of such records.
"""

from __future__ import annotations

import importlib
import json
import struct
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from bruit.errors import LocalProtocolError

LENGTH = struct.Struct("<Q")
PLAIN = (bool, int, float, str, type(None))
CONTAINERS: dict[str, Any] = {"list": list, "tuple": tuple, "set": set}


def freeze(value: Any) -> bytes:
    """The bytes of a memory; LocalProtocolError when something in it is none of the kinds above."""
    arrays: list[bytes] = []
    tree = json.dumps(_tree(value, arrays)).encode()
    return b"".join((LENGTH.pack(len(tree)), tree, *arrays))


def thaw(data: bytes, modules: Iterable[str] = ()) -> Any:
    """The memory that `freeze` made these bytes from; records come from this package or from
    `modules`."""
    (length,) = LENGTH.unpack_from(data)
    tree = json.loads(data[LENGTH.size : LENGTH.size + length])
    return _Reader(data, LENGTH.size + length, frozenset(modules)).value(tree)


def _tree(value: Any, arrays: list[bytes]) -> Any:
    if type(value) in PLAIN:
        return value
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fiub":
        array = np.ascontiguousarray(value)
        arrays.append(array.tobytes())
        return {"array": [array.dtype.str, list(value.shape), isinstance(value, np.generic)]}
    if type(value) is bytes:
        return {"bytes": value.hex()}
    if isinstance(value, dict):
        return {"dict": [[_tree(key, arrays), _tree(part, arrays)] for key, part in value.items()]}
    for name, kind in CONTAINERS.items():
        if type(value) is kind:
            return {name: [_tree(part, arrays) for part in value]}
    record = type(value)
    if isinstance(value, tuple) and hasattr(record, "_fields"):
        parts: list[Any] = list(value)
    elif is_dataclass(value):
        parts = [getattr(value, field.name) for field in fields(value)]
    else:
        raise LocalProtocolError(f"a memory holds a {record.__name__}, which no snapshot can keep")
    return {
        "record": [record.__module__, record.__qualname__, [_tree(part, arrays) for part in parts]]
    }


def _made(record: Any, parts: list[Any]) -> Any:
    """A record of these parts, in the order of its fields; some are given by name only, and some not
    to the constructor at all."""
    names = record._fields if issubclass(record, tuple) else fields(record)
    if len(names) != len(parts):
        raise LocalProtocolError(
            f"a snapshot holds a {record.__name__} of {len(parts)} parts where {len(names)} are due;"
            f" use the version that began the run"
        )
    if issubclass(record, tuple):
        return record(*parts)
    known = list(zip(fields(record), parts, strict=True))
    made: Any = record(**{field.name: part for field, part in known if field.init})
    for field, part in known:
        if not field.init:
            object.__setattr__(made, field.name, part)
    return made


class _Reader:
    """Reads a tree; arrays are taken from the bytes in the order in which the tree names them."""

    def __init__(self, data: bytes, at: int, modules: frozenset[str]) -> None:
        self.data, self.at, self.modules = data, at, modules

    def value(self, tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        ((name, content),) = tree.items()
        if name == "array":
            return self._array(*content)
        if name == "bytes":
            return bytes.fromhex(content)
        if name == "dict":
            return {self.value(key): self.value(part) for key, part in content}
        if name in CONTAINERS:
            return CONTAINERS[name](self.value(part) for part in content)
        module, path, parts = content
        return _made(self._class(module, path), [self.value(part) for part in parts])

    def _array(self, kind: str, shape: list[int], scalar: bool) -> Any:
        dtype = np.dtype(kind)
        count = int(np.prod(shape, dtype=np.int64))
        found = np.frombuffer(self.data, dtype, count, self.at).reshape(shape).copy()
        self.at += count * dtype.itemsize
        return found[()] if scalar else found

    def _class(self, module: str, path: str) -> Any:
        if not module.startswith("bruit.") and module not in self.modules:
            raise LocalProtocolError(
                f"a snapshot holds a record of the module {module}, which is none of this run's"
            )
        found: Any = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
        if not (isinstance(found, type) and (is_dataclass(found) or hasattr(found, "_fields"))):
            raise LocalProtocolError(f"a snapshot names {module}.{path}, which is no record")
        return found
