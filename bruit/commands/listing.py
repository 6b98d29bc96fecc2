"""What there is: algorithms, graphs, data sets, mechanisms, tasks, experiments, theorems, statements
ahead of a run."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from difflib import get_close_matches
from typing import Any

from bruit.errors import ConfigError


def first_line(thing: object) -> str:
    """The first sentence of its docstring, which may go over several lines."""
    paragraph = (inspect.getdoc(thing) or "").split("\n\n")[0]
    return " ".join(paragraph.split()).rstrip(".")


def algorithms() -> dict[str, str]:
    from bruit.algorithms.algorithm import catalog
    from bruit.algorithms.gossip.muffliato import presets

    found = {name: first_line(inspect.getmodule(kind)) for name, kind in catalog().items()}
    return {
        **found,
        **{name: f"{first_line(preset)} (preset)" for name, preset in presets().items()},
    }


def graphs() -> dict[str, str]:
    from bruit.graphs.names import families

    return families()


def data() -> dict[str, str]:
    from bruit.tasks.data.catalog import catalog

    return catalog()


def mechanisms() -> dict[str, str]:
    from bruit.mechanisms.mechanism import of_files

    return {name: first_line(kind) for name, kind in of_files().items()}


def tasks() -> dict[str, str]:
    from bruit.tasks.kinds.kind import kinds

    return {name: first_line(kind) for name, kind in kinds().items()}


def experiments() -> dict[str, str]:
    from bruit.runs.file import bundled

    return {name: path.read_text().split("\n")[0].lstrip("# ") for name, path in bundled().items()}


def theorems() -> dict[str, str]:
    """What is said of views: by which algorithm's runs, and the printed formulas that stand
    apart."""
    from bruit.algorithms.algorithm import catalog

    found: dict[str, str] = {}
    for name, kind in catalog().items():
        for theorem in kind().guarantees():
            found[f"{name} {type(theorem).__name__}"] = (
                f"{theorem.status}: {theorem.title} ({theorem.spec})"
            )
    return {**found, **_printed()}


def ahead() -> dict[str, str]:
    """Statements about protocols known by their numbers alone, and what each must be told;
    what may be left out stands in brackets."""
    from bruit.privacy.ahead.statements import keys, statements

    found = {}
    for name, make in statements().items():
        names = [f"[{key}]" if about.optional else key for key, about in keys(make).items()]
        found[name] = f"{first_line(make)}; {' '.join(names)}"
    return found


def _printed() -> dict[str, str]:
    """Functions that compute formulas as printed: no guarantees, and no part of a run."""
    import bruit.privacy.theorems as folder

    found = {}
    for module in pkgutil.iter_modules(folder.__path__):
        if module.name.startswith("published"):
            about = importlib.import_module(f"{folder.__name__}.{module.name}")
            names = [
                name
                for name, thing in vars(about).items()
                if inspect.isfunction(thing)
                and thing.__module__ == about.__name__
                and not name.startswith("_")
            ]
            found[module.name] = (
                f"published: {first_line(about).split('. ')[0]}; functions {', '.join(names)}"
            )
    return found


def listing(what: str) -> dict[str, str]:
    """One line for each thing of a kind."""
    kinds = {
        kind.__name__: kind
        for kind in (algorithms, graphs, data, mechanisms, tasks, experiments, theorems, ahead)
    }
    if what not in kinds:
        near = get_close_matches(what, kinds, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"cannot list {what!r}{hint} (there are: {', '.join(kinds)})")
    return kinds[what]()


def fact_text(value: Any) -> str:
    """One fact as a person reads it."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {fact_text(part)}" for key, part in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return " x ".join(map(str, value))
    return "none" if value is None else str(value)
