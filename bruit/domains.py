"""Where the numbers of a record may lie: asked when it is made, refused in one sentence that names
the field.

    positive       0 < x <= 1e100        counts    whole numbers 1, 2, .., 2^32
    nonnegative    0 <= x <= 1e100       whole     whole numbers 0, 1, .., 2^32
    fraction       0 < x <= 1            chance    0 <= x <= 1            below_one    0 <= x < 1

A bound such as x <= 2/beta says nothing of x = -8, nor of what is no number; so every numeric field
of an algorithm, a schedule and a theorem states its domain here, both sides of it, in
`__post_init__`. None is a field that was left out; of several numbers every one is asked. Beyond
the upper ends sums of squares and addresses of noise overflow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any

from bruit.errors import BruitError, ConfigError

LARGEST, MOST = 1e100, 2**32


def positive(record: object, *fields: str, error: type[BruitError] = ConfigError) -> None:
    """Numbers above 0: steps, radii, couplings."""
    _ask(
        record,
        fields,
        lambda x: _is_number(x) and 0 < x <= LARGEST,
        f"> 0 and up to {LARGEST:g}",
        error,
    )


def nonnegative(record: object, *fields: str, error: type[BruitError] = ConfigError) -> None:
    """Numbers from 0 on: weights of penalties, exponents, ratios."""
    _ask(
        record,
        fields,
        lambda x: _is_number(x) and 0 <= x <= LARGEST,
        f">= 0 and up to {LARGEST:g}",
        error,
    )


def fraction(record: object, *fields: str, error: type[BruitError] = ConfigError) -> None:
    """Numbers in (0, 1]: parts that must not be nothing."""
    _ask(record, fields, lambda x: _is_number(x) and 0 < x <= 1, "in (0, 1]", error)


def chance(record: object, *fields: str, error: type[BruitError] = ConfigError) -> None:
    """Numbers in [0, 1]."""
    _ask(record, fields, lambda x: _is_number(x) and 0 <= x <= 1, "in [0, 1]", error)


def below_one(record: object, *fields: str, error: type[BruitError] = ConfigError) -> None:
    """Numbers in [0, 1): what is kept of a velocity."""
    _ask(record, fields, lambda x: _is_number(x) and 0 <= x < 1, "in [0, 1)", error)


def counts(record: object, *fields: str, error: type[BruitError] = ConfigError) -> None:
    """Whole numbers from 1 on: batches, caps, repetitions."""
    _ask(
        record,
        fields,
        lambda x: _is_whole(x) and 1 <= x <= MOST,
        ">= 1, a whole number up to 2^32",
        error,
    )


def whole(record: object, *fields: str, error: type[BruitError] = ConfigError) -> None:
    """Whole numbers from 0 on: numbers of peers, hops left out."""
    _ask(
        record,
        fields,
        lambda x: _is_whole(x) and 0 <= x <= MOST,
        ">= 0, a whole number up to 2^32",
        error,
    )


def _ask(
    record: object,
    fields: tuple[str, ...],
    inside: Callable[[Any], bool],
    domain: str,
    error: type[BruitError],
) -> None:
    for field in fields:
        value = getattr(record, field)
        for place, one in _entries(value):
            if not inside(one):
                raise error(
                    f"{_owner(record)} needs {field} {domain}, found {field}{place} = {one!r}"
                )


def _entries(value: object) -> Iterable[tuple[str, object]]:
    return () if value is None else _inside(value)


def _inside(value: object) -> Iterable[tuple[str, object]]:
    """All that a value holds, with its place: lists may hold lists."""
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [
            (f"[{place}]{inner}", found)
            for place, one in enumerate(value)
            for inner, found in _inside(one)
        ]
    return (("", value),)


def _owner(record: object) -> str:
    name = getattr(record, "name", None)
    return (
        str(name())
        if callable(name)
        else re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(record).__name__).lower()
    )


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral)
