"""The exact privacy loss of linear gossip in the view of one observer, or of several who collude.

    m(u -> V) = || projection of e_u on row(K_V) ||^2,    K_V = rows e_v (v in V) and (W^t)_{w,.}, t < T, w in N(V) - V

in local-DP units: the Renyi loss of u is m alpha Delta^2 / (2 sigma^2), exactly, so 1 means "as if
u had sent its noisy value to V" (gossip:LG-1, MUF-2, MUF-10). It is unchanged by Chebyshev
acceleration, grows with T and with V, sums to rank(K_V), and is 1 iff u is reconstructible.
Hypotheses: symmetric public W and T that do not depend on the data, Gaussian noise added once per
peer.

Stacking the powers and using an SVD, a QR or a Gram matrix under-reports it badly, since powers
collapse onto few eigenvectors. Here: block Lanczos, which multiplies the last *orthonormal* block,
in coordinates of cells, so that peers nobody can tell apart stay together
(bruit.privacy.exact.twins); exact ranks modulo primes say how many directions each step may keep.

The certificate. Let Q be the computed columns, C_t the coefficients and R_t the normalizations of
step t as they are in memory. Run the same recurrence without rounding: X_0 = Q_0 and X_{t+1} = (W
X_t - sum_{s <= t} X_s C_st) R_t. By induction every column of X is a combination of W^s e_w, s <=
t, w in N(V): X lies in the true space whatever C and R are. It has as many columns as the true
space has dimensions (the exact rank). So if X is close to Q, it spans the true space, and

    sqrt(m(u))  <=  |Q_u| + |D_u|,   D = X - Q,   D_{t+1} = (W D_t - sum_s D_s C_st + F_t) R_t,

F_t being the rounding of step t alone. This equation for D is linear, so nothing can saturate and
hide: a ghost, a direction that rounding puts in the place of a true one, is a D of order one. D is
computed, with F_t replaced by normal numbers of the size of what is rounded there, four ulps (parts
of D along Q, which change the basis and not the space, are removed). Ten times its rows is added to
the square roots of the losses: errors that are worse aligned than random ones by a factor ten are
covered. Two computations that agree show less: both may end with the same ghost. A loss is called
exact when this adds at most 1e-6, and when it is 1 for every peer that an exact null vector shows
to be exposed (they get 1 exactly). Else the same is done in about 30 digits. If even that fails, or
would take too long, the value is a safe upper bound, 1 shared by the cell of a peer, and is called
so.

Certain are the upper bound, the rank when it is the largest possible, and the exposure of all;
elsewhere two primes are believed (wrong about once in 10^10), and rounding errors are taken to be
no better aligned than said, to first order.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.sparse import csr_array

from bruit.arrays import Array, Ints
from bruit.errors import PrivacyError
from bruit.privacy.exact.blas import one_blas_thread
from bruit.privacy.exact.drift import HOPELESS, UNIT, lengths, noise, normals, raised
from bruit.privacy.exact.largest_forms import largest_form
from bruit.privacy.exact.modular import Ranks, krylov_ranks, mixed_words
from bruit.privacy.exact.nulls import null_basis
from bruit.privacy.exact.refined import LARGEST, Basis, given_up, refined_basis
from bruit.privacy.exact.span import (
    KrylovSpan,
    checked_observers,
    checked_steps,
    checked_symmetry,
    krylov_span,
)
from bruit.privacy.exact.twins import Cells, cells_of, folded, graph_residues

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph

Status = Literal["exact", "upper bound"]

TOLERANCE = 1e-6
"""Most that may be added to a loss which is still called exact; chosen after a torus of 256 peers
needed 5e-7."""

EVERY = 16
"""Steps of the short recurrence between two removals of what only changes the basis; chosen for
speed at 22 steps."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Why a loss may be called exact, or why it may not.

    `rank` is the rank of K_V used, `modular` its value under each prime asked (one prime suffices
    when it proves the largest possible rank, `proven`), `orthogonality` the error of the basis,
    `error` the most that was added to a loss for the sake of rounding.
    """

    rank: int
    modular: tuple[int, ...]
    proven: bool
    orthogonality: float
    error: float
    note: str

    def __str__(self) -> str:
        primes = "a prime, which proves it" if self.proven else f"{len(self.modular)} primes"
        return f"rank {self.rank} modulo {primes}; {self.note}"


@dataclass(frozen=True)
class Leverage:
    """Losses m(u -> V) of all peers u in one view; 1 at the observers, who know their own noise."""

    loss: Array  # (n,)
    rank: int
    status: Status
    certificate: Certificate


@dataclass(frozen=True)
class Space:
    """A Krylov space in the coordinates in which it is computed: cells where peers have twins, else
    the peers."""

    matrix: csr_array
    silent: Ints
    starts: Ints
    cells: Cells | None

    @classmethod
    def of(cls, span: KrylovSpan, cells: Cells) -> "Space":
        if cells.count == span.size:
            return cls(span.matrix, span.silent, span.starts, None)
        return cls(folded(span, cells), np.zeros(0, dtype=np.int64), cells.cell[span.starts], cells)

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return int(self.matrix.shape[0])

    def spread(self, values: Array) -> Array:
        """Squared lengths of peers  # (k,)."""
        return values if self.cells is None else self.cells.spread(values)

    def rows(self, basis: Basis, places: Ints) -> Array:
        """The rows of some peers, all columns side by side."""
        columns = np.concatenate(basis.blocks, axis=1)
        return columns[places] if self.cells is None else self.cells.rows(columns, places)


def leverage(
    graph: "Graph",
    observers: Sequence[int] | Ints,
    steps: int,
    *,
    own_noise_known: bool = True,
    secure_aggregation: bool = False,
) -> Leverage:
    """Losses of all peers after so many steps of gossip, in the joint view of the observers (a set;
    one or more).

    own_noise_known=False drops the rows e_v: a weaker adversary, for comparison only.
    secure_aggregation: the observer learns only the weighted sum over its neighborhood, rows e_v
    and (W^t)_{v,.} for t = 1..T (gossip:MUF-X4, REC-3).
    """
    chosen = checked_observers(graph.n, observers)
    if graph.implicit and own_noise_known and not secure_aggregation:
        return everybody_heard(graph.n) if checked_steps(steps) else nothing_heard(graph.n, chosen)
    checked_symmetry(graph)
    span = krylov_span(
        graph,
        chosen,
        checked_steps(steps),
        own_noise_known=own_noise_known,
        secure_aggregation=secure_aggregation,
    )
    known = chosen if own_noise_known and not secure_aggregation else np.zeros(0, dtype=np.int64)
    if span is None:
        return nothing_heard(graph.n, known)
    with one_blas_thread():
        return certified(
            graph, span, krylov_ranks(graph, span), cells_of(span, graph_residues(graph)), known
        )


def group_loss(
    graph: "Graph", observers: Sequence[int] | Ints, steps: int, group: Sequence[int] | Ints
) -> float:
    """Loss when all members of a group change together: max d^T Pi d over |d_u| <= 1, from above
    (gossip:MUF-12).

    At most the sum of |Pi_{uu'}| over the group, and equal to it when the entries are non-negative.
    Without a certificate every cell is charged as if its sum were known.
    """
    chosen, members = checked_observers(graph.n, observers), checked_observers(graph.n, group)
    if np.intersect1d(chosen, members).size:
        raise PrivacyError(
            "a member of the group is an observer; the loss of a peer in its own view is undefined"
        )
    checked_symmetry(graph)
    span = krylov_span(graph, chosen, checked_steps(steps))
    if span is None:
        return 0.0
    places = np.searchsorted(span.peers, members[np.isin(members, span.peers)])
    rows, length = _trusted_rows(graph, span, places)
    inside = rows @ rows.T
    # Entries are off by at most L_u L_u' - |Q_u| |Q_u'|, L the most that lengths can be.
    margin = float(length.sum() ** 2 - lengths(rows).sum() ** 2)
    return largest_form(inside) + max(0.0, margin)


def row_space(graph: "Graph", observers: Sequence[int] | Ints, steps: int) -> Array:
    """Orthonormal columns that span row(K_V), the linear forms the observers know  # (n, rank).

    Without a certificate, the indicators of all cells: a larger space, so that no loss is
    under-reported.
    """
    chosen = checked_observers(graph.n, observers)
    checked_symmetry(graph)
    own = np.zeros((graph.n, chosen.size))
    own[chosen, np.arange(chosen.size)] = 1.0
    span = krylov_span(graph, chosen, checked_steps(steps))
    if span is None:
        return own
    reached = np.setdiff1d(np.arange(span.peers.size), span.silent)
    found, _ = _trusted_rows(graph, span, reached)
    heard = np.zeros((graph.n, found.shape[1]))
    heard[span.peers[reached]] = found
    return np.concatenate((own, heard), axis=1)


def _trusted_rows(graph: "Graph", span: KrylovSpan, places: Ints) -> tuple[Array, Array]:
    """Rows of some peers in an orthonormal basis of the space, and the most their lengths can be.

    Without a certificate, and when the rank is the number of cells, the basis is that of all
    functions of cells.
    """
    found = trusted(graph, span, places)
    return found.rows, found.length


@dataclass(frozen=True)
class Trusted:
    """Rows of some peers in an orthonormal basis of what is heard, the most that they can be long,
    and their losses with equal noise, 1 exactly where exact arithmetic finds a peer exposed. Not
    `exact`: the basis of a larger space, all functions of cells."""

    rows: Array  # (places, columns)
    length: Array  # (places,)
    loss: Array  # (places,)
    certificate: Certificate
    exact: bool


def trusted(graph: "Graph", span: KrylovSpan, places: Ints) -> Trusted:
    """The space of a span in a form that others may go on computing with."""
    ranks, cells = krylov_ranks(graph, span), cells_of(span, graph_residues(graph))
    note = "the ranks modulo the primes contradict each other"
    if ranks.total < cells.count and ranks.consistent:
        with one_blas_thread():
            space = Space.of(span, cells)
            for frame, basis in _attempts(graph, span, space, ranks, cells, None, True):
                values, certificate = _certified(frame, ranks, basis, 0)
                if values is not None:
                    most = np.sqrt(frame.spread(raised(basis)))[places]
                    rows = frame.rows(basis, places)
                    return Trusted(rows, most, values[places], certificate, True)
                note = certificate.note
    whole = ranks.total == cells.count
    rows = cells.rows(np.eye(cells.count), places)
    certificate = Certificate(
        rank=ranks.total,
        modular=tuple(ranks.modular),
        proven=whole,
        orthogonality=0.0,
        error=0.0 if whole else 1.0,
        note="everything is exposed, up to twins who share it" if whole else note,
    )
    return Trusted(rows, lengths(rows), (rows**2).sum(axis=1), certificate, whole)


def nothing_heard(n: int, known: Ints) -> Leverage:
    """No step, or nobody to hear: the observers know themselves and nothing else."""
    loss = np.zeros(n)
    loss[known] = 1.0
    rank = int(known.size)
    return Leverage(
        loss,
        rank,
        "exact",
        Certificate(
            rank=rank,
            modular=(rank,),
            proven=True,
            orthogonality=0.0,
            error=0.0,
            note="nothing is heard",
        ),
    )


def everybody_heard(n: int) -> Leverage:
    """Everybody is a neighbor (gossip:MUF-13): the first messages are the noisy values
    themselves."""
    return Leverage(
        np.ones(n),
        n,
        "exact",
        Certificate(
            rank=n,
            modular=(n,),
            proven=True,
            orthogonality=0.0,
            error=0.0,
            note="everybody is heard in round 1",
        ),
    )


def certified(
    graph: "Graph",
    span: KrylovSpan,
    ranks: Ranks,
    cells: Cells,
    known: Ints,
    room: Array | None = None,
    refine: bool = True,
) -> Leverage:
    """Losses from a described space, its ranks and cells; `known` are observers whose own rows lie
    outside the span.

    room is memory to work in, at least n x rank numbers, for callers who ask again and again;
    without `refine` nothing is done again in 30 digits.
    """
    extra = int(known.size)
    modular = tuple(rank + extra for rank in ranks.modular)
    shared = cells.spread(np.ones(cells.count))
    values: Array | None = None
    if ranks.total == cells.count:
        values = shared
        twins = "" if cells.count == span.size else ", up to twins who share it"
        note = f"the rank equals the number of cells of reached peers: everything is exposed{twins}"
        certificate = Certificate(
            rank=ranks.total + extra,
            modular=modular,
            proven=True,
            orthogonality=0.0,
            error=0.0,
            note=note,
        )
    elif not ranks.consistent or ranks.total > cells.count:
        note = f"the ranks modulo the primes contradict each other: {charge_note(span, cells)}"
        certificate = Certificate(
            rank=ranks.total + extra,
            modular=modular,
            proven=False,
            orthogonality=0.0,
            error=1.0,
            note=note,
        )
    else:
        space = Space.of(span, cells)
        for frame, basis in _attempts(graph, span, space, ranks, cells, room, refine):
            values, certificate = _certified(frame, ranks, basis, extra)
            if values is not None:
                break
        else:
            note = f"{certificate.note}: {charge_note(span, cells)}"
            certificate = replace(certificate, error=1.0, note=note)
    loss = np.zeros(graph.n)
    loss[span.peers] = shared if values is None else np.minimum(values, shared)
    loss[known] = 1.0
    return Leverage(
        loss, certificate.rank, "upper bound" if values is None else "exact", certificate
    )


def charge_note(span: KrylovSpan, cells: Cells) -> str:
    """What the safe bound charges, and to how many."""
    twins = (
        f" ({span.size - cells.count} fewer for twins, who share it)"
        if cells.count < span.size
        else ""
    )
    return f"1 is charged to every reached peer, {span.size} of them{twins}"


def _attempts(
    graph: "Graph",
    span: KrylovSpan,
    space: Space,
    ranks: Ranks,
    cells: Cells,
    room: Array | None,
    refine: bool,
) -> Iterator[tuple[Space, Basis]]:
    """Bases of the same space, each with more care than the last, and their coordinates."""
    yield space, _recurred(space, ranks.profile, room)
    yield space, _completed(space, ranks.profile, _unit_block(space)[None], None)
    frame = replace(space, cells=cells)
    lifted = null_basis(graph, span, cells, ranks, room is None)
    if lifted is not None:
        yield frame, lifted
    if refine and cells.count * ranks.total**2 <= LARGEST:
        yield frame, refined_basis(graph, span, cells, ranks.profile)


def _certified(
    space: Space, ranks: Ranks, basis: Basis, extra: int
) -> tuple[Array | None, Certificate]:
    """The losses if they deserve to be called exact (else None), and the certificate."""
    modular = tuple(rank + extra for rank in ranks.modular)
    if not np.isfinite(basis.drift).all():
        note = "the recurrence is too sensitive to rounding"
        return None, Certificate(
            rank=ranks.total + extra,
            modular=modular,
            proven=ranks.proven,
            orthogonality=basis.error,
            error=1.0,
            note=note,
        )
    higher = raised(basis)
    error = float((higher - basis.values).max())
    values = np.minimum(space.spread(higher), 1.0)
    fault = not error <= TOLERANCE  # nan is no answer
    note = f"rounding {'may move a loss by' if fault else 'moves no loss by more than'} {error:.0e}"
    if not fault and ranks.exposed is not None:
        if float(values[ranks.exposed].min(initial=1.0)) < 1.0 - TOLERANCE:
            fault, note = True, "a peer that exact arithmetic finds exposed has a loss below 1"
        values[ranks.exposed] = 1.0
    certificate = Certificate(
        rank=ranks.total + extra,
        modular=modular,
        proven=ranks.proven,
        orthogonality=basis.error,
        error=error,
        note=note,
    )
    return None if fault else values, certificate


def _recurred(space: Space, profile: Ints, room: Array | None) -> Basis:
    """Block Lanczos by the short recurrence, which orthogonalizes W Q_t against Q_t and Q_{t-1}
    only.

    That is enough in exact arithmetic. From the first step that must drop directions, or whose
    remainder is nearly dependent, every step is orthogonalized against everything, by pivoted QR.
    """
    from bruit.privacy.exact.compiled.krylov import drift, recurrence, row_norms

    matrix, count = space.matrix, space.starts.size
    whole = int(np.count_nonzero(np.diff(profile, prepend=0) == count))
    shape = (whole, space.size, count)
    blocks = np.empty(shape) if room is None else room[: math.prod(shape)].reshape(shape)
    blocks[0] = _unit_block(space)
    coefficients = np.zeros((whole, 3, count, count))
    good = recurrence(
        matrix.indptr, matrix.indices, matrix.data, space.silent, blocks, coefficients
    )
    blocks, coefficients = blocks[:good], coefficients[:good]
    moved = drift(
        indptr=matrix.indptr,
        indices=matrix.indices,
        data=matrix.data,
        silent=space.silent,
        blocks=blocks,
        coefficients=coefficients,
        unit=UNIT,
        normals=normals(),
        every=EVERY,
    )
    if good * count < profile[-1]:
        return _completed(space, profile, blocks, moved)
    values, error = row_norms(blocks, _signs(whole * count).reshape(-1, count, 2))
    return Basis(
        tuple(blocks) if room is None else (), values, np.sqrt(moved[0]), error, whole * count
    )


def _unit_block(space: Space) -> Array:
    block = np.zeros((space.size, space.starts.size))
    block[space.starts, np.arange(space.starts.size)] = 1.0
    return block


def _completed(
    space: Space, profile: Ints, blocks: Array, moved: tuple[Array, Array, Array] | None
) -> Basis:
    """Continue orthonormal blocks to the full profile, each step against all columns, by pivoted
    QR.

    `moved` says what rounding did to the blocks so far (bruit.privacy.exact.compiled.krylov.drift);
    None when there is only the first, which is exact.
    """
    good, n, d = blocks.shape
    columns = np.zeros((n, int(profile[-1])))
    rank, recent = good * d, max(0, good - 2) * d
    columns[:, :rank] = blocks.transpose(1, 0, 2).reshape(n, rank)
    total, before, last = (
        (np.zeros(n), np.zeros((n, 0)), np.zeros((n, d))) if moved is None else moved
    )
    before = before[:, : rank - recent - d]
    block, drawn, magnitudes = np.ascontiguousarray(blocks[-1]), 0, abs(space.matrix)
    for t in range(good, profile.size):
        kept = int(profile[t] - profile[t - 1])
        if kept == 0:
            break
        known = columns[:, :rank]
        image = space.matrix @ block
        image[space.silent] = 0.0
        rounded = magnitudes @ lengths(block) + lengths(columns[:, recent:rank])
        rest, coefficients = image, np.zeros((rank, block.shape[1]))
        for _ in range(2):
            part = known.T @ rest
            rest = rest - known @ part
            coefficients += part
        directions = pivoted(rest, known, kept)
        drifted = space.matrix @ last
        drifted[space.silent] = 0.0
        drifted -= np.concatenate((before, last), axis=1) @ coefficients[recent:]
        drifted += noise(UNIT * rounded, block.shape[1], drawn)
        if directions is None or not total.sum() <= HOPELESS**2:
            return given_up(n, rank)
        new, order, inverse = directions
        columns[:, rank : rank + kept] = new
        before, last = last, drifted[:, order] @ inverse
        recent, rank, drawn = rank - block.shape[1], rank + kept, drawn + rest.size
        last -= columns[:, :rank] @ (columns[:, :rank].T @ last)
        total = total + (last**2).sum(axis=1)
        block = new
    signs = _signs(rank)
    error = np.linalg.norm(columns.T @ (columns @ signs) - signs, axis=0).max() / np.sqrt(rank)
    return Basis(
        (columns,), np.einsum("ij,ij->i", columns, columns), np.sqrt(total), float(error), rank
    )


def pivoted(rest: Array, columns: Array, kept: int) -> tuple[Array, Ints, Array] | None:
    """The given number of orthonormal directions of the remainder, and how they are made: rest[:,
    order] @ inverse.

    Only combinations of columns are taken, so that small rows keep their digits. None when the
    remainder has fewer directions than asked for.
    """
    r, order = qr(rest, mode="r", pivoting=True, check_finite=False)
    sizes = np.abs(np.diagonal(r))
    if not (sizes.size >= kept and np.isfinite(sizes).all() and sizes[kept - 1] > 1e-12 * sizes[0]):
        return None
    chosen: Ints = np.asarray(order[:kept], dtype=np.int64)
    inverse = solve_triangular(r[:kept, :kept], np.eye(kept), check_finite=False)
    new = rest[:, chosen] @ inverse
    for _ in range(2 if sizes[kept - 1] < 1e-3 else 0):
        # What is left of a nearly dependent block is mostly round-off along the earlier columns.
        new = new - columns @ (columns.T @ new)
        right = solve_triangular(
            qr(new, mode="r", check_finite=False)[0][:kept], np.eye(kept), check_finite=False
        )
        right = right * np.sign(np.diagonal(right))
        new, inverse = new @ right, inverse @ right
    return np.ascontiguousarray(new), chosen, inverse


def _signs(count: int) -> Array:
    """Two fixed probes of signs: (Q^T Q - I) g costs O(n r), where Q^T Q would cost n r^2."""
    return np.where(mixed_words(2 * count) >> np.uint64(63), 1.0, -1.0).reshape(-1, 2)
