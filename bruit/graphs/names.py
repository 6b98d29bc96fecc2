"""A graph in one short string: `torus:16x16`, `er:1000,c=2`, `hypercube:10`, `file:edges.txt`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from bruit.errors import ConfigError
from bruit.graphs.graph import Graph
from bruit.graphs.named_families import FAMILIES, Family, Options, whole_number
from bruit.graphs.sequence import GraphSequence, fresh

OPTION = re.compile(r",(?=\s*\w+\s*=)")  # where an option begins


LONG_NAMES = {
    "line": "path",
    "cycle": "ring",
    "erdos_renyi": "er",
    "random_geometric": "geometric",
    "random_regular": "regular",
    "watts_strogatz": "ws",
    "barabasi_albert": "ba",
    "stochastic_block_model": "sbm",
    "k_out": "kout",
    "southern_women": "women",
    "cube": "hypercube",
    "facebook": "ego",
    "edges": "file",
}


def families() -> dict[str, str]:
    """Every family name with one line of help and an example."""
    return {name: f"{family.what}, as {family.example}" for name, family in FAMILIES.items()}


def graph(text: str | Graph | GraphSequence, run_seed: int = 0) -> Graph | GraphSequence:
    """The graph, or sequence of graphs, that a string names; one that is a graph already stays what
    it is.

    `family:size[,key=value]*`; `kind=` and `plus=` choose the weights (gossip:GM-2), `seed=` the
    draw (`seed=run` takes run_seed), `fresh=K` draws anew every K rounds.
    """
    if not isinstance(text, str):
        return text
    head, colon, rest = text.strip().partition(":")
    name, _, tail = head.partition(",")
    if name not in FAMILIES:
        raise ConfigError(
            f"unknown graph family {name!r} in {text!r}; did you mean {_nearest(name)!r}? "
            f"Families: {', '.join(FAMILIES)}"
        )
    family = FAMILIES[name]
    try:
        if family.sized != bool(colon and rest):
            raise ConfigError("a size is missing" if family.sized else "no size is expected")
        size, values = _split(rest if family.sized else "," + tail)
        unknown = [key for key in values if key not in family.keys]
        if unknown:
            raise ConfigError(f"unknown key {unknown[0]!r}; {name} knows {', '.join(family.keys)}")
        return _build(family, Options(size, values, _seed(values, run_seed)))
    except MemoryError as error:
        raise ConfigError(f"graph {text!r} does not fit into memory: {error}") from None
    except ConfigError as error:
        raise ConfigError(
            f"graph {text!r}: {error}; expected something like {family.example!r}"
        ) from None


def edge_file(text: str) -> str | None:
    """The path of the edge list that a string names; None for graphs that come from no such
    file."""
    head, _, rest = text.strip().partition(":")
    return OPTION.split(rest)[0].strip() or None if head.partition(",")[0] == "file" else None


def fixed_graph(text: str | Graph) -> Graph:
    """The one graph that a string names, or that was given; a sequence of graphs is refused."""
    found = graph(text)
    if not isinstance(found, Graph):
        raise ConfigError(
            f"one fixed graph is needed here, found the sequence {found.name}; ask for one of its "
            "graphs with .at(round)"
        )
    return found


def weight_rule(found: Graph) -> str:
    """How the weights of a graph were made, in words, beside what the sources print
    (gossip:GM-2)."""
    if found.exponents is not None:
        return "given, entry by entry"
    _, values = _split(found.name)
    kind, plus = values.get("kind", "max"), int(values.get("plus", "1"))
    whom = {"max": "larger degree", "sum": "sum of degrees", "laplacian": "largest degree of all"}[
        kind
    ]
    rule = f"1 / (1 + {whom})" if plus else f"1 / ({whom})"
    matrix = (
        f", that is I - L / {'(1 + d_max)' if plus else 'd_max'}" if kind == "laplacian" else ""
    )
    printed = "; the printed rule is plus=0" if plus else "; as printed"
    return f"kind={kind}, plus={plus}: {rule}{matrix}{printed}"


def _build(family: Family, options: Options) -> Graph | GraphSequence:
    if "fresh" not in options.values:
        return family.build(options)
    every = options.count("fresh")
    values = {key: value for key, value in options.values.items() if key != "fresh"}

    def build_with(seed: int) -> Graph:
        built = family.build(Options(options.size, values, seed))
        if not isinstance(built, Graph):
            raise ConfigError("fresh= needs a random family")
        return built

    return fresh(build_with, every, options.seed)


def _split(text: str) -> tuple[str, dict[str, str]]:
    """Size and options; a comma that starts no key=value belongs to the size, so file names may
    hold commas."""
    parts = OPTION.split(text)
    values: dict[str, str] = {}
    for part in parts[1:]:
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key in values:
            raise ConfigError(f"{key}= is given twice")
        values[key] = value
    return parts[0].strip(), values


def _seed(values: Mapping[str, str], run_seed: int) -> int:
    text = values.get("seed", "0")
    return run_seed if text == "run" else whole_number("seed", text, "a whole number >= 0 or 'run'")


def _nearest(name: str) -> str:
    known = {**{key: key for key in FAMILIES}, **LONG_NAMES}
    return known[
        difflib.get_close_matches(name.lower().replace("-", "_"), known, n=1, cutoff=0.0)[0]
    ]
