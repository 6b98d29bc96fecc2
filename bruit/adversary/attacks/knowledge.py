"""What observers of linear gossip know: the knowledge matrix K, with K X = Y for the values X and
what they saw Y.

    own values          e_a, a in A
    messages            row w of M_t, t < T, w in N_t(A) - A,   M_t = W_{t-1} ... W_0     (gossip:REC-1)
    sums                row a of W^t, t = 1..T: secure aggregation hides all but the weighted sum (gossip:REC-3)
    meetings            the row each partner tells before both take the mean                 (gossip:GO-3)
    accelerated gossip  row w of P_t(W), deg P_t = t: other rows, the same space for the same T (gossip:REC-3)

Hypotheses: the graph, the weights and the schedule are public and do not depend on the data;
weights are rational, so the rows exist in floats, modulo primes, and as fractions. On one fixed
graph the rows of other peers span, beside the observers' own, a block Krylov space
(bruit.privacy.exact.span), which is eliminated power by power: a neighbor whose row became
dependent stays so and is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from bruit.adversary.attacks.dithers import Key, Sent
from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence, fixed_graph, from_edges
from bruit.graphs import graph as named_graph
from bruit.graphs.sequence import Static
from bruit.privacy.exact import (
    PRIMES,
    Echelon,
    GraphAt,
    centered,
    checked_observers,
    checked_steps,
    checked_symmetry,
    krylov_echelon,
    krylov_span,
    meeting_rows,
    neighborhood,
    sequence_rows,
)

Aggregation = Literal["messages", "sums"]


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """The matrix K of some observers: a row e_a for each of them, then one row per key, in order of
    time.

    `rows` makes it in floats, `modulo` its residues in 0..p-1 for primes p below 2^24, `rational`
    its fractions (small cases only). `echelon` eliminates what the others told; its columns are the
    peers `columns`, and `size` bounds its rank. `known` says how many observers' own rows it leaves
    out. For accelerated gossip `rows` are those of P_t(W), the others those of W^t, which span the
    same space. `receivers` says who heard the row of each meeting, and is None for rounds, in which
    a peer says the same to all. `sent` says what is in the messages beyond their rows: dithers, or
    the terms of sums; None: nothing but float rounding.
    """

    n: int
    observers: Ints
    messages: Callable[[], tuple[Key, ...]]
    columns: Ints
    size: int
    known: int
    rows: Callable[[], Array]  # () -> (k, n)
    modulo: Callable[[int], Ints]  # prime -> (k, n)
    rational: Callable[[], list[list[Fraction]]]
    echelon: Callable[[int], Echelon]
    receivers: tuple[int, ...] | None = None
    sent: Sent | None = None

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """The step (or meeting) and the peer of every row beyond the observers' own."""
        return self.messages()


def knowledge(
    graph: Graph | GraphSequence | str,
    observers: Sequence[int] | Ints,
    steps: int,
    aggregation: Aggregation = "messages",
) -> Knowledge:
    """What the observers (a set; one or more) learn from so many steps of gossip on a graph or a
    sequence of graphs."""
    if aggregation not in ("messages", "sums"):
        raise ConfigError(
            f"aggregation is {aggregation!r}; observers see 'messages' or, under secure"
            " aggregation, 'sums'"
        )
    graph = named_graph(graph)
    fixed = graph.graph if isinstance(graph, Static) else graph
    if isinstance(fixed, Graph):
        return _fixed(
            fixed, checked_observers(fixed.n, observers), checked_steps(steps), aggregation
        )
    if aggregation == "sums":
        raise ConfigError(
            f"sums are known for one fixed graph only, found the sequence {graph.name}; ask for "
            f"messages"
        )
    return sequence_knowledge(fixed.at, fixed.n, steps, observers)


def accelerated_knowledge(
    graph: Graph | str, observers: Sequence[int] | Ints, steps: int, gamma: float
) -> Knowledge:
    """What the observers learn when x^1 = W x^0, x^{t+1} = gamma W x^t + (1 - gamma) x^{t-1}
    (gossip:GO-2, REC-3)."""
    graph = fixed_graph(graph)
    plain = knowledge(graph, observers, steps)

    def rows() -> Array:
        heard = neighborhood(graph, plain.observers)
        before, block = np.zeros((graph.n, heard.size)), np.eye(graph.n)[:, heard]
        parts = [np.eye(graph.n)[plain.observers]]
        for t in range(steps):
            parts.append(block.T)
            mixed = np.asarray(graph.weights @ block)
            before, block = block, mixed if t == 0 else gamma * mixed + (1.0 - gamma) * before
        return np.concatenate(parts)

    return replace(plain, rows=rows)


def sequence_knowledge(
    graphs: GraphAt, n: int, steps: int, observers: Sequence[int] | Ints
) -> Knowledge:
    """What the observers learn when the graph changes from step to step, dropouts included."""
    chosen = checked_observers(n, observers)
    keys = tuple(
        (t, int(w)) for t in range(checked_steps(steps)) for w in neighborhood(graphs(t), chosen)
    )
    stacked = sequence_rows(graphs, n, steps, chosen)
    return _stacked(
        n, chosen, keys, stacked.values, stacked.modulo, lambda: _fractions(graphs, n, chosen, keys)
    )


def meeting_knowledge(n: int, a: Ints, b: Ints, observers: Sequence[int] | Ints) -> Knowledge:
    """What the observers learn from meetings (a_t, b_t), in order: both tell their value, then both
    keep the mean."""
    chosen = checked_observers(n, observers)
    stacked = meeting_rows(n, a, b, chosen)
    pairs = list(enumerate(zip(np.asarray(a).tolist(), np.asarray(b).tolist(), strict=True)))
    seen = set(chosen.tolist())
    crossing = [
        (t, (y, x) if x in seen else (x, y)) for t, (x, y) in pairs if (x in seen) != (y in seen)
    ]
    keys = tuple((t, teller) for t, (teller, _) in crossing)

    def met(t: int) -> Graph:
        # One edge between two peers of degree 1: both take the weight one half.
        return from_edges(n, [pairs[t][1]])

    found = _stacked(
        n, chosen, keys, stacked.values, stacked.modulo, lambda: _fractions(met, n, chosen, keys)
    )
    return replace(found, receivers=tuple(listener for _, (_, listener) in crossing))


def _stacked(
    n: int,
    observers: Ints,
    keys: tuple[Key, ...],
    values: Array,
    modulo: Callable[[int], Ints],
    rational: Callable[[], list[list[Fraction]]],
) -> Knowledge:
    """Rows of no special form: all of them are eliminated, over the peers that some row touches."""
    touched = (values != 0.0).any(axis=0)
    for prime in PRIMES:
        touched |= (modulo(prime) != 0).any(axis=0)
    touched[observers] = False
    columns = np.flatnonzero(touched)

    def echelon(prime: int) -> Echelon:
        heard_rows = modulo(prime)[observers.size :][:, columns].astype(np.float64)
        most = min(heard_rows.shape)
        found = Echelon.empty(prime, columns.size, most)
        found.insert(centered(heard_rows, prime), most)
        return found

    return Knowledge(
        n=n,
        observers=observers,
        messages=lambda: keys,
        columns=columns,
        size=int(columns.size),
        known=int(observers.size),
        rows=lambda: values,
        modulo=modulo,
        rational=rational,
        echelon=echelon,
    )


def _fixed(graph: Graph, observers: Ints, steps: int, aggregation: Aggregation) -> Knowledge:
    """One fixed graph: a Krylov space, eliminated power by power."""
    checked_symmetry(graph)
    sums = aggregation == "sums"
    span = krylov_span(graph, observers, steps, secure_aggregation=sums)
    heard = observers if sums else neighborhood(graph, observers)

    def keys() -> tuple[Key, ...]:
        # Made when asked for: a prediction over many steps does without.
        return tuple((t + sums, int(w)) for t in range(steps) for w in heard)

    def rows() -> Array:
        return (
            _sum_rows(graph, observers, steps)
            if sums
            else sequence_rows(one, graph.n, steps, observers).values
        )

    def modulo(prime: int) -> Ints:
        if sums:
            return _sum_residues(graph, observers, steps, prime)
        return sequence_rows(one, graph.n, steps, observers).modulo(prime)

    def one(_: int) -> Graph:
        return graph

    def echelon(prime: int) -> Echelon:
        return Echelon.empty(prime, 0, 0) if span is None else krylov_echelon(graph, span, prime)

    columns = np.zeros(0, dtype=np.int64) if span is None else span.peers
    size = 0 if span is None else span.size
    return Knowledge(
        n=graph.n,
        observers=observers,
        messages=keys,
        columns=columns,
        size=size,
        known=0 if sums else int(observers.size),
        rows=rows,
        modulo=modulo,
        rational=lambda: _fractions(one, graph.n, observers, keys()),
        echelon=echelon,
    )


def _sum_rows(graph: Graph, observers: Ints, steps: int) -> Array:
    blocks = [np.eye(graph.n)[:, observers]]
    for _ in range(steps):
        blocks.append(np.asarray(graph.weights @ blocks[-1]))
    return np.concatenate(blocks, axis=1).T


def _sum_residues(graph: Graph, observers: Ints, steps: int, prime: int) -> Ints:
    from bruit.privacy.exact.compiled.modular import multiply

    residues = centered(graph.residues(prime).astype(np.float64), prime)
    blocks = [np.ascontiguousarray(np.eye(graph.n)[:, observers])]
    for _ in range(steps):
        blocks.append(np.empty_like(blocks[-1]))
        multiply(
            graph.weights.indptr,
            graph.weights.indices,
            residues,
            blocks[-2],
            blocks[-1],
            float(prime),
        )
    return np.concatenate(blocks, axis=1).T.astype(np.int64) % prime


def _fractions(
    graphs: GraphAt, n: int, observers: Ints, keys: tuple[Key, ...]
) -> list[list[Fraction]]:
    """e_a and the rows (M_t)_w of the keys in rational arithmetic; dense, so for small cases."""
    forms: Any = np.array(
        [[Fraction(int(u == v)) for u in range(n)] for v in range(n)], dtype=object
    )
    rows, now = [list(forms[v]) for v in observers], 0
    for t, w in keys:
        for step in range(now, t):
            graph = graphs(step)
            weights = np.array(
                [[graph.fraction(u, v) for v in range(n)] for u in range(n)], dtype=object
            )
            forms = weights.dot(forms)
        now = t
        rows.append(list(forms[w]))
    return rows
