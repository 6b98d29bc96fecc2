"""Splits: who holds which record. Every peer gets at least one, or the split is refused by name.

Splits are part of the experiment, not of any peer's secret: they come from an explicit seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.tasks.counted import Counted

DIRICHLET_DRAWS = 100


@dataclass(frozen=True, eq=False)
class Split(Counted):
    """Peer i holds the records rows[starts[i]:starts[i + 1]]; rows repeat only with replacement."""

    rows: Ints  # (r,)
    starts: Ints  # (n + 1,)

    @property
    def peers(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> Ints:
        return np.diff(self.starts)

    def of(self, peer: int) -> Ints:
        """The rows peer holds."""
        return self.rows[self.starts[peer] : self.starts[peer + 1]]


def iid(
    labels: Array, peers: int, seed: int, sizes: Ints | int | None = None, replacement: bool = False
) -> Split:
    """Records dealt at random: as evenly as possible, or `sizes` of them a peer; replacement draws
    them anew."""
    _check_peers(peers, len(labels), replacement)
    generator = np.random.default_rng(seed)
    if sizes is None:
        even = len(labels) // peers + (np.arange(peers) < len(labels) % peers).astype(np.int64)
        counts = np.maximum(even, 1)
    else:
        counts = np.broadcast_to(np.asarray(sizes, dtype=np.int64), (peers,))
    _check_sizes(counts)
    total = int(counts.sum())
    if replacement:
        return Split(generator.integers(0, len(labels), total), _starts(counts))
    if total > len(labels):
        raise ConfigError(
            f"{peers} peers of these sizes need {total} records, but there are {len(labels)}; "
            "ask for fewer peers or smaller sizes, or deal copies: split = replicate:SIZE"
        )
    return Split(generator.permutation(len(labels))[:total], _starts(counts))


def by_owner(owners: Ints, peers: int | None = None) -> Split:
    """One peer an owner, in the order of the owners' numbers: as many peers as owners, nobody is
    left out unasked."""
    count = len(np.unique(owners))
    if peers is not None and peers != count:
        fewer = 1 <= peers < count
        few = (
            f"split='owner:{peers}', which leaves out the last {count - peers}"
            if fewer
            else "split='iid'"
        )
        raise ConfigError(
            f"{peers} peers were asked for, but the data has {count} owners, and every owner is a"
            f" peer; ask for {count} peers, or use {few}"
        )
    return first_owners(owners, count)


def first_owners(owners: Ints, count: int) -> Split:
    """One peer an owner, for the first owners in the order of their numbers; the others' records
    belong to nobody."""
    names, codes = np.unique(owners, return_inverse=True)
    if not 1 <= count <= len(names):
        raise ConfigError(
            f"split='owner:{count}' is of the first {count} owners, but the data has {len(names)};"
            f" ask for 1 to {len(names)}"
        )
    kept = np.flatnonzero(codes < count)
    order = kept[np.argsort(codes[kept], kind="stable")]
    return Split(order.astype(np.int64), _starts(np.bincount(codes[kept], minlength=count)))


def is_by_owner(split: str) -> bool:
    """Whether a peer is an owner, so that epsilons speak of all that an owner holds."""
    return split.split(":")[0] == "owner"


def dirichlet(labels: Array, peers: int, concentration: float, seed: int) -> Split:
    """Label skew: the records of each class are dealt in proportions drawn from
    Dirichlet(concentration, ..).

    A small concentration gives each peer few classes, a large one is close to iid. Draws that leave
    a peer without records are repeated, at most 100 times.
    """
    _check_peers(peers, len(labels), replacement=False)
    if not concentration > 0:
        raise ConfigError(
            f"the Dirichlet concentration is {concentration}; it must be positive (0.1 skewed, 100 "
            f"even)"
        )
    generator = np.random.default_rng(seed)
    classes = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    holders = np.zeros(len(labels), dtype=np.int64)
    for _ in range(DIRICHLET_DRAWS):
        for members in classes:
            shares = np.cumsum(generator.dirichlet(np.full(peers, concentration)))
            cuts = np.minimum((shares[:-1] * len(members)).round().astype(np.int64), len(members))
            holders[generator.permutation(members)] = np.searchsorted(
                cuts, np.arange(len(members)), side="right"
            )
        counts = np.bincount(holders, minlength=peers)
        if counts.min() > 0:
            return Split(np.argsort(holders, kind="stable"), _starts(counts))
    raise ConfigError(
        f"peer {int(counts.argmin())} has no records after {DIRICHLET_DRAWS} Dirichlet draws; "
        f"ask for fewer peers than {peers} or a concentration above {concentration:g}"
    )


def sized(labels: Array, peers: int, low: int, high: int, seed: int) -> Split:
    """Peers of unequal size: low to high records each, uniformly; records left over belong to
    nobody."""
    if low < 1 or high < low:
        raise ConfigError(f"sizes {low} to {high} are no range; use 1 <= low <= high")
    _check_peers(peers, len(labels), replacement=False)
    counts = np.random.default_rng([seed, 1]).integers(low, high + 1, peers)
    return iid(labels, peers, seed, sizes=counts)


def of_sizes(labels: Array, peers: int, counts: Sequence[int], seed: int) -> Split:
    """Peers of given sizes; records left over belong to nobody."""
    if len(counts) != peers or min(counts) < 1:
        raise ConfigError(
            f"split='sizes:...' names {', '.join(map(str, counts))} records for {peers} peers; give "
            "one size a peer, each 1 or more"
        )
    return iid(labels, peers, seed, sizes=np.array(counts, np.int64))


def divide(whole: Split, share: float, seed: int) -> tuple[Split, Split]:
    """Every peer's records in two, those it learns from and a share it is judged on: at least one
    of each."""
    if whole.sizes.min() < 2:
        raise ConfigError(
            f"peer {int(whole.sizes.argmin())} holds 1 record, and needs one to learn from and one"
            " to be judged on; give peers more records, or judge them on those they learn from"
            " (own_test = 0)"
        )
    if len(np.unique(whole.rows)) < len(whole.rows):
        raise ConfigError(
            "records that were drawn with replacement may be learned from and judged on at once;"
            " use another split, or own_test = 0"
        )
    peers = np.repeat(np.arange(whole.peers), whole.sizes)
    mixed = np.lexsort((np.random.default_rng([seed, 3]).random(len(peers)), peers))
    place = np.arange(len(peers)) - whole.starts[peers]
    test_sizes = np.clip(np.round(share * whole.sizes).astype(np.int64), 1, whole.sizes - 1)
    test = place < test_sizes[peers]
    rows = whole.rows[mixed]
    return Split(rows[~test], _starts(whole.sizes - test_sizes)), Split(
        rows[test], _starts(test_sizes)
    )


def parse(split: str, labels: Array, owners: Ints | None, peers: int | None, seed: int) -> Split:
    """The split a word names: iid, owner, owner:COUNT, dirichlet:CONCENTRATION, sized:LOW:HIGH,
    sizes:A:B:..., replicate:SIZE."""
    family, *numbers = split.split(":")
    if family == "owner":
        if owners is None:
            raise ConfigError(
                "split='owner' needs an owner column, but this data has none; use split='iid'"
            )
        if not numbers:
            return by_owner(owners, peers)
        if len(numbers) == 1 and numbers[0].isdecimal():
            if peers is not None and peers != int(numbers[0]):
                raise ConfigError(
                    f"split={split!r} makes {numbers[0]} peers, but {peers} were asked for;"
                    " make them equal"
                )
            return first_owners(owners, int(numbers[0]))
    if peers is None:
        raise ConfigError(f"split={split!r} does not say how many peers there are; give peers=")
    try:
        if family == "iid" and not numbers:
            return iid(labels, peers, seed)
        if family == "dirichlet" and len(numbers) == 1:
            return dirichlet(labels, peers, float(numbers[0]), seed)
        if family == "sized" and len(numbers) == 2:
            return sized(labels, peers, int(numbers[0]), int(numbers[1]), seed)
        if family == "sizes" and numbers:
            return of_sizes(labels, peers, [int(number) for number in numbers], seed)
        if family == "replicate" and len(numbers) == 1:
            return iid(labels, peers, seed, sizes=int(numbers[0]), replacement=True)
    except ValueError as error:
        raise ConfigError(f"split={split!r} has a part that is no number: {error}") from error
    raise ConfigError(
        f"split={split!r} is not known; use 'iid', 'owner', 'owner:5' (the first 5 owners only), "
        "'dirichlet:0.5', 'sized:5:50' (low, high), 'sizes:80:40:20' (one number a peer) or "
        "'replicate:8' (8 records each, drawn with replacement)"
    )


def _starts(counts: Ints) -> Ints:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])


def _check_sizes(counts: Ints) -> None:
    if counts.min() < 1:
        raise ConfigError(
            f"peer {int(counts.argmin())} has no records; give every peer a size of at least 1"
        )


def _check_peers(peers: int, records: int, replacement: bool) -> None:
    if peers < 1:
        raise ConfigError(f"{peers} peers were asked for; there must be at least 1")
    if records < 1:
        raise ConfigError("there is no record to deal to peers")
    if peers > records and not replacement:
        raise ConfigError(
            f"peer {records} has no records; ask for fewer peers than {peers} (there are {records} "
            "records), or draw with replacement (split='replicate:SIZE')"
        )
