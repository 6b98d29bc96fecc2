"""Sums of single records' clipped gradients of a network, in whole grains (silo:SILO-10).

    S = trunc( unit * sum over chunks of  fl( sum over records j of the chunk of c_j g_j ) )
    c_j = min(1, C' / |g_j|),     C' = (C - sqrt(d)/unit) / ((1 + e) (1 + margins))

g_j is never formed where a layer allows it: its norm is that of its two sides, and the weighted sum
is one product. C' is shorter than the clip C by all that rounding can do: e is what the sums of two
neighboring sets of records may differ by because floats were added in another order, sqrt(d) grains
are what cutting to whole grains may.

A record has the same bits whatever the other records are: chunks have one shape, and every layer
treats records one by one. Without coins record j sits in slot j, so only one chunk ever differs.
With coins the records that were taken move together, and then a record must have the same bits in
every slot: that is tried on public rows (`slots_alike`), and where it fails nobody moves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.tasks.counted import counted
from bruit.tasks.networks.with_torch.batched_layers import Outer, Term
from bruit.tasks.networks.with_torch.network import Batch, PeerNetwork, public_rows
from bruit.tasks.networks.with_torch.threads import threads_for

MOST_RECORDS = 2**20  # of one peer; the charge for rounding is made for so many
NUMBERS_AT_ONCE = 1 << 23  # numbers of a chunk, all layers together
LARGEST_CHUNK, SMALLEST_CHUNK = {"float64": 512, "float32": 128}, 16
ROUNDING = {"float64": 2.0**-53, "float32": 2.0**-24}
FLOOR = 2.0**-450  # added to norms: more than what underflow can hide from them
LARGEST_SIDE = (
    2.0**40
)  # a record with longer inputs of a layer counts as 0: products keep their digits
SMALLEST_CLIP = 2.0**-20  # beside it what underflow can hide from products is nothing
SMALLEST_FACTOR = 2.0**-60  # and so does one whose gradient is so much longer than the clip


class Clipping(NamedTuple):
    """What records are clipped to, and how their weighted sums are computed."""

    inner: float  # C', what exact weighted gradients are at most as long as
    product: torch.dtype


def clipping(network: PeerNetwork, clip: float, unit: float, moving: bool) -> Clipping:
    """C' for chunks of any size; `moving`: records may be in other slots than their own."""
    exact = moving or network.dtype_name == "float64"
    rounding = ROUNDING["float64" if exact else "float32"]
    chunk = LARGEST_CHUNK[network.dtype_name]
    others = MOST_RECORDS if exact else chunk
    most_chunks = MOST_RECORDS / SMALLEST_CHUNK
    grown = (chunk + 8) * rounding * others + (most_chunks + 8) * 2.0**-53 * MOST_RECORDS
    cut = math.sqrt(network.dim) / unit
    if not clip >= SMALLEST_CLIP:
        raise ConfigError(
            f"the clip is {clip:g}, too small for products of floats; measure the loss in other "
            f"units, so that it is at least {SMALLEST_CLIP:g}"
        )
    if not clip > 2 * cut:
        raise ConfigError(
            f"sums of records are counted in grains of {1 / unit:g}, and a model of {network.dim} "
            f"numbers loses up to {cut:g} by cutting, which is more than half of the clip {clip:g}; "
            "use a larger clip or less noise"
        )
    margins = max(512, 4 * network.dim) * 2.0**-53 + 8 * rounding + 2.0**-40
    return Clipping(
        (clip - cut) / (1 + 2 * grown) / (1 + 4 * margins),
        torch.float64 if exact else torch.float32,
    )


def norms(terms: list[Term]) -> Tensor:
    """At least the norm of every record's gradient, up to a relative error below d 2^-51; what is
    not finite, or has sides too long for products of floats, is not finite  # (r,)."""
    squares, odd = [], None
    for term in terms:
        if isinstance(term, Outer):
            rows = _length(term.rows)
            odd = rows > LARGEST_SIDE if odd is None else odd | (rows > LARGEST_SIDE)
            if len(term.places) > 1:
                rows = torch.sqrt(rows * rows + 1.0)
            squares.append(rows * _length(term.slopes))
        else:
            squares.append(_length(term.gradients))
    found = _length(torch.stack(squares, dim=1))
    return found if odd is None else torch.where(odd, torch.inf, found)


def _length(rows: Tensor) -> Tensor:
    return torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64) + FLOOR


def factors(found: Tensor, taken: Tensor, inner: float) -> Tensor:
    """By what every record's gradient is multiplied; 0 for what is not finite or not taken
    # (r,)."""
    quotient = inner / found
    wanted = torch.clamp(quotient, max=1.0)
    usable = taken & torch.isfinite(found) & (quotient > SMALLEST_FACTOR)
    return torch.where(usable, wanted, 0.0)


def weighted(
    network: PeerNetwork, terms: list[Term], each: Tensor, clean: bool, peers: int, how: Clipping
) -> Array:
    """Row k: the sum over the records of peer k of each[j] g_j; `clean`: all gradients are finite,
    those that do not count too  # (peers, d)."""
    answer = np.empty((peers, network.dim))
    used = each > 0
    times = each.to(how.product)

    def placed(place: int, part: Tensor) -> None:
        where = network.places[place]
        answer[:, where.begin : where.end] = part.reshape(peers, -1).numpy()

    def kept(rows: Tensor) -> Tensor:
        """Without what does not count, where that might not be finite, by peers."""
        finite = rows if clean else torch.where(used[:, None], rows, 0.0)
        return finite.to(how.product).reshape(peers, -1, rows.shape[1])

    for term in terms:
        if isinstance(term, Outer):
            slopes = kept(term.slopes) * times.reshape(peers, -1, 1)
            placed(term.places[0], torch.bmm(slopes.transpose(1, 2), kept(term.rows)))
            if len(term.places) > 1:
                placed(term.places[1], slopes.sum(1))
        else:
            placed(term.place, torch.bmm(times.reshape(peers, 1, -1), kept(term.gradients)))
    return answer


def chunk_of(network: PeerNetwork, most: int) -> int:
    """How many records of a peer are in a chunk, where nobody has more than `most`: a power of
    two."""
    room = NUMBERS_AT_ONCE // max(1, network.numbers if network.batched else 2 * network.dim)
    wanted = min(max(room, 1), LARGEST_CHUNK[network.dtype_name], 2 ** math.ceil(math.log2(most)))
    return max(SMALLEST_CHUNK, 2 ** int(math.log2(wanted)))


def slots_of(taken: Bools, moving: bool) -> tuple[Ints, Bools]:
    """Which record of each peer is in which slot, and which slots are used: every record in its
    own, or the taken ones moved together  # (k, slots) twice."""
    if not moving:
        return np.broadcast_to(np.arange(taken.shape[1]), taken.shape), taken
    counts = taken.sum(axis=1)
    order = np.argsort(~taken, axis=1, kind="stable")[:, : max(1, int(counts.max(initial=0)))]
    return order, np.arange(order.shape[1]) < counts[:, None]


class RecordChunks(NamedTuple):
    """Records of some peers and their models, to be taken through a network chunk by chunk."""

    models: Array  # (k, d)
    features: Array  # (k, m, p)
    targets: Array  # (k, m)

    def __repr__(self) -> str:
        return counted("RecordChunks", self._asdict())

    def terms(self, network: PeerNetwork, slots: Ints, used: Bools) -> tuple[list[Term], Tensor]:
        """Of one chunk: gradients of its records, and which slots count  # (k, chunk)."""
        peers = np.arange(len(slots))[:, None]
        features = np.where(used[:, :, None], self.features[peers, slots], 0.0)
        targets = np.where(used, self.targets[peers, slots], self.targets[:, :1])
        batch: Batch = network.batch(features, targets)
        return network.record_terms(self.models_met(), batch), torch.from_numpy(used.reshape(-1))

    def models_met(self) -> Array:
        """One row where all peers have the same model, else one a peer."""
        shared = len(self.models) == 1 or bool((self.models == self.models[:1]).all())
        return self.models[:1] if shared else self.models


def chunks(slots: Ints, used: Bools, chunk: int) -> list[tuple[Ints, Bools]]:
    """Slots in chunks of one size; the last is filled up with empty ones."""
    room = -(-slots.shape[1] // chunk) * chunk
    more = ((0, 0), (0, room - slots.shape[1]))
    all_slots, all_used = np.pad(slots, more), np.pad(used, more)
    return [
        (all_slots[:, k : k + chunk], all_used[:, k : k + chunk]) for k in range(0, room, chunk)
    ]


class RecordAsk(NamedTuple):
    """What a sum over records is told: `chunk` records go through at a time, `moving` says whether
    the taken ones are moved together."""

    network: PeerNetwork
    records: RecordChunks
    chunk: int
    moving: bool

    def threads(self, peers: int) -> AbstractContextManager[None]:
        """Of a chunk of so many peers."""
        width = max(self.network.numbers, self.network.dim)
        return threads_for(6.0 * peers * self.chunk * width)

    def told(self, slots: Ints, used: Bools) -> tuple[list[Term], Tensor]:
        """Of one chunk. A record at which the network raises counts as nothing: an exception would
        tell of it. Where empty slots raise too, it is not the record's doing."""
        try:
            return self.records.terms(self.network, slots, used)
        except Exception:  # whatever a stranger's module raises
            self.records.terms(self.network, slots, np.zeros_like(used))
            return self.records.terms(self.network, slots, self._silent(slots, used))

    def _silent(self, slots: Ints, used: Bools) -> Bools:
        """Which of the used slots raise nothing, each tried alone."""
        found = np.zeros_like(used)
        for place in zip(*np.nonzero(used), strict=True):
            one = np.zeros_like(used)
            one[place] = True
            with suppress(Exception):
                self.records.terms(self.network, slots, one)
                found[place] = True
        return found

    def lengths(self, taken: Bools) -> Iterator[tuple[list[Term], Tensor, Tensor]]:
        """Chunk by chunk: gradients of records, their norms, and which of them count."""
        for slots, used in chunks(*slots_of(taken, self.moving), self.chunk):
            terms, counted = self.told(slots, used)
            yield terms, norms(terms), counted


def clipped_sums(asked: RecordAsk, taken: Bools, clip: float, unit: float) -> Ints:
    """Row k: the sum of the clipped gradients of the records taken, in whole grains  # (k, d)."""
    network, peers = asked.network, len(taken)
    how = clipping(network, clip, unit, asked.moving)
    total = np.zeros((peers, network.dim))
    with asked.threads(peers):
        for terms, lengths, counted in asked.lengths(taken):
            each, clean = factors(lengths, counted, how.inner), bool(torch.isfinite(lengths).all())
            total += weighted(network, terms, each, clean, peers, how)
    return np.trunc(unit * total).astype(np.int64)


def votes(asked: RecordAsk, taken: Bools, clip: float) -> Ints:
    """Row k: how many of the records taken have a gradient shorter than the clip, minus the others
    # (k,)."""
    found = np.zeros(len(taken), np.int64)
    with asked.threads(len(taken)):
        for _, lengths, counted in asked.lengths(taken):
            short = torch.where(lengths < clip, 1, -1) * counted
            found += short.reshape(len(taken), -1).sum(1).numpy()
    return found


def slots_alike(asked: RecordAsk) -> bool:
    """Whether a record has the same bits in every slot of a chunk, whatever is in the others; tried
    on public rows, with a made-up record in each slot among two crowds, in the shapes and threads
    of what is asked."""
    shape = (len(asked.records.models_met()), len(asked.records.models), asked.chunk)
    if shape not in asked.network.alike:
        with asked.threads(shape[1]):
            asked.network.alike[shape] = _tried_slots(asked.network, *shape)
    return asked.network.alike[shape]


def _tried_slots(network: PeerNetwork, models: int, peers: int, chunk: int) -> bool:
    width = math.prod(network.shape)
    many = peers * chunk
    crowd = public_rows(2 * many, (width,), seed=11).numpy().reshape(2, many, width)
    one = public_rows(1, (width,), seed=12).numpy()
    start = np.tile(network.start, (models, 1))
    found: list[Tensor] = []
    for features in (crowd[0], 3.0 * crowd[1], np.broadcast_to(one, (many, width))):
        here = np.array(features)
        here[[0, chunk - 1, -1]] = one[0]
        batch = network.batch(here.reshape(peers, chunk, width), np.zeros((peers, chunk)))
        rows = torch.cat([_sides(term) for term in network.record_terms(start, batch)], dim=1)
        found.append(rows if features.strides[0] == 0 else rows[[0, chunk - 1, -1]])
    first = found[0][:1]
    return all(bool((rows == first).all()) for rows in found)


def _sides(term: Term) -> Tensor:
    return torch.cat([term.rows, term.slopes], dim=1) if isinstance(term, Outer) else term.gradients
