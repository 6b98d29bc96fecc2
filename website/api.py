"""The pages of the API: every public name of `bruit`, by kind, from its docstring."""

from __future__ import annotations

import inspect
from functools import cache
from types import ModuleType
from typing import Any

import bruit
from bruit import errors
from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.schedules.schedule import Schedule
from bruit.mechanisms.mechanism import Mechanism
from bruit.runs.engines.engine import Engine

KINDS = {
    "runs": ("Runs", "Run an algorithm, keep what happened, ask it, run it again."),
    "algorithms": (
        "Algorithms",
        "What peers do. Each has [a page](../algorithms/index.md) as well.",
    ),
    "mechanisms": ("Mechanisms", "How something is released."),
    "schedules": ("Schedules", "Who speaks when."),
    "engines": ("Engines", "What runs an algorithm."),
    "errors": (
        "Errors",
        "What can go wrong. [Exit codes and errors](../errors/index.md) say what to do.",
    ),
}
MODULES = {
    "graphs": "Graphs",
    "tasks": "Tasks",
    "personal": "Personalized models",
    "on": "Places: this process, others, a cluster",
    "sklearn": "Estimators for scikit-learn",
    "testing": "Checks for what you add",
}


@cache
def pages() -> dict[str, tuple[str, str]]:
    """Place of each page, its title and its text."""
    found = {}
    for kind, (title, about) in KINDS.items():
        names = [
            f"bruit.{name}" for name in sorted(bruit.__all__, key=_order) if _kind(name) == kind
        ]
        names += _other_errors() if kind == "errors" else []
        found[_place(kind)] = (title, _page(title, about, names))
    for module, title in MODULES.items():
        found[_place(module)] = (title, f"# {title}\n\n::: bruit.{module}\n")
    return found


def page_of(name: str) -> str | None:
    """The page that tells about `br.NAME`."""
    if name in MODULES:
        return _place(name)
    kind = _kind(name) if name in bruit.__all__ else None
    return _place(kind) if kind else None


def _place(kind: str) -> str:
    return f"reference/api/{kind}.md"


def _order(name: str) -> tuple[bool, str]:
    """Functions first: one begins with them."""
    return name[0].isupper(), name


def _kind(name: str) -> str | None:
    thing: Any = getattr(bruit, name)
    if isinstance(thing, ModuleType):
        return None
    bases = {
        "algorithms": Algorithm,
        "mechanisms": Mechanism,
        "schedules": Schedule,
        "engines": Engine,
        "errors": Exception,
    }
    if inspect.isclass(thing):
        return next((kind for kind, base in bases.items() if issubclass(thing, base)), "runs")
    return "algorithms" if thing.__module__.startswith("bruit.algorithms.") else "runs"


def _other_errors() -> list[str]:
    """Those that programs seldom catch, and that are no public names of `bruit`."""
    return [
        f"bruit.errors.{name}"
        for name, thing in vars(errors).items()
        if inspect.isclass(thing)
        and issubclass(thing, errors.BruitError)
        and name not in bruit.__all__
    ]


def _page(title: str, about: str, names: list[str]) -> str:
    entries = "\n\n".join(f"::: {name}" for name in names)
    return f"# {title}\n\n{about}\n\n{entries}\n"
