"""Group privacy of gossip: all members of a set U change their data at once (gossip:MUF-12, NDP-6).

    f(U, V) = alpha / (2 sigma^2) max over |d_u| <= Delta of d^T Pi_UU d <= epsilon_0 sum_{u, u' in U} |Pi_{uu'}|

with Pi the projector on what V knows (gossip:MUF-2). The maximum is bounded by `largest_form`, at
most that sum. It never exceeds |U|, since a projector does not lengthen d. The same bounds one user
who owns several scalars, the gradients of several rounds say (gossip:LG-1, MUF-9).
Hypotheses: those of the exact loss of gossip; Gaussian noise added once per scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.exact import (
    KnownRows,
    Leverage,
    Modulo,
    Status,
    Wide,
    decided,
    group_loss,
    largest_form,
    lengths,
    sequence_rows,
)
from bruit.privacy.guarantee import Guarantee, gaussian
from bruit.privacy.question import Peers, ViewQuestion, question
from bruit.privacy.theorem import IDEALLY

TITLE, SPEC = "group privacy of linear gossip", "gossip:MUF-12"
ADVICE = (
    "members far from the observers and from each other",
    "fewer steps, or noise in the messages",
)


@dataclass(frozen=True)
class JointLoss:
    """Loss of scalars that move together: `free` when each moves as it likes, `common` when all
    move alike."""

    free: float
    common: float
    status: Status


@dataclass(frozen=True, eq=False)
class Projector:
    """The projector on some known rows: certified losses of single scalars, and a basis to tell
    pairs apart."""

    found: Leverage
    columns: Array | None  # (scalars, rank); None without a certificate
    length: Array  # (scalars,)

    def joint(self, members: Sequence[int] | Ints) -> JointLoss:
        """max d^T Pi_UU d, from above, and 1^T Pi_UU 1 of the scalars U.

        With L_u the most that |Pi e_u| can be, |Pi_uu' - Q_u Q_u'| <= L_u L_u' - |Q_u| |Q_u'|; without a certificate
        |Pi_uu'| <= sqrt(m(u) m(u')) by Cauchy and Schwarz.
        """
        chosen = np.unique(np.asarray(members, dtype=np.int64))
        if chosen.size == 0 or chosen[0] < 0 or chosen[-1] >= self.found.loss.size:
            raise ConfigError(
                f"the group names scalars within 0..{self.found.loss.size - 1}, found "
                f"{chosen.tolist()}"
            )
        loss = self.found.loss[chosen]
        most = min(float(np.sqrt(loss).sum() ** 2), float(np.count_nonzero(loss)))
        if self.columns is None:
            return JointLoss(most, most, "upper bound")
        part = self.columns[chosen]
        margin = max(0.0, float(self.length[chosen].sum() ** 2 - lengths(part).sum() ** 2))
        free = min(largest_form(part @ part.T) + margin, most)
        return JointLoss(free, min(max(float((part @ part.T).sum()), 0.0) + margin, free), "exact")


def projector(
    rows: Array, modulo: Modulo | None, wide: Callable[[], Wide] | None = None
) -> Projector:
    """The projector on rows whose noise is all the peers' own, given also modulo primes (and in 30
    digits)."""
    known = decided(rows, modulo, wide)
    return Projector(known.found, known.columns, known.length)


def joint_loss(rows: KnownRows, members: Sequence[int]) -> float:
    """Loss of peers whose data all change at once and in any direction, from the rows that the
    observers know."""
    return projector(rows.values, rows.modulo, rows.wide).joint(members).free


def group_losses(graph: Graph | GraphSequence, steps: int, of: Peers, seen_by: Peers) -> float:
    """Loss of a set of peers after so many steps of gossip, plain or (on one graph) accelerated.

    >>> from bruit.graphs import star
    >>> round(group_losses(star(6), 3, [2, 3], 1), 6), round(group_losses(star(6), 3, [2, 3, 4, 5], 1), 6)
    (1.0, 4.0)
    """
    asked = question(graph.n, of, seen_by)
    if isinstance(graph, Graph):
        return min(
            group_loss(graph, asked.observers, steps, asked.members), float(len(asked.members))
        )
    return joint_loss(sequence_rows(graph.at, graph.n, steps, asked.observers), asked.members)


def group_guarantee(
    graph: Graph | GraphSequence, steps: int, of: Peers, seen_by: Peers, noise_multiplier: float
) -> Guarantee:
    """What the observers learn about a set of peers from gossip averaging, all members changing
    their data at once."""
    asked = question(graph.n, of, seen_by)
    return _guarantee(
        asked, group_losses(graph, steps, of, seen_by), noise_multiplier, steps, "user"
    )


def _guarantee(
    asked: ViewQuestion, loss: float, noise_multiplier: float, steps: int, level: str
) -> Guarantee:
    return Guarantee(
        theorem=TITLE,
        spec=SPEC,
        status="ideal",
        level=level,
        of=asked.of,
        against=asked.against,
        hypotheses=IDEALLY,
        profile=gaussian(loss, noise_multiplier),
        loss=loss,
        noise_multiplier=noise_multiplier,
        notes=("all members may change their data at once and in any direction",),
        seen=f"the messages of {steps} rounds, and the observers' own values and noise",
        advice=ADVICE,
    )
