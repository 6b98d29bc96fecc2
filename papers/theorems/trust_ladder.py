"""Trust models as a ladder, the strongest assumption last: the same protocol, less and less to be
seen (gossip:NDP-7).

    local DP (everything observable) >= colluders >= one observer >= secure sums >= trusted curator

Each rung is the exact loss of one peer in local-DP units. The curator publishes the average of all
noisy inputs and nothing else: 1/n.
"""

from __future__ import annotations

from dataclasses import dataclass

from bruit.errors import PrivacyError
from bruit.graphs import Graph
from bruit.privacy.exact import leverage
from bruit.privacy.question import question


@dataclass(frozen=True)
class Rung:
    """Whom one has to trust, and what is lost then."""

    trust: str
    against: str
    loss: float


def trust_ladder(
    graph: Graph, steps: int, of: int, observer: int, colluders: tuple[int, ...]
) -> tuple[Rung, ...]:
    """Loss of one peer under every trust model; the observer must be one of the colluders, so that
    losses fall.

    Under secure sums the observer learns its neighborhood's weighted sum only (gossip:MUF-X4); that
    rung is no stronger an assumption than a single observer, and its loss is never larger.

    >>> from bruit.graphs import hypercube
    >>> [round(rung.loss, 6) for rung in trust_ladder(hypercube(4), 4, of=5, observer=0, colluders=(0, 3))]
    [1.0, 0.75, 0.666667, 0.166667, 0.0625]
    """
    asked = question(graph.n, of, (observer, *colluders))
    if observer not in colluders:
        raise PrivacyError(
            f"observer {observer} is not among the colluders {list(colluders)}; add it to them"
        )
    together = leverage(graph, asked.observers, steps).loss[of]
    alone = leverage(graph, [observer], steps).loss[of]
    sums = leverage(graph, [observer], steps, secure_aggregation=True).loss[of]
    return (
        Rung("nobody: local DP", "everybody", 1.0),
        Rung("all but the colluders: network DP with colluders", asked.against, float(together)),
        Rung("all not to collude: network DP", f"peer {observer}", float(alone)),
        Rung("an ideal aggregation in each neighborhood", f"peer {observer}", float(sums)),
        Rung("a curator: central DP", "readers of the average", 1 / graph.n),
    )
