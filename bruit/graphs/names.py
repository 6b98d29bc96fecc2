"""A graph in one short string: `torus:16x16`, `er:1000,c=2`, `hypercube:10`, `file:edges.txt`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bruit.errors import ConfigError
from bruit.graphs import families as make
from bruit.graphs import random_families as draw
from bruit.graphs.graph import Graph
from bruit.graphs.mixing import from_edge_list, from_ego
from bruit.graphs.sequence import GraphSequence, butterfly, fresh


@dataclass(frozen=True)
class Options:
    """What a string says after the family: its size and its key=value pairs, read on demand."""

    size: str
    values: Mapping[str, str]
    seed: int

    def count(self, key: str) -> int:
        """A whole number; `size` reads the part after the colon."""
        text = self.size if key == "size" else self._need(key)
        return _count(key, text)

    def counts(self, separator: str) -> list[int]:
        """A size in several parts, as 4x5 or 75+75."""
        return [_count("size", part) for part in self.size.split(separator)]

    def number(self, key: str) -> float:
        text = self._need(key)
        try:
            return float(text)
        except ValueError:
            raise ConfigError(f"{key} must be a number, found {text!r}") from None

    def optional(self, key: str) -> float | None:
        return self.number(key) if key in self.values else None

    def flag(self, key: str, default: bool) -> bool:
        text = self.values.get(key, str(default)).lower()
        if text not in ("true", "false"):
            raise ConfigError(f"{key} must be true or false, found {text!r}")
        return text == "true"

    @property
    def kind(self) -> str:
        return self.values.get("kind", "max")

    @property
    def plus(self) -> int:
        return _count("plus", self.values.get("plus", "1"))

    @property
    def connected(self) -> bool:
        return self.flag("connected", True)

    def _need(self, key: str) -> str:
        if key not in self.values:
            raise ConfigError(f"{key}= is missing")
        return self.values[key]


@dataclass(frozen=True)
class Family:
    """One family: an example, what it is, the keys it knows, and how to build it."""

    example: str
    what: str
    build: Callable[[Options], Graph | GraphSequence]
    keys: tuple[str, ...] = ("kind", "plus")
    sized: bool = True


OPTION = re.compile(r",(?=\s*\w+\s*=)")  # where an option begins
WEIGHTS = ("kind", "plus")
RANDOM = (*WEIGHTS, "seed", "fresh", "connected")


def _table() -> dict[str, Family]:
    return {
        "path": Family("path:9", "a line", lambda o: make.path(o.count("size"), kind=o.kind, plus=o.plus)),
        "ring": Family("ring:16", "a circle", lambda o: make.ring(o.count("size"), kind=o.kind, plus=o.plus)),
        "star": Family("star:12", "peer 0 in the middle",
                       lambda o: make.star(o.count("size"), kind=o.kind, plus=o.plus)),
        "complete": Family("complete:2000", "everybody with everybody",
                           lambda o: make.complete(o.count("size"), kind=o.kind, plus=o.plus)),
        "grid": Family("grid:4x5", "a box of any dimension",
                       lambda o: make.grid(*o.counts("x"), kind=o.kind, plus=o.plus)),
        "torus": Family("torus:16x16", "a box closed on itself, of any dimension",
                        lambda o: make.torus(*o.counts("x"), kind=o.kind, plus=o.plus)),
        "hypercube": Family("hypercube:7", "2^7 peers, one bit apart",
                            lambda o: make.hypercube(o.count("size"), kind=o.kind, plus=o.plus)),
        "exponential": Family("exponential:64", "a circle with chords +-2^k",
                              lambda o: make.exponential(o.count("size"), kind=o.kind, plus=o.plus)),
        "tree": Family("tree:15", "a balanced binary tree",
                       lambda o: make.tree(o.count("size"), kind=o.kind, plus=o.plus)),
        **_random_table(),
        "butterfly": Family("butterfly:64,relabel=true,seed=0", "exact averaging in log n rounds, one digit a round",
                            _butterfly, ("relabel", "seed", "radices")),
        "florentine": Family("florentine", "15 Florentine families",
                             lambda o: make.florentine(kind=o.kind, plus=o.plus), sized=False),
        "karate": Family("karate", "Zachary's karate club, 34 peers",
                         lambda o: make.karate(kind=o.kind, plus=o.plus), sized=False),
        "women": Family("women", "Davis's Southern women, 32 peers",
                        lambda o: make.southern_women(kind=o.kind, plus=o.plus), sized=False),
        "ego": Family("ego:414", "a Facebook ego network from the data folder",
                      lambda o: from_ego(o.count("size"), kind=o.kind, plus=o.plus)),
        "file": Family("file:edges.txt", "an edge list, two ids a line and perhaps a weight, plain or .gz",
                       lambda o: from_edge_list(o.size, kind=o.kind, plus=o.plus, sha256=o.values.get("sha256")),
                       (*WEIGHTS, "sha256")),
    }


def _random_table() -> dict[str, Family]:
    return {
        "er": Family("er:1000,c=2", "Erdos-Renyi, edge probability q= or c= (q = c ln n / n)",
                     lambda o: draw.erdos_renyi(o.count("size"), o.optional("q"), o.optional("c"), o.seed, o.connected,
                                                kind=o.kind, plus=o.plus), (*RANDOM, "q", "c")),
        "geometric": Family("geometric:500,radius=0.1", "points of the unit square nearer than radius=",
                            lambda o: draw.geometric(o.count("size"), o.number("radius"), o.seed, o.connected,
                                                     kind=o.kind, plus=o.plus), (*RANDOM, "radius")),
        "regular": Family("regular:1000,degree=6", "random, everybody with degree= neighbors",
                          lambda o: draw.regular(o.count("size"), o.count("degree"), o.seed, o.connected,
                                                 kind=o.kind, plus=o.plus), (*RANDOM, "degree")),
        "ws": Family("ws:100,k=4,p=0.1", "Watts-Strogatz small world, k= nearest, rewired with probability p=",
                     lambda o: draw.watts_strogatz(o.count("size"), o.count("k"), o.number("p"), o.seed, o.connected,
                                                   kind=o.kind, plus=o.plus), (*RANDOM, "k", "p")),
        "ba": Family("ba:200,m=4", "Barabasi-Albert preferential attachment, m= links a newcomer",
                     lambda o: draw.barabasi_albert(o.count("size"), o.count("m"), o.seed, kind=o.kind, plus=o.plus),
                     (*WEIGHTS, "seed", "fresh", "m")),
        "sbm": Family("sbm:75+75+50,p_in=0.2,p_out=0.01", "stochastic blocks, p_in= inside, p_out= between",
                      lambda o: draw.stochastic_blocks(o.counts("+"), o.number("p_in"), o.number("p_out"), o.seed,
                                                       o.connected, kind=o.kind, plus=o.plus),
                      (*RANDOM, "p_in", "p_out")),
        "kout": Family("kout:10000,k=20", "everybody picks k= others",
                       lambda o: draw.k_out(o.count("size"), o.count("k"), o.seed, o.connected, kind=o.kind,
                                            plus=o.plus), (*RANDOM, "k")),
    }


LONG_NAMES = {"line": "path", "cycle": "ring", "erdos_renyi": "er", "random_geometric": "geometric",
              "random_regular": "regular", "watts_strogatz": "ws", "barabasi_albert": "ba",
              "stochastic_block_model": "sbm", "k_out": "kout", "southern_women": "women", "cube": "hypercube",
              "facebook": "ego", "edges": "file"}


def families() -> dict[str, str]:
    """Every family name with one line of help and an example."""
    return {name: f"{family.what}, as {family.example}" for name, family in _table().items()}


def graph(text: str | Graph | GraphSequence, run_seed: int = 0) -> Graph | GraphSequence:
    """The graph, or sequence of graphs, that a string names; one that is a graph already stays what it is.

    `family:size[,key=value]*`; `kind=` and `plus=` choose the weights (gossip:GM-2), `seed=` the draw (`seed=run` takes
    run_seed), `fresh=K` draws anew every K rounds.
    """
    if not isinstance(text, str):
        return text
    head, colon, rest = text.strip().partition(":")
    name, _, tail = head.partition(",")
    table = _table()
    if name not in table:
        raise ConfigError(f"unknown graph family {name!r} in {text!r}; did you mean {_nearest(name, table)!r}? "
                          f"Families: {', '.join(table)}")
    family = table[name]
    try:
        if family.sized != bool(colon and rest):
            raise ConfigError("a size is missing" if family.sized else "no size is expected")
        size, values = _split(rest if family.sized else "," + tail)
        unknown = [key for key in values if key not in family.keys]
        if unknown:
            raise ConfigError(f"unknown key {unknown[0]!r}; {name} knows {', '.join(family.keys)}")
        return _build(family, Options(size, values, _seed(values, run_seed)))
    except ConfigError as error:
        raise ConfigError(f"graph {text!r}: {error}; expected something like {family.example!r}") from None


def edge_file(text: str) -> str | None:
    """The path of the edge list that a string names; None for graphs that come from no such file."""
    head, _, rest = text.strip().partition(":")
    return OPTION.split(rest)[0].strip() or None if head == "file" else None


def fixed_graph(text: str | Graph) -> Graph:
    """The one graph that a string names, or that was given; a sequence of graphs is refused."""
    found = graph(text)
    if not isinstance(found, Graph):
        raise ConfigError(f"one fixed graph is needed here, found the sequence {found.name}; ask for one of its graphs"
                          " with .at(round)")
    return found


def weight_rule(found: Graph) -> str:
    """How the weights of a graph were made, in words, beside what the sources print (gossip:GM-2)."""
    if found.exponents is not None:
        return "given, entry by entry"
    _, values = _split(found.name)
    kind, plus = values.get("kind", "max"), int(values.get("plus", "1"))
    whom = {"max": "larger degree", "sum": "sum of degrees", "laplacian": "largest degree of all"}[kind]
    rule = f"1 / (1 + {whom})" if plus else f"1 / ({whom})"
    matrix = f", that is I - L / {'(1 + d_max)' if plus else 'd_max'}" if kind == "laplacian" else ""
    printed = "; the printed rule is plus=0" if plus else "; as printed"
    return f"kind={kind}, plus={plus}: {rule}{matrix}{printed}"


def _build(family: Family, options: Options) -> Graph | GraphSequence:
    if "fresh" not in options.values:
        return family.build(options)
    every = options.count("fresh")
    values = {key: value for key, value in options.values.items() if key != "fresh"}

    def drawn(seed: int) -> Graph:
        built = family.build(Options(options.size, values, seed))
        if not isinstance(built, Graph):
            raise ConfigError("fresh= needs a random family")
        return built

    return fresh(drawn, every, options.seed)


def _butterfly(options: Options) -> GraphSequence:
    radices = options.values.get("radices")
    digits = None if radices is None else [_count("radices", part) for part in radices.split("x")]
    return butterfly(options.count("size"), options.seed if options.flag("relabel", False) else None, digits)


def _split(text: str) -> tuple[str, dict[str, str]]:
    """Size and options; a comma that starts no key=value belongs to the size, so file names may hold commas."""
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
    return run_seed if text == "run" else _count("seed", text, "a whole number >= 0 or 'run'")


def _count(key: str, text: str, wanted: str = "a whole number >= 0") -> int:
    if not re.fullmatch(r"[0-9]+", text):
        raise ConfigError(f"{key} must be {wanted}, found {text!r}")
    return int(text)


def _nearest(name: str, table: Mapping[str, Family]) -> str:
    known = {**{key: key for key in table}, **LONG_NAMES}
    return known[difflib.get_close_matches(name.lower().replace("-", "_"), known, n=1, cutoff=0.0)[0]]
