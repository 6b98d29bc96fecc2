"""The families of graphs that a string can name: an example of each, its keys, and how it is built."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bruit.errors import ConfigError
from bruit.graphs import families as make
from bruit.graphs import random_families as draw
from bruit.graphs import symmetric_families as alike
from bruit.graphs.graph import Graph
from bruit.graphs.mixing import from_edge_list, from_ego
from bruit.graphs.sequence import GraphSequence, after_circles, butterfly
from bruit.graphs.written_out import of_links, of_meetings, read_links, read_meetings


@dataclass(frozen=True)
class Options:
    """What a string says after the family: its size and its key=value pairs, read on demand."""

    size: str
    values: Mapping[str, str]
    seed: int

    def count(self, key: str) -> int:
        """A whole number; `size` reads the part after the colon."""
        text = self.size if key == "size" else self._need(key)
        return whole_number(key, text)

    def counts(self, separator: str) -> list[int]:
        """A size in several parts, as 4x5 or 75+75."""
        return [whole_number("size", part) for part in self.size.split(separator)]

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
        return whole_number("plus", self.values.get("plus", "1"))

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


WEIGHTS = ("kind", "plus")
RANDOM = (*WEIGHTS, "seed", "fresh", "connected")


def _butterfly(options: Options) -> GraphSequence:
    radices = options.values.get("radices")
    digits = (
        None if radices is None else [whole_number("radices", part) for part in radices.split("x")]
    )
    return butterfly(
        options.count("size"), options.seed if options.flag("relabel", False) else None, digits
    )


def _circles(options: Options) -> GraphSequence:
    members = [
        [u for part in circle.split("+") for u in _numbers(part)]
        for circle in options.size.split("/")
    ]
    links = options.values.get("links")
    pairs = None
    if links is not None:
        ends = [part.split("-") for part in links.split("/")]
        if any(len(pair) != 2 for pair in ends):
            raise ConfigError(f"links are pairs of peers, 0-4/1-5, found {links!r}")
        pairs = [(whole_number("links", a), whole_number("links", b)) for a, b in ends]
    return after_circles(members, pairs, kind=options.kind, plus=options.plus)


def _numbers(part: str) -> range:
    """A peer, 3, or those from one to another, 0-3."""
    first, _, last = part.partition("-")
    wanted = "circles of peers, 0-3/4+5+6"
    begin = whole_number("size", first, wanted)
    return range(begin, (whole_number("size", last, wanted) if last else begin) + 1)


def _peers(options: Options) -> int | None:
    return options.count("peers") if "peers" in options.values else None


def _two(options: Options) -> tuple[int, int]:
    """A size of two numbers, 3x4."""
    parts = options.counts("x")
    if len(parts) != 2:
        raise ConfigError(f"size must be two numbers such as 3x4, found {options.size!r}")
    return parts[0], parts[1]


def whole_number(key: str, text: str, wanted: str = "a whole number >= 0") -> int:
    """The number that a key says; otherwise what was wanted and what was found."""
    if not re.fullmatch(r"[0-9]+", text):
        raise ConfigError(f"{key} must be {wanted}, found {text!r}")
    return int(text)


RANDOM_FAMILIES: dict[str, Family] = {
    "er": Family(
        "er:1000,c=2",
        "Erdos-Renyi, edge probability q= or c= (q = c ln n / n)",
        lambda o: draw.erdos_renyi(
            o.count("size"),
            o.optional("q"),
            o.optional("c"),
            o.seed,
            o.connected,
            kind=o.kind,
            plus=o.plus,
        ),
        (*RANDOM, "q", "c"),
    ),
    "geometric": Family(
        "geometric:500,radius=0.1",
        "points of the unit square nearer than radius=",
        lambda o: draw.geometric(
            o.count("size"), o.number("radius"), o.seed, o.connected, kind=o.kind, plus=o.plus
        ),
        (*RANDOM, "radius"),
    ),
    "regular": Family(
        "regular:1000,degree=6",
        "random, everybody with degree= neighbors",
        lambda o: draw.regular(
            o.count("size"), o.count("degree"), o.seed, o.connected, kind=o.kind, plus=o.plus
        ),
        (*RANDOM, "degree"),
    ),
    "ws": Family(
        "ws:100,k=4,p=0.1",
        "Watts-Strogatz small world, k= nearest, rewired with probability p=",
        lambda o: draw.watts_strogatz(
            o.count("size"),
            o.count("k"),
            o.number("p"),
            o.seed,
            o.connected,
            kind=o.kind,
            plus=o.plus,
        ),
        (*RANDOM, "k", "p"),
    ),
    "ba": Family(
        "ba:200,m=4",
        "Barabasi-Albert preferential attachment, m= links a newcomer",
        lambda o: draw.barabasi_albert(
            o.count("size"), o.count("m"), o.seed, kind=o.kind, plus=o.plus
        ),
        (*WEIGHTS, "seed", "fresh", "m"),
    ),
    "sbm": Family(
        "sbm:75+75+50,p_in=0.2,p_out=0.01",
        "stochastic blocks, p_in= inside, p_out= between",
        lambda o: draw.stochastic_blocks(
            o.counts("+"),
            o.number("p_in"),
            o.number("p_out"),
            o.seed,
            o.connected,
            kind=o.kind,
            plus=o.plus,
        ),
        (*RANDOM, "p_in", "p_out"),
    ),
    "kout": Family(
        "kout:10000,k=20",
        "everybody picks k= others",
        lambda o: draw.k_out(
            o.count("size"), o.count("k"), o.seed, o.connected, kind=o.kind, plus=o.plus
        ),
        (*RANDOM, "k"),
    ),
}

SYMMETRIC_FAMILIES: dict[str, Family] = {
    "hamming": Family(
        "hamming:3x4",
        "words of 3 digits over 4 letters, one letter apart",
        lambda o: alike.hamming(*_two(o), kind=o.kind, plus=o.plus),
    ),
    "rook": Family(
        "rook:7x7",
        "a board, same row or same column",
        lambda o: alike.rook(*_two(o), kind=o.kind, plus=o.plus),
    ),
    "paley": Family(
        "paley:29",
        "a prime number of peers, 1 mod 4, linked where they differ by a square",
        lambda o: alike.paley(o.count("size"), kind=o.kind, plus=o.plus),
    ),
    "kneser": Family(
        "kneser:7x2",
        "pairs (2) of 7 points, linked where they share none",
        lambda o: alike.kneser(*_two(o), kind=o.kind, plus=o.plus),
    ),
    "moore": Family(
        "moore:7",
        "everybody two steps from everybody, of degree 2, 3 (Petersen) or 7 (Hoffman-Singleton)",
        lambda o: alike.moore(o.count("size"), kind=o.kind, plus=o.plus),
    ),
}

FAMILIES: dict[str, Family] = {
    "path": Family(
        "path:9", "a line", lambda o: make.path(o.count("size"), kind=o.kind, plus=o.plus)
    ),
    "ring": Family(
        "ring:16", "a circle", lambda o: make.ring(o.count("size"), kind=o.kind, plus=o.plus)
    ),
    "star": Family(
        "star:12",
        "peer 0 in the middle",
        lambda o: make.star(o.count("size"), kind=o.kind, plus=o.plus),
    ),
    "complete": Family(
        "complete:2000",
        "everybody with everybody",
        lambda o: make.complete(o.count("size"), kind=o.kind, plus=o.plus),
    ),
    "grid": Family(
        "grid:4x5",
        "a box of any dimension",
        lambda o: make.grid(*o.counts("x"), kind=o.kind, plus=o.plus),
    ),
    "torus": Family(
        "torus:16x16",
        "a box closed on itself, of any dimension",
        lambda o: make.torus(*o.counts("x"), kind=o.kind, plus=o.plus),
    ),
    "hypercube": Family(
        "hypercube:7",
        "2^7 peers, one bit apart",
        lambda o: make.hypercube(o.count("size"), kind=o.kind, plus=o.plus),
    ),
    "exponential": Family(
        "exponential:64",
        "a circle with chords +-2^k",
        lambda o: make.exponential(o.count("size"), kind=o.kind, plus=o.plus),
    ),
    "tree": Family(
        "tree:15",
        "a balanced binary tree",
        lambda o: make.tree(o.count("size"), kind=o.kind, plus=o.plus),
    ),
    **SYMMETRIC_FAMILIES,
    **RANDOM_FAMILIES,
    "butterfly": Family(
        "butterfly:64,relabel=true,seed=0",
        "exact averaging in log n rounds, one digit a round",
        _butterfly,
        ("relabel", "seed", "radices"),
    ),
    "circles": Family(
        "circles:0-3/4-7/8-11",
        "circles average among themselves first, links= between them then",
        _circles,
        (*WEIGHTS, "links"),
    ),
    "links": Family(
        "links:0-1=0.25/1-2=0.5/0-2=0.125",
        "links with a mixing weight each",
        lambda o: of_links(read_links(o.size), _peers(o)),
        ("peers",),
    ),
    "meetings": Family(
        "meetings:0-1+2-3/0-2+1-3",
        "rounds of meetings, pair by pair: what an odometer allowed",
        lambda o: of_meetings(read_meetings(o.size), _peers(o)),
        ("peers",),
    ),
    "florentine": Family(
        "florentine",
        "15 Florentine families",
        lambda o: make.florentine(kind=o.kind, plus=o.plus),
        sized=False,
    ),
    "karate": Family(
        "karate",
        "Zachary's karate club, 34 peers",
        lambda o: make.karate(kind=o.kind, plus=o.plus),
        sized=False,
    ),
    "women": Family(
        "women",
        "Davis's Southern women, 32 peers",
        lambda o: make.southern_women(kind=o.kind, plus=o.plus),
        sized=False,
    ),
    "ego": Family(
        "ego:414",
        "a Facebook ego network from the data folder",
        lambda o: from_ego(o.count("size"), kind=o.kind, plus=o.plus),
    ),
    "file": Family(
        "file:edges.txt",
        "an edge list, two ids a line and perhaps a weight, plain or .gz",
        lambda o: from_edge_list(o.size, kind=o.kind, plus=o.plus, sha256=o.values.get("sha256")),
        (*WEIGHTS, "sha256"),
    ),
}
