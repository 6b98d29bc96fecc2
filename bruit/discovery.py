"""What is in a folder: a new file is enrolled by being there.

A folder is looked into once, as long as its package has the same path: the files of an installed
package do not change under a process, and those who add a folder to a package are seen.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache
from types import ModuleType
from typing import TypeVar

Kind = TypeVar("Kind")


def classes(
    folder: ModuleType, of: type[Kind], without: tuple[str, ...] = ()
) -> tuple[type[Kind], ...]:
    """The classes of that kind in the files of a package and of the packages in it, but abstract
    ones and those whose names begin with an underscore, which are parts of others; files whose
    names contain one of `without` are not loaded."""
    return _classes(folder.__name__, tuple(folder.__path__), of, without)  # type: ignore[arg-type]


@cache
def _classes(
    name: str, path: tuple[str, ...], of: type[Kind], without: tuple[str, ...]
) -> tuple[type[Kind], ...]:
    return tuple(
        kind
        for file in pkgutil.walk_packages(path, f"{name}.")
        if not any(part in file.name for part in without)
        for kind in vars(importlib.import_module(file.name)).values()
        if inspect.isclass(kind) and issubclass(kind, of) and not inspect.isabstract(kind)
        if not kind.__name__.startswith("_")
    )
