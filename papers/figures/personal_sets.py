"""The real data of personalized learning, one peer a person, school or field, prepared as the
sources do (perso:EXP-4).

Ranges and scales of features are taken over the whole set, as the sources do: public, or an
experiment without privacy. Every set ends in a constant column, so that a linear model has an
intercept and boosting a constant predictor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.tasks.data import catalog
from bruit.tasks.data.sources import load

SCHOOL_COLUMNS = slice(
    5, 21
)  # gender, verbal-reasoning band, ethnic group: what is known of a student
SCHOOL_PASSED, RATED, PARKINSONS_SEVERE = 20.0, 5.0, 27.5
HAR_WALKING = (
    3  # activities 0, 1, 2 are walking on the level, up and down stairs; 3, 4, 5 are standing still
)
HAR_TRAIN, HAR_MORE, PARKINSONS_TRAIN, LANDMINE_TRAIN = 0.02, 0.2, 0.05, 0.5


@dataclass(frozen=True, eq=False)
class Personalized:
    """Training and test records by peer, labels -1 and 1, and how many stumps ask about each
    feature."""

    features: Array  # (r, p)
    labels: Array  # (r,)
    owners: Ints  # (r,) 0..n-1
    train: Bools  # (r,)
    stumps: int

    @property
    def peers(self) -> int:
        return int(self.owners.max()) + 1

    def part(self, train: bool) -> tuple[Array, Array, Ints]:
        rows = self.train == train
        return self.features[rows], self.labels[rows], self.owners[rows]


def school(seed: int) -> Personalized:
    """15362 students of 139 schools, exam score above 20; the published splits, numbered from
    `seed` = 0."""
    table, path = load("school"), catalog.locate("school")
    if path is None or table.owners is None:
        raise FileNotFoundError("school")
    with np.load(path.parent / "school_splits.npz", allow_pickle=False) as stored:
        train = np.unpackbits(stored[f"split{seed + 1}_train"])[: len(table.labels)].astype(bool)
    features = table.features[:, SCHOOL_COLUMNS]
    low, high = features.min(axis=0), features.max(axis=0)
    return _made(
        (features - low) / np.where(high > low, high - low, 1.0),
        table.labels > SCHOOL_PASSED,
        table.owners,
        train,
        5,
    )


def computer_buyers(seed: int) -> Personalized:
    """190 persons rate 20 computers, above 5 of 10; each trains on the first 5 to 10 of one random
    order."""
    table, rng = load("computer_buyers"), np.random.default_rng(seed)
    owners = _owners(table.owners)
    order, known = rng.permutation(20), rng.integers(5, 11, int(owners.max()) + 1)
    place = np.argsort(order)[np.arange(len(owners)) % 20]
    return _made(table.features, table.labels > RATED, owners, place < known[owners], 2)


def har(seed: int, share: float = HAR_TRAIN) -> Personalized:
    """30 persons with a phone at the waist, 561 features, walking or not; two windows of a hundred
    are for training."""
    table = load("har")
    owners = _owners(table.owners)
    return _made(table.features, table.labels < HAR_WALKING, owners, _share(owners, share, seed), 2)


def har_fifth(seed: int) -> Personalized:
    """The same persons, and a fifth of their windows: the source names no share, and its accuracies
    of models fitted alone are out of reach with two of a hundred."""
    return har(seed, HAR_MORE)


def landmine(seed: int) -> Personalized:
    """29 fields, 9 radar features, mine or not; as many others as mines are kept in each field,
    half for training."""
    table, rng = load("landmine"), np.random.default_rng(seed)
    owners, mines = _owners(table.owners), table.labels > 0
    kept = mines.copy()
    for field in range(int(owners.max()) + 1):
        others = np.flatnonzero((owners == field) & ~mines)
        kept[rng.choice(others, int((mines & (owners == field)).sum()), replace=False)] = True
    chosen = owners[kept]
    return _made(
        _standard(table.features[kept]),
        mines[kept],
        chosen,
        _share(chosen, LANDMINE_TRAIN, seed),
        10,
    )


def parkinsons(seed: int) -> Personalized:
    """42 patients, 19 features of voice, person and time, score above 27.5, its median; a twentieth
    trains."""
    table = load("parkinsons")
    owners = _owners(table.owners)
    return _made(
        _standard(table.features),
        table.labels > PARKINSONS_SEVERE,
        owners,
        _share(owners, PARKINSONS_TRAIN, seed),
        5,
    )


SETS: dict[str, Callable[[int], Personalized]] = {
    "har": har,
    "har_fifth": har_fifth,
    "computer_buyers": computer_buyers,
    "school": school,
    "landmine": landmine,
    "parkinsons": parkinsons,
}


def held_back(data: Personalized, seed: int, share: float = 0.3) -> Personalized:
    """The training records alone, some of each peer's held back to choose parameters on; nobody is
    left with none."""
    features, labels, owners = data.part(True)
    return Personalized(features, labels, owners, _share(owners, 1 - share, seed), data.stumps)


def _made(
    features: Array, positive: Bools, owners: Ints, train: Bools, stumps: int
) -> Personalized:
    constant = np.ones((len(features), 1))
    return Personalized(
        np.hstack((features, constant)), np.where(positive, 1.0, -1.0), owners, train, stumps
    )


def _share(owners: Ints, share: float, seed: int) -> Bools:
    """So large a part of each owner's records, rounded, at least one, drawn at random."""
    rng, chosen = np.random.default_rng(seed), np.zeros(len(owners), bool)
    for owner in range(int(owners.max()) + 1):
        rows = np.flatnonzero(owners == owner)
        chosen[rng.choice(rows, max(1, round(share * len(rows))), replace=False)] = True
    return chosen


def _standard(features: Array) -> Array:
    spread = features.std(axis=0)
    return np.asarray((features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def _owners(owners: Ints | None) -> Ints:
    if owners is None:
        raise ValueError("this set has no owners")
    return owners
