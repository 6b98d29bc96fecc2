"""Records: what every peer holds, packed so that all peers are answered by a few array operations.

Peers' records are padded to one (peers, records, features) array with a weight of 1/m on each of a
peer's m records and 0 on padding. When padding would take more than four times the records, peers
are grouped by size (classes of powers of two), one block each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bruit.arrays import Array, Ints
from bruit.digests import ASIDE
from bruit.errors import ConfigError, PrivacyError
from bruit.tasks.counted import Counted, counted
from bruit.tasks.data.columns import in_digits
from bruit.tasks.data.public import Fact, Source, counts, listed, said
from bruit.tasks.data.split import Split, by_owner
from bruit.tasks.task import Manifest

if TYPE_CHECKING:
    from bruit.tasks.data.recipe import Recipe

# Numbers touched at once (8 MB): memory stays bounded for a million peers; smaller chunks were
# measured slower.
CHUNK_NUMBERS = 1 << 20
PADDING_LIMIT = 4
# Divides unit rows, so that rounding cannot leave a norm above the declared bound of 1.
ABOVE_ROUNDING = 1.0 + 1e-15
# How far a norm may exceed its declared bound by rounding; sensitivities are enlarged by more than
# that.
NORM_ROUNDING = 1e-12


class Part(NamedTuple):
    """The records of a few peers, padded; `rows` says which rows of the asked batch they answer."""

    rows: slice | Ints
    features: Array  # (k, m, p)
    targets: Array  # (k, m)
    weights: Array  # (k, m) 1/size on records, 0 on padding

    def __repr__(self) -> str:
        return counted("Part", self._asdict())


@dataclass(frozen=True, eq=False)
class Block(Counted):
    """Peers of about the same size, padded to the largest."""

    peers: Ints  # (k,)
    features: Array  # (k, m, p)
    targets: Array  # (k, m)
    weights: Array  # (k, m)


@dataclass(frozen=True, eq=False)
class Sample(Counted):
    """Records that belong to no peer: the held-out, public part."""

    features: Array  # (t, p)
    targets: Array  # (t,)


@dataclass(frozen=True, eq=False, kw_only=True)
class Records(Counted):
    """All peers' records, prepared, and what was declared while preparing them.

    row_bound: declared bound on the norm of every record, intercept included; infinite if none was
    declared. Rows that break it are refused. row_norm: the norm it is in, 2 (L2) or 1 (L1, which
    bounds L2 as well). classes_from: whether the classes were agreed on, or are those that occur.
    label_unit: one unit of the target in units of the label (regression on a standardized label).
    used: what of a data set these are, and what was left out (`bruit.tasks.data.use`). _recipe: how
    they were prepared, for new rows; it hides nothing, so no noise is addressed by it (`digests`).
    """

    blocks: tuple[Block, ...]
    sizes: Ints  # (n,)
    block_of: Ints  # (n,)
    place_of: Ints  # (n,) row inside its block
    held_out: Sample | None = None
    classes: tuple[str, ...] = ()
    row_bound: float = inf
    label_unit: float = 1.0
    manifest: Manifest = field(default_factory=dict)
    row_norm: int = 2
    classes_from: Source = "agreed"
    used: Manifest = field(default_factory=dict, metadata=ASIDE)
    _recipe: "Recipe | None" = None

    def __post_init__(self) -> None:
        self.check_rows()

    def check_rows(self) -> None:
        """Refuse rows that are longer than declared, naming who holds one and nothing of it."""
        for block in self.blocks:
            refuse_long_rows(block.features, block.peers, self.row_bound, self.row_norm)

    def check_two_labels(self, asker: str) -> None:
        """Refuse labels other than -1 and 1, naming the first record that has one."""
        for block in self.blocks:
            odd = np.argwhere((np.abs(block.targets) != 1) & (block.weights > 0))
            if len(odd):
                place, record = odd[0]
                raise ConfigError(
                    f"record {record} of peer {block.peers[place]} has label "
                    f"{block.targets[place, record]:g}; {asker} needs labels -1 and 1"
                )

    @property
    def peers(self) -> int:
        return len(self.sizes)

    @property
    def columns(self) -> int:
        """Features of one record, intercept included."""
        return int(self.blocks[0].features.shape[2])

    @staticmethod
    def of(
        features: Array,
        targets: ArrayLike,
        owners: Ints,
        rows: str = "none",
        intercept: bool = False,
        classes: int | Sequence[str] | None = None,
    ) -> "Records":
        """Records from arrays in hand; owners are the peers 0..n-1, rows is "unit" or "none".

        classes: the classes there may be, agreed on beforehand, for softmax: how many (targets are
        0, 1, ..), or their names (targets are names, or places in that order). A class that no
        record has is one all the same. Left out, the classes are those that occur, and listed as
        public.
        """
        if classes is not None:
            targets, agreed = class_places(targets, classes)
        targets = np.asarray(targets)
        _check_arrays(features, targets)
        _check_owners(owners, len(targets))
        ready, bound = finish_rows(np.asarray(features, dtype=np.float64), rows, intercept)
        values = np.asarray(targets, dtype=np.float64)
        if classes is None:
            agreed = _classes_that_occur(values)
        sizes = np.bincount(np.asarray(owners, dtype=np.int64))
        manifest: Manifest = {
            "data": {"name": "arrays"},
            "rows": rows,
            "intercept": intercept,
            "standardize": "none",
            "public": said((Fact(f"the number of peers, {len(sizes)}", "agreed"), counts(sizes))),
        }
        return replace(
            pack(
                ready,
                values,
                by_owner(np.asarray(owners, dtype=np.int64)),
                classes=agreed,
                row_bound=bound,
                manifest=manifest,
            ),
            classes_from="private rows" if classes is None else "agreed",
            _recipe=_of_arrays(ready.shape[1] - intercept, rows, intercept, agreed),
        )

    @property
    def recipe(self) -> "Recipe | None":
        """How new rows become rows of these columns; None where nobody knows."""
        return self._recipe

    def parts(self, ids: Ints, width: int) -> Iterator[Part]:
        """The records of these peers, in chunks; `width` numbers a peer are computed with (its
        model, say)."""
        self._check_ids(ids)
        if len(ids) == 1:
            peer = int(ids[0])
            block, place = self.blocks[int(self.block_of[peer])], int(self.place_of[peer])
            one = slice(place, place + 1)
            yield Part(slice(0, 1), block.features[one], block.targets[one], block.weights[one])
            return
        if len(self.blocks) == 1:
            yield from _chunks(self.blocks[0], ids, None, width)
            return
        homes = self.block_of[ids]
        for index in np.unique(homes).tolist():
            rows = np.flatnonzero(homes == index)
            yield from _chunks(self.blocks[index], self.place_of[ids[rows]], rows, width)

    def drawn(self, ids: Ints, uniforms: Array, width: int) -> Iterator[Part]:
        """Records drawn with replacement: uniform u names record floor(u * m) of a peer's m."""
        batch = uniforms.shape[1]
        for part in self.parts(ids, width):
            sizes = self.sizes[ids[part.rows]]
            picks = np.minimum(
                (uniforms[part.rows] * sizes[:, None]).astype(np.int64), sizes[:, None] - 1
            )
            peers = np.arange(len(picks))[:, None]
            weights = np.broadcast_to(np.float64(1.0 / batch), picks.shape)
            yield Part(part.rows, part.features[peers, picks], part.targets[peers, picks], weights)

    def together(self) -> Part:
        """All records as those of one peer: for observers' references only."""
        kept = [block.weights > 0 for block in self.blocks]
        features = np.concatenate([b.features[k] for b, k in zip(self.blocks, kept, strict=True)])
        targets = np.concatenate([b.targets[k] for b, k in zip(self.blocks, kept, strict=True)])
        weights = np.full((1, len(targets)), 1.0 / len(targets))
        return Part(slice(0, 1), features[None], targets[None], weights)

    def _check_ids(self, ids: Ints) -> None:
        if len(ids) == 1 and 0 <= int(ids[0]) < self.peers:
            return
        if len(ids) and (ids.min() < 0 or ids.max() >= self.peers):
            guilty = int(ids[(ids < 0) | (ids >= self.peers)][0])
            raise ConfigError(
                f"peer {guilty} was asked for its records, but peers are 0..{self.peers - 1}"
            )


def class_places(targets: ArrayLike, classes: int | Sequence[str]) -> tuple[Array, tuple[str, ...]]:
    """Targets as places in the agreed classes, and the names of these; a target that is none of
    them is refused."""
    names = (
        tuple(str(place) for place in range(classes))
        if isinstance(classes, int)
        else tuple(classes)
    )
    if len(names) < 2 or len(set(names)) < len(names):
        raise ConfigError(
            f"agreed classes are at least two different ones, found {', '.join(names) or 'none'}"
        )
    found = np.asarray(targets)
    if found.dtype.kind in "US":
        place = {name: float(number) for number, name in enumerate(names)}
        odd = next((row for row, text in enumerate(found.tolist()) if text not in place), None)
        if odd is None:
            return np.array([place[text] for text in found.tolist()]), names
    else:
        values = found.astype(np.float64)
        wrong = np.flatnonzero(~np.isin(values, np.arange(len(names))))
        if not len(wrong):
            return values, names
        odd = int(wrong[0])
    raise ConfigError(
        f"the target of row {odd} is {found[odd]}, which is none of the {len(names)} agreed "
        f"classes; "
        f"targets are their names ({listed(names)}) or their places, 0 to {len(names) - 1}"
    )


def refuse_long_rows(features: Array, peers: Ints, bound: float, order: int = 2) -> None:
    """Refuse rows (peers, .., p) of a norm above a finite declared bound; a bound is a promise
    about every record."""
    if order not in (1, 2):
        raise ConfigError(f"rows are bounded in the L1 or L2 norm, found order {order}")
    if np.isnan(bound) or bound <= 0:
        raise ConfigError(
            f"the declared bound on the norm of a row must be positive, found {bound}"
        )
    if not isfinite(bound):
        return
    squared = order == 2
    sizes = (
        np.einsum("...p,...p->...", features, features)
        if squared
        else np.abs(features).sum(axis=-1)
    )
    long = ~(sizes <= (bound * (1 + NORM_ROUNDING)) ** (2 if squared else 1))
    if long.any():
        guilty = int(peers[np.argwhere(long)[0][0]])
        raise PrivacyError(
            f"peer {guilty} holds a row longer than the declared bound {bound:g} (L{order}), so"
            " what follows from that bound would be false; scale rows down (rows='unit',"
            " bounded_records), or declare a larger bound, chosen without looking at the rows"
        )


def finish_rows(
    features: Array, rows: str, intercept: bool, constant: float = 1.0
) -> tuple[Array, float]:
    """Append the intercept, a column of one constant, then bound the rows: "unit" divides each by
    its norm, so ||x|| <= 1 with the intercept."""
    if rows not in ("unit", "none"):
        raise ConfigError(
            f"rows={rows!r} is not known; use 'unit' (each row divided by its norm) or 'none'"
        )
    ready = np.empty((len(features), features.shape[1] + intercept))
    ready[:, : features.shape[1]] = features
    if intercept:
        ready[:, -1] = constant
    if rows == "none":
        return ready, inf
    norms = np.sqrt(np.einsum("rp,rp->r", ready, ready)) * ABOVE_ROUNDING
    ready /= np.where(norms > 0, norms, 1.0)[:, None]
    return ready, 1.0


def pack(
    features: Array,
    targets: Array,
    split: Split,
    *,
    held_out: Sample | None = None,
    classes: tuple[str, ...] = (),
    row_bound: float = inf,
    label_unit: float = 1.0,
    manifest: Manifest | None = None,
    row_norm: int = 2,
    used: Manifest | None = None,
    recipe: "Recipe | None" = None,
) -> Records:
    """Deal prepared records to peers and pad them into blocks."""
    sizes = np.diff(split.starts)
    blocks, block_of, place_of = (
        [],
        np.zeros(len(sizes), dtype=np.int64),
        np.zeros(len(sizes), dtype=np.int64),
    )
    for index, peers in enumerate(_size_classes(sizes)):
        blocks.append(_pad(features, targets, split, peers))
        block_of[peers], place_of[peers] = index, np.arange(len(peers))
    return Records(
        blocks=tuple(blocks),
        sizes=sizes,
        block_of=block_of,
        place_of=place_of,
        held_out=held_out,
        classes=classes,
        row_bound=row_bound,
        label_unit=label_unit,
        manifest=manifest or {},
        row_norm=row_norm,
        used=used or {},
        _recipe=recipe,
    )


def _classes_that_occur(values: Array) -> tuple[str, ...]:
    """The targets in order, as texts; none where there are more than 100, which are no classes."""
    found = np.unique(values)
    if len(found) > 100:
        return ()
    return tuple(in_digits(one) if one.is_integer() else f"{one:g}" for one in found.tolist())


def _of_arrays(columns: int, rows: str, intercept: bool, classes: tuple[str, ...]) -> "Recipe":
    """Arrays have no names: their columns are x0, x1, .."""
    from bruit.tasks.data.recipe import Recipe

    return Recipe.plain([f"x{k}" for k in range(columns)], rows, intercept, classes=classes)


def _size_classes(sizes: Ints) -> list[Ints]:
    everyone = np.arange(len(sizes))
    if sizes.max() * len(sizes) <= PADDING_LIMIT * sizes.sum():
        return [everyone]
    exponents = np.ceil(np.log2(sizes)).astype(np.int64)
    return [everyone[exponents == e] for e in np.unique(exponents)]


def _pad(features: Array, targets: Array, split: Split, peers: Ints) -> Block:
    starts, sizes = split.starts[peers], np.diff(split.starts)[peers]
    longest = int(sizes.max())
    positions = np.arange(longest)
    real = positions < sizes[:, None]  # (k, m)
    rows = split.rows[np.where(real, starts[:, None] + positions, starts[:, None])]
    padded = features[rows]
    if bool(real.all()):
        return Block(
            peers, padded, targets[rows], np.broadcast_to(np.float64(1.0 / longest), real.shape)
        )
    padded[~real] = 0.0
    return Block(peers, padded, targets[rows], np.where(real, 1.0 / sizes[:, None], 0.0))


def _chunks(block: Block, places: Ints, rows: Ints | None, width: int) -> Iterator[Part]:
    """Chunks of a block; views when the places are consecutive (all peers, one peer), copies
    otherwise."""
    heaviest = max(block.features.shape[1] * block.features.shape[2], width)
    step = max(1, CHUNK_NUMBERS // heaviest)
    for begin in range(0, len(places), step):
        end = min(begin + step, len(places))
        where: slice | Ints = slice(begin, end) if rows is None else rows[begin:end]
        inside = _slice_of(places[begin:end])
        yield Part(where, block.features[inside], block.targets[inside], block.weights[inside])


def _slice_of(places: Ints) -> slice | Ints:
    first = int(places[0])
    if int(places[-1]) - first != len(places) - 1:
        return places
    if len(places) > 2 and not bool((places[1:] > places[:-1]).all()):
        return places
    return slice(first, first + len(places))


def _check_arrays(features: Array, targets: Array) -> None:
    if features.ndim != 2 or targets.shape != features.shape[:1]:
        raise ConfigError(
            f"features are {features.shape} and targets {targets.shape}; "
            "give one row of features and one target a record: (r, p) and (r,)"
        )
    bad = np.argwhere(~np.isfinite(features))
    if len(bad):
        raise ConfigError(
            f"features hold a value that is no finite number at row {bad[0][0]}, column"
            f" {bad[0][1]}; remove or fill it"
        )
    if not bool(np.isfinite(targets).all()):
        row = int(np.flatnonzero(~np.isfinite(targets))[0])
        raise ConfigError(f"the target of row {row} is no finite number; remove the row or fill it")


def _check_owners(owners: Ints, records: int) -> None:
    if owners.shape != (records,):
        raise ConfigError(
            f"owners are {owners.shape}, but there are {records} records; name one peer a record"
        )
    counts = np.bincount(owners) if records and owners.min() >= 0 else np.zeros(1, dtype=np.int64)
    if counts.min() < 1:
        raise ConfigError(
            f"peer {int(counts.argmin())} has no records; number the owners 0..n-1 without gaps"
        )
