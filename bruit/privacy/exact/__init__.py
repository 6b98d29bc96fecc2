"""Exact losses of linear gossip, with certificates: spans, ranks, Krylov spaces.

Whoever stands outside imports from here; the compiled loops in `compiled/` alone are imported where
they are called, so that nobody loads a compiler who does not need it.
"""

from bruit.privacy.exact.all_pairs import pairwise
from bruit.privacy.exact.blas import one_blas_thread
from bruit.privacy.exact.correlated import (
    FINENESS,
    CorrelatedNoise,
    correlated_losses,
    edge_parts,
    tap_matrix,
)
from bruit.privacy.exact.drift import lengths
from bruit.privacy.exact.echelon import Echelon, krylov_echelon
from bruit.privacy.exact.gopa_spectrum import (
    Laplacian,
    Quadrature,
    inverse_diagonal,
    laplacian_among,
    pseudo_inverse_diagonal,
)
from bruit.privacy.exact.krylov import Leverage, Status, group_loss, leverage, row_space
from bruit.privacy.exact.largest_forms import largest_form
from bruit.privacy.exact.masked_rounds import MaskedRound, masked_losses
from bruit.privacy.exact.meeting_losses import MeetingLosses
from bruit.privacy.exact.modular import PRIMES, THREE, centered
from bruit.privacy.exact.rational import from_residues
from bruit.privacy.exact.rows import (
    GraphAt,
    KnownRows,
    Modulo,
    decided,
    meeting_loss,
    meeting_rows,
    noisy_rows_loss,
    sequence_loss,
    sequence_rows,
    stacked_loss,
    user_loss,
)
from bruit.privacy.exact.span import (
    checked_observers,
    checked_steps,
    checked_symmetry,
    krylov_span,
    neighborhood,
)
from bruit.privacy.exact.unequal import unequal_joint, unequal_loss, unequal_rows_loss, with_sizes
from bruit.privacy.exact.wide import Wide

__all__ = [
    "FINENESS",
    "PRIMES",
    "THREE",
    "CorrelatedNoise",
    "Echelon",
    "GraphAt",
    "KnownRows",
    "Laplacian",
    "Leverage",
    "MaskedRound",
    "MeetingLosses",
    "Modulo",
    "Quadrature",
    "Status",
    "Wide",
    "centered",
    "checked_observers",
    "checked_steps",
    "checked_symmetry",
    "correlated_losses",
    "decided",
    "edge_parts",
    "from_residues",
    "group_loss",
    "inverse_diagonal",
    "krylov_echelon",
    "krylov_span",
    "laplacian_among",
    "largest_form",
    "lengths",
    "leverage",
    "masked_losses",
    "meeting_loss",
    "meeting_rows",
    "neighborhood",
    "noisy_rows_loss",
    "one_blas_thread",
    "pairwise",
    "pseudo_inverse_diagonal",
    "row_space",
    "sequence_loss",
    "sequence_rows",
    "stacked_loss",
    "tap_matrix",
    "unequal_joint",
    "unequal_loss",
    "unequal_rows_loss",
    "user_loss",
    "with_sizes",
]
