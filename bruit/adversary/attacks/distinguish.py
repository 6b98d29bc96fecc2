"""Which of two data sets? The optimal test for views that are linear forms of data and Gaussian
noise.

    Y = A s + sigma B xi;   log-ratio = <w, Y - (Y_left + Y_right) / 2>,   w = (sigma^2 B B^T)^+ A (s_R - s_L)

With s_R - s_L known, the ratio is N(-mu^2/2, mu^2) under the left data and N(mu^2/2, mu^2) under
the right one. Here mu^2 = (s_R - s_L)^T A^T (B B^T)^+ A (s_R - s_L) / sigma^2 (gossip:LG-1). No
test errs less (Neyman and Pearson). The sign of the ratio errs with probability Phi(-mu/2). The
forms come from running the algorithm on symbols. When noise is on a grid, dithers are part of xi
and sums are sums (fp:FP-1, FP-2). So the test stays the best one for what was sent, up to roundings
of less than a cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.mechanisms import clip_rows
from bruit.runs.engines.forms import Forms, view_forms
from bruit.runs.result import Run
from bruit.trace import View

RANK = 1e-10  # noise below this fraction of the largest counts as none: floats cannot carry it


class Weights(NamedTuple):
    """The optimal linear score of a view, <w, Y>, and its separation mu (infinite when the noise
    does not cover it)."""

    w: Array  # (rows,) or (rows, d)
    mu: float


def likelihood_weights(noise: Array, shift: Array) -> Weights:
    """w = (B B^T)^+ shift for a view whose mean moves by `shift` (rows,) or (rows, d) under noise B
    xi.

    A part of the shift outside the range of B is seen without noise: then w is that part and mu is
    infinite. Directions whose noise is below 1e-10 of the largest are left out when the shift has
    no such part: the score stays a fair one, and rounding of the messages does not drown it.
    """
    b, a = np.asarray(noise, np.float64), np.asarray(shift, np.float64)
    if b.ndim != 2 or a.shape[0] != b.shape[0]:
        raise ConfigError(
            f"the noise has shape {b.shape} and the shift {a.shape}; both need one row per "
            f"observation"
        )
    norms = np.linalg.norm(b, axis=1)
    scale = 1.0 / np.where(norms > 0, norms, 1.0)
    scaled = a * (scale if a.ndim == 1 else scale[:, None])
    u, s, _ = np.linalg.svd(b * scale[:, None], full_matrices=False)
    u, s = u[:, s > RANK * s.max(initial=0.0)], s[s > RANK * s.max(initial=0.0)]
    inside = u.T @ scaled
    outside = scaled - u @ inside
    back = scale if a.ndim == 1 else scale[:, None]
    if np.linalg.norm(outside) > 1e-6 * np.linalg.norm(scaled):
        return Weights(outside * back, math.inf)
    whitened = inside / (s if a.ndim == 1 else s[:, None])
    weights = u @ (whitened / (s if a.ndim == 1 else s[:, None]))
    return Weights(weights * back, float(np.linalg.norm(whitened)))


@dataclass(frozen=True)
class Distinguished:
    """The verdict on one view: the log-likelihood ratio of right against left, and what such a test
    can do."""

    ratio: float
    mu: float

    @property
    def choice(self) -> str:
        return "right" if self.ratio > 0 else "left"

    @property
    def error(self) -> float:
        """How often the best test is wrong when both data sets are equally likely: Phi(-mu / 2)."""
        from scipy.special import ndtr

        return float(ndtr(-self.mu / 2))


def distinguish(
    run: Run, view: View, left: Array, right: Array, own: Array | None = None
) -> Distinguished:
    """Was the data behind this view `left` or `right`? One row per peer in each: what it puts into
    its releases.

    `own` are the observers' own releases and noises, in the order they were made (for averaging:
    their rows of `starting_values`), dithers aside; without them only received messages are used.
    Everybody but one peer may be known to the attacker: both data sets are then equal elsewhere.
    """
    before, after = _clipped(run, left), _clipped(run, right)
    observers = tuple(sorted(view.observers))
    sent = run.privacy is not None and run.privacy.fine_grid() > 0
    forms, _ = view_forms(
        run.algorithm, run.graph, run.steps, observers, run.seed, run.trace, on_grid=sent
    )
    seen = [np.asarray(message.row, np.float64) for message in view.foreign]
    drawn = len(forms.dithers)
    if len(forms.A) - len(seen) != drawn or (seen and seen[0].shape[1] != before.shape[1]):
        raise ConfigError(
            f"the view holds {len(seen)} messages where {len(forms.A) - drawn} were heard;"
            " take the view of this run, with all its steps"
        )
    mine = np.flatnonzero(~forms.dithers)
    if own is not None and len(own) != len(mine):
        raise ConfigError(
            f"the observers made {len(mine)} releases and noises of their own, found {len(own)}"
            " rows of them"
        )
    rows = np.concatenate([mine if own is not None else mine[:0], np.arange(drawn, len(forms.A))])
    heard = np.concatenate(
        [*([] if own is None else [own]), *seen] or [np.zeros((0, before.shape[1]))]
    )
    return _likelihood_ratio(
        run, Forms(forms.A[rows], forms.B[rows], forms.owner), heard, before, after
    )


def _likelihood_ratio(
    run: Run, forms: Forms, heard: Array, before: Array, after: Array
) -> Distinguished:
    sigma = 0.0 if run.privacy is None else run.privacy.sigma
    shift = forms.A @ (after - before)[forms.owner]
    if sigma == 0 or not shift.any():
        noiseless = bool(shift.any())
        middle = forms.A @ ((before + after) / 2)[forms.owner]
        ratio = float(((heard - middle) * shift).sum()) if noiseless else 0.0
        return Distinguished(ratio, math.inf if noiseless else 0.0)
    found = likelihood_weights(forms.B, shift)
    middle = forms.A @ ((before + after) / 2)[forms.owner]
    scale = sigma**2 if found.mu < math.inf else 1.0
    return Distinguished(float((found.w * (heard - middle)).sum()) / scale, found.mu / sigma)


def _clipped(run: Run, values: Array) -> Array:
    """What the releases are centered on."""
    rows = np.asarray(values, np.float64)
    if rows.ndim != 2 or len(rows) != run.n:
        raise ConfigError(
            f"a data set needs one row for each of the {run.n} peers, found shape {rows.shape}"
        )
    return rows if run.privacy is None else clip_rows(rows, run.privacy.clip, run.privacy.norm)
