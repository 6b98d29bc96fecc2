"""What there is: algorithms, graphs, data sets, mechanisms, tasks, experiments, theorems; and one graph's facts."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from difflib import get_close_matches
from typing import Any

from bruit.errors import ConfigError
from bruit.graphs import Graph, diameter, mixing_time, spectral_gap
from bruit.graphs import graph as named_graph
from bruit.graphs.names import weight_rule


def first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").split("\n")[0].rstrip(".")


def algorithms() -> dict[str, str]:
    from bruit.algorithms.algorithm import catalog
    from bruit.algorithms.muffliato import presets

    found = {name: first_line(inspect.getmodule(kind)) for name, kind in catalog().items()}
    return {**found, **{name: f"{first_line(preset)} (preset)" for name, preset in presets().items()}}


def graphs() -> dict[str, str]:
    from bruit.graphs.names import families

    return families()


def data() -> dict[str, str]:
    from bruit.tasks.catalog import catalog

    return catalog()


def mechanisms() -> dict[str, str]:
    from bruit.mechanisms import DiscreteGaussian, Gaussian, Laplace, RandomizedResponse

    kinds = {"gaussian": Gaussian, "laplace": Laplace, "discrete-gaussian": DiscreteGaussian,
             "randomized-response": RandomizedResponse}  # fmt: skip
    return {name: first_line(kind) for name, kind in kinds.items()}


def tasks() -> dict[str, str]:
    from bruit.tasks import Boosted, Logistic, Mean, Pairwise, Personal, Ridge, Softmax, Statistic, histogram

    kinds = (Mean, Ridge, Logistic, Softmax, histogram, Statistic, Pairwise, Personal, Boosted)
    return {kind.__name__.lower(): first_line(kind) for kind in kinds}


def experiments() -> dict[str, str]:
    from bruit.config import bundled

    return {name: path.read_text().split("\n")[0].lstrip("# ") for name, path in bundled().items()}


def theorems() -> dict[str, str]:
    """What is said of views: by which algorithm's runs, and the printed formulas that stand apart."""
    from bruit.algorithms.algorithm import catalog

    found: dict[str, str] = {}
    for name, kind in catalog().items():
        for theorem in kind().guarantees():
            found[f"{name} {type(theorem).__name__}"] = f"{theorem.status}: {theorem.title} ({theorem.spec})"
    return {**found, **_printed()}


def _printed() -> dict[str, str]:
    """Functions that compute formulas as printed: no guarantees, and no part of a run."""
    import bruit.privacy.network as folder

    found = {}
    for module in pkgutil.iter_modules(folder.__path__):
        if module.name.startswith("published"):
            about = importlib.import_module(f"{folder.__name__}.{module.name}")
            names = [name for name, thing in vars(about).items() if inspect.isfunction(thing)
                     and thing.__module__ == about.__name__ and not name.startswith("_")]  # fmt: skip
            found[module.name] = f"published: {first_line(about).split('. ')[0]}; functions {', '.join(names)}"
    return found


def listing(what: str) -> dict[str, str]:
    """One line for each thing of a kind."""
    kinds = {kind.__name__: kind for kind in (algorithms, graphs, data, mechanisms, tasks, experiments, theorems)}
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


def graph_facts(name: str) -> dict[str, Any]:
    """Peers, links, degrees, weights, diameter, spectral gap, mixing time, validity."""
    found = named_graph(name)
    if not isinstance(found, Graph):
        first = found.at(0)
        return {"name": found.name, "peers": found.n, "period": found.period, "links in round 0": first.edge_count,
                "messages per peer in round 0": float(first.degrees.mean())}  # fmt: skip
    degrees, checks = found.degrees, found.validity()
    return {
        "name": found.name, "peers": found.n, "links": found.edge_count,
        "degrees": {"least": int(degrees.min()), "mean": float(degrees.mean()), "most": int(degrees.max())},
        "weights": weight_rule(found),
        "connected": found.is_connected(), "diameter": diameter(found), "spectral_gap": spectral_gap(found),
        "mixing_time": mixing_time(found), "valid": checks.ok, "aperiodic": checks.aperiodic,
        "symmetric": checks.symmetric, "translations": list(found.group) if found.group else None,
    }  # fmt: skip
