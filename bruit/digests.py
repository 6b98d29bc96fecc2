"""Digests: one short, keyed name for any content, so that what differs in a single bit has another
name.

    digest(key, parts) = blake2b(parts written with their types and lengths, keyed), 32 bytes

Without the key nobody can test a guess of private records against a digest; with it one can, so a
digest of records is never written anywhere. Equal numbers have equal digests whether they are whole
or floats, as do lists and tuples: a description read back from a file is the one that was written.
Nor does it matter in which file of this package a class lies: moving one changes no draw.
"""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any, cast

import numpy as np
from scipy.sparse import issparse

from bruit.errors import ConfigError

ASIDE = {"digest": False}
"""Metadata of a field that only describes the others, and is no part of a digest: other words, the
same noise."""

IF_SET = {"digest": "if set"}
"""Metadata of a field that came later: where it is None, the digest is what it was without it."""


def digest(key: bytes, *parts: Any) -> bytes:
    """32 bytes that name the parts, in their order."""
    into = hashlib.blake2b(key=key, digest_size=32)
    for part in parts:
        _feed(into, part)
    return into.digest()


def digest_fields(key: bytes, record: Any) -> bytes:
    """The digest of a record by its own fields: those of a dataclass, else all its attributes."""
    into = hashlib.blake2b(key=key, digest_size=32)
    _feed_record(into, record)
    return into.digest()


def _write(into: Any, tag: str, data: bytes | memoryview) -> None:
    into.update(f"{tag} {len(data)} ".encode())
    into.update(data)


def _feed(into: Any, value: Any) -> None:
    if value is None or isinstance(value, bool | np.bool_):
        _write(into, "word", str(value).encode())
    elif isinstance(value, int | np.integer):
        _write(into, "number", str(int(value)).encode())
    elif isinstance(value, float | np.floating):
        number = float(value)
        _write(into, "number", (str(int(number)) if number.is_integer() else number.hex()).encode())
    elif isinstance(value, str | PurePath):
        _write(into, "text", str(value).encode())
    elif isinstance(value, bytes):
        _write(into, "bytes", value)
    elif isinstance(value, np.ndarray):
        _feed_array(into, value)
    elif isinstance(value, Mapping):
        _write(into, "mapping", str(len(value)).encode())
        for name in sorted(value, key=str):
            _feed(into, name)
            _feed(into, value[name])
    elif isinstance(value, list | tuple):
        _write(into, "row", str(len(value)).encode())
        for part in value:
            _feed(into, part)
    elif isinstance(value, set | frozenset):
        _feed(into, sorted(digest(b"", part) for part in value))
    else:
        _feed_object(into, value)


def _feed_array(into: Any, array: np.ndarray[Any, Any]) -> None:
    if array.dtype.kind == "O":
        _feed(into, [list(array.shape), array.ravel().tolist()])
        return
    _write(into, "array", f"{array.dtype.str} {array.shape}".encode())
    into.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _feed_object(into: Any, value: Any) -> None:
    if issparse(value):
        rows = cast(Any, value).tocsr()
        _feed(into, ["sparse", list(rows.shape), rows.data, rows.indices, rows.indptr])
    elif isinstance(value, Enum):
        _feed(into, str(value))
    elif isinstance(value, type):
        _feed(into, _named(value))
    elif isinstance(value, functools.partial):
        _feed(into, [value.func, list(value.args), value.keywords])
    elif isinstance(value, types.FunctionType):
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        _feed(
            into,
            [_named(value), _code(value.__code__), value.__defaults__, held],
        )
    elif isinstance(value, types.MethodType):
        _feed(into, [value.__func__, value.__self__])
    elif callable(value) and hasattr(value, "__qualname__"):
        _feed(into, _named(value))
    else:
        _feed_record(into, value)


def _named(value: Any) -> str:
    """A class or function by its name, and by its module if that is somebody else's."""
    module = str(getattr(value, "__module__", ""))
    return (
        str(value.__qualname__)
        if module.split(".")[0] == "bruit"
        else f"{module}.{value.__qualname__}"
    )


def _code(code: types.CodeType) -> list[Any]:
    """What a function does: its instructions, the names and the constants they use."""
    known = [
        _code(part) if isinstance(part, types.CodeType) else repr(part) for part in code.co_consts
    ]
    return [code.co_code, list(code.co_names), known]


def _named_by(metadata: Mapping[str, Any], record: Any, field: str) -> bool:
    """Whether the digest of a record is also of this field."""
    if metadata.get("digest") == IF_SET["digest"]:
        return getattr(record, field) is not None
    return bool(metadata.get("digest", True))


def _feed_record(into: Any, record: Any) -> None:
    kind = type(record)
    _write(into, "record", _named(kind).encode())
    if is_dataclass(record):
        held = {
            field.name: getattr(record, field.name)
            for field in fields(record)
            if not field.name.startswith("_") and _named_by(field.metadata, record, field.name)
        }
    elif hasattr(record, "__dict__"):
        held = vars(record)
    else:
        raise ConfigError(
            f"a {kind.__name__} has no digest, and noise is addressed by what it hides;"
            " give the task a digest(key) of its own, over all its records"
        )
    _feed(into, held)
