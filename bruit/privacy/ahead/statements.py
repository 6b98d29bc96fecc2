"""Statements that anybody may ask for by name: about a protocol known by its numbers alone, no run.

A file of this room, or of `formulas`, lists them in `ASK`, from a name to a function that returns a
guarantee; they are found by looking. What a statement must be told is read off its function: numbers,
words, lists of numbers, a graph by its name, and the fields of small records as if they were keys of
their own. Nothing is guessed: a key that is missing, unknown or of another kind is refused.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs import graph as named_graph
from bruit.privacy.guarantee import Guarantee

ROOMS = ("bruit.privacy.ahead", "bruit.privacy.formulas")
WORDS = {int: "a whole number", float: "a finite number", bool: "true or false", str: "a word"}
MISFIT = object()


@dataclass(frozen=True)
class Key:
    """One thing a statement is told: its kind, whether it may be left out, and of which record."""

    kind: Any
    optional: bool
    record: str | None = None


def statements() -> dict[str, Callable[..., Guarantee]]:
    """All statements, by name."""
    found: dict[str, Callable[..., Guarantee]] = {}
    for room in ROOMS:
        for module in pkgutil.iter_modules(importlib.import_module(room).__path__, f"{room}."):
            found.update(getattr(importlib.import_module(module.name), "ASK", {}))
    return dict(sorted(found.items()))


def statement(name: str) -> Callable[..., Guarantee]:
    """The statement of that name."""
    known = statements()
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ConfigError(
            f"there is no statement {name!r}; {hint}`bruit list ahead` shows all {len(known)}"
        )
    return known[name]


def keys(make: Callable[..., Guarantee]) -> dict[str, Key]:
    """What the statement must be told, and what it may be told."""
    hints, found = get_type_hints(make), {}
    for name, part in inspect.signature(make).parameters.items():
        optional = part.default is not inspect.Parameter.empty
        if dataclasses.is_dataclass(hints[name]) and not issubclass(hints[name], Graph):
            inner = get_type_hints(hints[name])
            for field in dataclasses.fields(hints[name]):
                spare = optional or field.default is not dataclasses.MISSING
                found[field.name] = Key(inner[field.name], spare, name)
        else:
            found[name] = Key(hints[name], optional)
    return found


def ask(name: str, given: Mapping[str, object]) -> Guarantee:
    """The statement of that name for these numbers.

    >>> said = ask("neighborhood-sums", {"graph": "ring:8", "steps": 8, "of": 4, "seen_by": 0,
    ...                                  "noise_multiplier": 1.0})
    >>> said.loss, said.spec, said.status
    (1.0, 'gossip:MUF-X4', 'ideal')
    """
    make = statement(name)
    known = keys(make)
    for key in given:
        if key not in known:
            raise ConfigError(f"{name} has no key {key!r}; {_settings_in_words(known)}")
    missing = [key for key, about in known.items() if not about.optional and key not in given]
    if missing:
        raise ConfigError(f"{name} is not told {', '.join(missing)}; {_settings_in_words(known)}")
    values = {key: _read(name, key, known[key].kind, value) for key, value in given.items()}
    return make(**_arguments(make, known, values))


def _settings_in_words(known: Mapping[str, Key]) -> str:
    """What the statement needs and may be told, in words."""
    needed, spare = (
        [key for key in known if known[key].optional is side] for side in (False, True)
    )
    return f"it needs {', '.join(needed)}" + (
        f"; it may be told {', '.join(spare)}" if spare else ""
    )


def _arguments(
    make: Callable[..., Guarantee], known: Mapping[str, Key], values: Mapping[str, object]
) -> dict[str, object]:
    """The arguments of the function: fields of one record are put together again."""
    hints = get_type_hints(make)
    parts: dict[str, dict[str, object]] = {}
    plain = {}
    for key, value in values.items():
        record = known[key].record
        if record is None:
            plain[key] = value
        else:
            parts.setdefault(record, {})[key] = value
    return {**plain, **{record: hints[record](**fields) for record, fields in parts.items()}}


def _read(name: str, key: str, kind: Any, value: object) -> Any:
    """The value as the function wants it."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    for each in kinds:
        found = _fitted(each, value)
        if found is not MISFIT:
            return found
    wanted = ", or ".join(dict.fromkeys(_in_words(each) for each in kinds if each is not NoneType))
    raise ConfigError(f"{name}: {key} is {wanted}, found {value!r}")


def _fitted(kind: Any, value: object) -> Any:
    """The value if it is of this kind, else MISFIT."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind in (bool, str, NoneType):
        return value if isinstance(value, kind) else MISFIT
    if kind is int:
        return value if number and isinstance(value, int) else MISFIT
    if kind is float:
        return float(value) if number and math.isfinite(value) else MISFIT  # type: ignore[arg-type]
    if get_origin(kind) is Literal:
        return value if value in get_args(kind) else MISFIT
    if kind in (Graph, GraphSequence):
        found = named_graph(value) if isinstance(value, str) else value
        return found if isinstance(found, kind) else MISFIT
    if not isinstance(value, list | tuple):
        return MISFIT
    if get_origin(kind) is not Sequence:
        return MISFIT
    parts = [_fitted(get_args(kind)[0], part) for part in value]
    return MISFIT if any(part is MISFIT for part in parts) else tuple(parts)


def _in_words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    if kind in (Graph, GraphSequence):
        return "the name of a graph"
    if get_origin(kind) in (Sequence, np.ndarray):
        return "a list of numbers like [1, 2]"
    return WORDS.get(kind, str(kind))
