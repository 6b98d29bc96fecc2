"""Array trees: states, inboxes and edges as plain arrays by name, and a JSON tree that says how they
are put together again.

Nothing is pickled and nothing is imported: a record becomes the class of that name if its module is
loaded already and has it, with the same fields; else a named tuple of its own.
"""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from bruit.algorithms.crash import some_of_all
from bruit.algorithms.messages import AllLinks, Edges, Inbox, Links, Slots
from bruit.arrays import Array
from bruit.errors import ConfigError

EDGES = ("ids", "start", "peers")
LINKS = ("ids", "start", "senders", "columns", "weights", "own")


def packed(name: str, value: Any, arrays: dict[str, Any]) -> Any:
    """A tree that says how a value is made of arrays, which are put beside it by their names."""
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise ConfigError(f"{name} holds objects, which are not written to files")
        arrays[name] = value
        return {"array": name}
    if isinstance(value, Slots):
        parts = {part: packed(f"{name}.{part}", rows, arrays) for part, rows in vars(value).items()}
        return {"slots": parts}
    if not hasattr(value, "_fields"):
        raise ConfigError(f"{name} is a {type(value).__name__}, not made of arrays")
    fields = {
        field: packed(f"{name}.{field}", getattr(value, field), arrays) for field in value._fields
    }
    return {"record": type(value).__name__, "module": type(value).__module__, "fields": fields}


def unpacked(tree: Any, arrays: dict[str, Array]) -> Any:
    if tree is None:
        return None
    if "array" in tree:
        return arrays[tree["array"]]
    if "slots" in tree:
        return Slots(**{name: unpacked(part, arrays) for name, part in tree["slots"].items()})
    fields = {name: unpacked(part, arrays) for name, part in tree["fields"].items()}
    found = getattr(sys.modules.get(tree["module"]), tree["record"], None)  # nothing is imported
    known = isinstance(found, type) and getattr(found, "_fields", None) == tuple(fields)
    kind: Any = found if known else namedtuple(tree["record"], tuple(fields))
    return kind(**fields)


def packed_edges(edges: Edges, arrays: dict[str, Any]) -> dict[str, Any]:
    if type(edges) is not Edges:  # everybody, in a graph whose links are not listed
        return {"all": packed("edges.ids", edges.ids, arrays)}
    return {name: packed(f"edges.{name}", getattr(edges, name), arrays) for name in EDGES}


def unpacked_edges(tree: Any, arrays: dict[str, Array], graph: Any) -> Edges:
    if "all" in tree:
        return AllLinks(graph, unpacked(tree["all"], arrays)).edges
    return Edges(*(unpacked(tree[name], arrays) for name in EDGES))


def packed_inbox(inbox: Inbox, arrays: dict[str, Any]) -> dict[str, Any]:
    links = inbox.links
    rows = {
        name: packed(f"inbox.{name}", getattr(inbox, name), arrays)
        for name in ("rows", "own", "late")
    }
    if isinstance(links, AllLinks):
        return {**rows, "each": inbox.each, "all": packed("links.ids", links.ids, arrays)}
    full = links.full
    around = {name: packed(f"links.{name}", getattr(links, name), arrays) for name in LINKS}
    matrix = full is not None and {
        "parts": [
            packed(f"links.full.{name}", getattr(full, name), arrays)
            for name in ("data", "indices", "indptr")
        ],
        "shape": list(full.shape),
    }
    return {**rows, "each": inbox.each, "links": around, "full": matrix or None}


def unpacked_inbox(tree: Any, arrays: dict[str, Array], graph: Any) -> Inbox:
    rows, own, late = (unpacked(tree[name], arrays) for name in ("rows", "own", "late"))
    if "all" in tree:
        links: Links = some_of_all(graph, unpacked(tree["all"], arrays))
        return Inbox(links, rows, tree["each"], own, late)
    matrix = tree["full"]
    full = matrix and csr_array(
        tuple(unpacked(part, arrays) for part in matrix["parts"]), shape=tuple(matrix["shape"])
    )
    around = {name: unpacked(tree["links"][name], arrays) for name in LINKS}
    return Inbox(Links(**around, full=full), rows, tree["each"], own, late)


def leaves(name: str, value: Any) -> Iterator[tuple[str, Array]]:
    """The arrays of a state or of rows, by name."""
    if isinstance(value, np.ndarray):
        yield name, value
    elif isinstance(value, Slots):
        yield f"{name}.rows", value.rows
    elif value is not None:
        for field in value._fields:
            yield from leaves(f"{name}.{field}", getattr(value, field))
