"""Statistic: every peer holds a point, all want the average of a kernel over all pairs of peers
(perso:PAIR-1).

    U = 2 / (n (n - 1)) * sum over u < v of factor * h(x_u, x_v)

What gossip over pairs (gosta, u2-gossip) estimates. The area under the curve is the kernel auc with
the public factor n (n - 1) / (2 n+ n-), the number of pairs over the number of those of two
classes.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from math import inf, isfinite
from typing import ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.digests import ASIDE
from bruit.errors import ConfigError
from bruit.tasks.data.points import Points
from bruit.tasks.data.public import Fact, counts, said
from bruit.tasks.data.recipe import Recipe
from bruit.tasks.data.use import Use
from bruit.tasks.pairs.kernels import KERNELS, Kernel, as_points, check_kernel
from bruit.tasks.pairs.ranking import Ties, concordance, two_classes
from bruit.tasks.pairs.u_statistics import peer_statistic, u_statistic
from bruit.tasks.task import Constants, Manifest, Task


@dataclass(frozen=True, eq=False)
class Statistic(Task):
    """Points of the peers and a symmetric kernel of two of them.

    use: what of a data set they are, if they are from one. positives: how many peers hold the
    second class, where the factor follows from that.
    """

    answers: ClassVar[frozenset[str] | None] = frozenset({"a function of two points"})

    points: Points
    kernel: Kernel
    _: KW_ONLY
    factor: float = 1.0
    name: str = "points"
    facts: tuple[Fact, ...] = ()
    use: Use | None = field(default=None, metadata=ASIDE)
    positives: int | None = field(default=None, metadata=ASIDE)

    def __post_init__(self) -> None:
        if self.points.peers > 1:
            check_kernel(self.kernel, as_points(self.points.rows, self.kernel))
        if not (isfinite(self.factor) and self.factor != 0):
            raise ConfigError(
                f"the factor of a statistic is a finite number other than 0, found {self.factor}"
            )

    @staticmethod
    def of(
        rows: Array, kernel: str | Kernel, owners: Ints | None = None, codebook: Array | None = None
    ) -> Statistic:
        """A kernel of your own or one by name; with a codebook, peers show the nearest of its
        points."""
        chosen = named_kernel(kernel) if isinstance(kernel, str) else kernel
        points = Points.of(rows, owners)
        exact = 1 if chosen.name in ("auc", "scatter") else 0
        return Statistic(points if codebook is None else points.coded(codebook, exact), chosen)

    @staticmethod
    def auc(
        scores: Array, labels: Array | Ints, codebook: Array | None = None, ties: Ties = "half"
    ) -> Statistic:
        """The area under the ROC curve of scores and labels 0 or 1, one of each a peer.

        Ties count half, as usual, or zero (T (3.11)); with a codebook, rounded scores tie often.
        """
        positive, negative = two_classes(scores, labels)
        kernel = half_ties() if ties == "half" else named_kernel("auc")
        made = Statistic.of(np.stack((scores, labels), axis=1), kernel, codebook=codebook)
        counts_of_classes = Fact(
            f"the numbers of positives and negatives, {len(positive)} and {len(negative)}",
            "private rows",
        )
        return Statistic(
            made.points,
            made.kernel,
            factor=_of_classes(len(positive), len(scores)),
            name="scores",
            facts=(counts_of_classes,),
            positives=len(positive),
        )

    @staticmethod
    def part(points: Points, kernel: str, positives: int | None, among: int) -> Statistic:
        """What one peer of so many holds of a statistic by name; ties of an AUC count half."""
        chosen = half_ties() if kernel == "auc" else named_kernel(kernel)
        if chosen.columns and points.columns != chosen.columns:
            raise ConfigError(
                f"the kernel {kernel} takes points of {chosen.columns} numbers, found "
                f"{points.columns}"
            )
        known = Fact("the kernel, the columns, and how many points a peer shows at most", "agreed")
        facts: tuple[Fact, ...] = (known,)
        if (kernel == "auc") != (positives is not None):
            raise ConfigError("the number of positives belongs to an AUC, and to nothing else")
        if positives is None:
            return Statistic(points, chosen, name="own records", facts=facts)
        if not 0 < positives < among:
            raise ConfigError(
                f"{positives} of {among} peers hold the second class (task.positives); an AUC "
                "needs some of each"
            )
        facts += (Fact(f"the number of peers of the second class, {positives}", "agreed"),)
        factor = _of_classes(positives, among)
        return Statistic(
            points, chosen, factor=factor, name="own records", facts=facts, positives=positives
        )

    @property
    def peers(self) -> int:
        return self.points.peers

    @property
    def dim(self) -> int:
        return 1

    @property
    def width(self) -> int:
        return self.points.width

    @property
    def metric(self) -> str:
        return "mse"

    @cached_property
    def truth(self) -> float:
        """For observers only: the statistic of the points as they are."""
        if self.points.most == 1:
            return self.factor * u_statistic(self.points.rows, self.kernel)
        return self.factor * peer_statistic(self.points.rows, self.points.owners, self.kernel)

    @cached_property
    def _table(self) -> Array | None:
        """The kernel on pairs of the codebook  # (K, K)."""
        book = self.points.codebook
        return None if book is None else self.kernel(book[:, None], book[None, :])

    def value(self, ids: Ints) -> Array:
        """What the peers show: points, or rows that name one of the codebook."""
        return self.points.show(ids)

    def pair_value(self, x: Array, y: Array, uniform: float) -> Array:
        if self._table is None and self.points.most == 1:
            return self.factor * self.kernel(x, y)[:, None]
        (left, here), (right, there) = (self.points.read(rows, uniform) for rows in (x, y))
        if self._table is not None:
            found = ((here @ self._table) * there).sum(axis=1)
        else:
            found = np.einsum(
                "ki,kij,kj->k", here, self.kernel(left[:, :, None], right[:, None, :]), there
            )
        return np.asarray(self.factor * found[:, None])

    def gradient(self, ids: Ints, x: Array) -> Array:
        raise ConfigError(
            "a statistic is estimated, not learned: it has no gradient; use gosta, or the Pairwise "
            "task"
        )

    def gradient_sampled(self, ids: Ints, x: Array, uniforms: Array) -> Array:
        return self.gradient(ids, x)

    def prox(self, ids: Ints, x: Array, rho: float) -> Array:
        return self.gradient(ids, x)

    def evaluate(self, models: Array) -> dict[str, float]:
        """Squared error of the estimates (mean over peers, worst peer), and their mean."""
        if models.ndim != 2 or models.shape[1] != 1:
            raise ConfigError(
                f"estimates are {models.shape}; give one number a peer, as gosta does"
            )
        errors = (models[:, 0] - self.truth) ** 2
        return {
            "mse": float(errors.mean()),
            "worst": float(errors.max()),
            "estimate": float(models.mean()),
        }

    def constants(self) -> Constants:
        return Constants(inf, inf, 0.0, "declared")

    def recipe(self) -> Recipe:
        """A statistic is a number: it is applied to no rows."""
        return Recipe.plain((), label=self.kernel.name)

    def describe(self) -> Manifest:
        shown: Manifest = (
            {} if self.points.codebook is None else {"codebook": len(self.points.codebook)}
        )
        if self.use is not None:
            shown["used"] = self.use.describe()
        return {
            "task": "Statistic",
            "kernel": self.kernel.name,
            "factor": self.factor,
            "peers": self.peers,
            "dim": 1,
            "points": len(self.points.rows),
            **shown,
            "data": {"name": self.name},
            "public": said(
                (
                    *(
                        ()
                        if self.points.room is not None and self.peers == 1
                        else (
                            Fact(f"the number of peers, {self.peers}, and the kernel", "agreed"),
                            counts(np.bincount(self.points.owners), "points"),
                        )
                    ),
                    *self.facts,
                )
            ),
        }

    def references(self) -> dict[str, float]:
        """Alone, a peer sees no pair and can only say 0; in one place, the statistic is exact."""
        return {"alone": self.truth**2, "central": 0.0}


def _of_classes(positives: int, n: int) -> float:
    """All pairs over those of two classes."""
    return n * (n - 1) / (2 * positives * (n - positives))


def half_ties() -> Kernel:
    """The kernel auc with 1/2 for pairs of two classes that score alike: points (score, label 0 or
    1)."""

    def function(x: Array, y: Array) -> Array:
        apart = np.sign(x - y)
        return np.asarray((apart[..., 1] != 0) * (1 + apart[..., 0] * apart[..., 1]) / 2)

    def total(rows: Array) -> float:
        agree, disagree = concordance(rows[:, 0], rows[:, 1])
        positive = int((rows[:, 1] == 1).sum())
        return (positive * (len(rows) - positive) + agree - disagree) / 2

    return Kernel("auc", function, columns=2, low=0.0, high=1.0, total=total)


def named_kernel(name: str) -> Kernel:
    """A kernel of `bruit.tasks.pairs` by name."""
    from difflib import get_close_matches

    if name not in KERNELS:
        near = get_close_matches(name, KERNELS, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(
            f"there is no kernel {name!r}{hint} (known: {', '.join(KERNELS)};"
            " a function of your own is a bruit.tasks.pairs.Kernel, in Python)"
        )
    return KERNELS[name]()
