"""Loss of a walk given all its visits, in every variant: additive, published, with step sizes
(walk:RW-6, RW-V1).

Between two observations of F the token makes noisy steps; s_t is the shift of u at each of them,
and

    X_u = sum over segments of  E(s)                   non-expansive updates: the path energy of walk:F-2
                                (sum s)^2 / length     additive updates, exactly (walk:RW-1)

The view of F about u is mu-GDP with mu = sqrt(X_u) / z. F sees the token on arrival, before its own
step, and the noise of F itself hides nothing. `bruit.privacy.theorems.walk` says the same of a run
with a constant step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.errors import PrivacyError
from bruit.privacy.exact import checked_observers
from bruit.privacy.guarantee import Guarantee, gaussian
from bruit.privacy.theorems.walk_hypotheses import UNDECLARED, Descent, declared_maps, standing
from bruit.privacy.toolbox.path_energy import path_energy


@dataclass(frozen=True, eq=False, kw_only=True)
class Visits:
    """Who held the token at every step, and whether he contributed; always with noise.

    steps: sizes eta_t of the steps, constant by default. lipschitz: constant of every map, 1 by
    default and at every silent step. additive: updates are plain sums, as in walk:RW-1.
    """

    path: Ints  # (T,)
    contributed: Bools  # (T,)
    n: int
    published: bool = False
    additive: bool = False
    steps: Array | None = None  # (T,)
    lipschitz: Array | None = None  # (T,)

    def __post_init__(self) -> None:
        for name, column in (
            ("contributed", self.contributed),
            ("steps", self.steps),
            ("lipschitz", self.lipschitz),
        ):
            if column is not None and np.shape(column) != np.shape(self.path):
                raise PrivacyError(
                    f"the walk has {len(self.path)} visits, but {name} has shape {np.shape(column)}"
                )
        if len(self.path) and not 0 <= self.path.min() <= self.path.max() < self.n:
            raise PrivacyError(
                f"peers are 0..{self.n - 1}, but the walk visits "
                f"{self.path.min()}..{self.path.max()}"
            )
        if self.steps is not None and not np.all((self.steps > 0) & np.isfinite(self.steps)):
            raise PrivacyError(
                "step sizes are positive; a silent step has its size too, the one of its noise"
            )
        if self.additive and self.lipschitz is not None:
            raise PrivacyError(
                "additive updates are translations: they have no Lipschitz constants to declare"
            )
        if self.lipschitz is not None and np.any(self.lipschitz[~self.contributed] < 1):
            where = int(np.flatnonzero((self.lipschitz < 1) & ~self.contributed)[0])
            raise PrivacyError(
                f"step {where} is silent, the identity plus noise: its Lipschitz constant is 1,"
                f" found {self.lipschitz[where]:g}"
            )

    def keeps(self, cap: int, cooldown: int) -> bool:
        """Whether nobody contributed more than `cap` times, nor again within `cooldown` hops;
        raises where one did."""
        when = np.flatnonzero(self.contributed)
        who = self.path[when]
        count = np.bincount(who, minlength=self.n)
        if np.any(count > cap):
            worst = int(np.argmax(count))
            found = f"peer {worst} contributed {count[worst]} times, and the cap is {cap}"
            raise PrivacyError(f"{found}; account for the walk that happened")
        order = np.lexsort((when, who))
        near = (np.diff(who[order]) == 0) & (np.diff(when[order]) < cooldown)
        if near.any():
            hop = int(when[order][1:][near][0])
            found = f"peer {self.path[hop]} contributed at hop {hop}, less than {cooldown} hops after its last time"
            raise PrivacyError(f"{found}; account for the walk that happened")
        return True


def visits(
    path: Sequence[int] | Ints, n: int, cap: int | None = None, cooldown: int = 1, **more: object
) -> Visits:
    """The visits of a path under a cap and a cool-down; `more` are fields of Visits.

    >>> path = [0, 2, 1, 3, 0, 0, 2, 3, 1, 2, 0, 3, 3, 2, 1, 0, 2]
    >>> float(walk_losses(visits(path, 4), [1])[2]), float(walk_losses(visits(path, 4, cooldown=4), [1])[2])
    (2.75, 2.5)
    """
    from bruit.privacy.exact.compiled.paths import contributions

    if (cap is not None and cap < 1) or cooldown < 1:
        raise PrivacyError(f"a cap and a cool-down are at least 1, found {cap} and {cooldown}")
    held = np.asarray(path, np.int64)
    if len(held) and not 0 <= held.min() <= held.max() < n:
        raise PrivacyError(f"peers are 0..{n - 1}, but the walk visits {held.min()}..{held.max()}")
    long_ago = np.full(n, -cooldown, np.int64)
    flags, _ = contributions(
        held, np.zeros(n, np.int64), long_ago, -1 if cap is None else cap, cooldown
    )
    return Visits(path=held, contributed=np.asarray(flags), n=n, **more)  # type: ignore[arg-type]


def walk_losses(walk: Visits, observers: Sequence[int] | Ints) -> Array:
    """X_u of every peer in the joint view of the observers; nan for the observers themselves
    # (n,)."""
    watching = np.zeros(walk.n, bool)
    watching[checked_observers(walk.n, observers)] = True
    if walk.additive:
        found = _additive(walk, watching)
    elif walk.steps is None and walk.lipschitz is None:
        found = _plain(walk, watching)
    else:
        found = _weighted(walk, watching)
    return np.where(watching, np.nan, found)


def walk_matrix(walk: Visits) -> Array:
    """X[u, v] for all ordered pairs; the diagonal is nan  # (n, n)."""
    return np.stack([walk_losses(walk, [v]) for v in range(walk.n)], axis=1)


def realized(
    walk: Visits,
    of: int,
    observers: Sequence[int] | Ints,
    noise_multiplier: float,
    descent: Descent | None = None,
) -> Guarantee:
    """What the observers learned about a peer from the walk that happened (walk:RW-6).

    >>> said = realized(visits([0, 2, 1, 3, 0, 0, 2, 3, 1], 4), 0, [1], noise_multiplier=3.0)
    >>> round(said.loss, 6), said.status
    (1.5, 'ideal')
    """
    chosen = checked_observers(walk.n, observers)
    if not 0 <= of < walk.n or of in chosen:
        raise PrivacyError(
            f"peer {of} seen by {chosen.tolist()}: ask about a peer below {walk.n} who does not "
            f"observe"
        )
    loss = float(walk_losses(walk, chosen)[of])
    about = None if walk.additive else descent or UNDECLARED
    ending = (
        "only the last token is published" if walk.published else "the last token is not published"
    )
    hypotheses = (*declared_maps(walk.lipschitz), *standing(about, capped=False, published=ending))
    if walk.steps is not None:
        hypotheses = tuple(h for h in hypotheses if h.text != "the step size is constant")
    names = ", ".join(map(str, chosen))
    return Guarantee(
        theorem="the path energy of the realized walk",
        spec="walk:RW-6",
        status="ideal",
        level="user",
        of=f"peer {of}",
        against=f"peer {names}" if len(chosen) == 1 else f"peers {names} together",
        hypotheses=hypotheses,
        profile=gaussian(loss, noise_multiplier),
        loss=loss,
        noise_multiplier=noise_multiplier,
        notes=(f"of this walk of {len(walk.path)} visits; another walk has another loss",),
        seen=f"the token at {int(np.isin(walk.path, chosen).sum())} visits to the observers",
    )


def _segments(walk: Visits, watching: Bools) -> Iterator[Ints]:
    """The steps between two observations, observers' own steps left out; an unseen last segment is
    left out."""
    seen = np.flatnonzero(watching[walk.path])
    ends = [*seen.tolist(), *([len(walk.path)] if walk.published else [])]
    begin = 0
    for end in ends:
        if end > begin:
            yield np.arange(begin, end)
        begin = end + 1


def _plain(walk: Visits, watching: Bools) -> Array:
    from bruit.privacy.exact.compiled.paths import energies

    path, flags = walk.path, walk.contributed
    if walk.published:  # publication is one more visit to the observers
        path, flags = np.append(path, np.flatnonzero(watching)[0]), np.append(flags, False)
    return np.asarray(energies(path, flags, watching))


def _additive(walk: Visits, watching: Bools) -> Array:
    total = np.zeros(walk.n)
    sizes = np.ones(len(walk.path)) if walk.steps is None else walk.steps
    for part in _segments(walk, watching):
        moved = np.bincount(walk.path[part], sizes[part] * walk.contributed[part], walk.n)
        total += moved**2 / float(np.sum(sizes[part] ** 2))
    return total


def _weighted(walk: Visits, watching: Bools) -> Array:
    total = np.zeros(walk.n)
    sizes = np.ones(len(walk.path)) if walk.steps is None else walk.steps
    constants = np.ones(len(walk.path)) if walk.lipschitz is None else walk.lipschitz
    for part in _segments(walk, watching):
        for u in np.unique(walk.path[part][walk.contributed[part]]).tolist():
            shifts = np.where(walk.contributed[part] & (walk.path[part] == u), sizes[part], 0.0)
            total[u] += path_energy(shifts, sizes[part], constants[part])
    return total
