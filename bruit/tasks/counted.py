"""A repr of counts: what a record of private arrays looks like when it is printed, logged or in a
traceback."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass

import numpy as np


class Counted:
    """A class whose repr says how much every field holds, and none of the values.

    A dataclass makes no repr for a class that has one of its own, so every subclass is given the
    inherited one as its own: nobody has to remember `repr=False`.
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in cls.__dict__:
            setattr(cls, "__repr__", cls.__repr__)  # noqa: B010  mypy refuses an assignment to a method

    def __repr__(self) -> str:
        names: list[str] = [field.name for field in fields(self)] if is_dataclass(self) else []
        return counted(type(self).__name__, {name: getattr(self, name, None) for name in names})


def counted(name: str, held: Mapping[str, object]) -> str:
    """Fields and how much each holds, in one line."""
    return f"{name}({', '.join(f'{key}={how_much(value)}' for key, value in held.items())})"


def how_much(value: object) -> str:
    """The shape of an array, the length of a container, a number or a short text as it is, else the
    type."""
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, Counted):
        return repr(value)
    if isinstance(value, Mapping | Sequence | Set):
        return f"{len(value)} items"
    return f"a {type(value).__name__}"
