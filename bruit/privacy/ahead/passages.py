"""When a walk first reaches a peer, for all pairs at once: generating functions by one
eigendecomposition (walk:RW-8).

With the resolvent G(s) = (I - s W)^-1 of a symmetric W, started at u:

    first passage to v            F_uv(s) = G_uv / G_vv
    first visit to u or v         1 - (G_vv - G_uv) / (G_uu G_vv - G_uv^2)
    first return to u from C on   s^(C-1) [W^(C-1) (G - I)]_uu / G_uu

The eigenvalue 1 is kept apart, G = c + Z with c = 1 / (k (1 - s)) on a component of k peers, so
nothing cancels as s goes to 1. The first few terms of each law are computed by sums of products,
without the spectrum, so that what cannot happen has probability exactly 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from bruit.arrays import Array, Ints
from bruit.privacy.ahead.exponential_sums import ExponentialSum

BLOCK = 32
"""Observers handled together: the generating functions of a block at all rates stay in a few dozen
megabytes."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Passages:
    """Everything about one connected component of k peers that all its pairs share, at the rates of
    one rule."""

    matrix: Any  # (k, k) sparse
    values: Array  # (k - 1,) eigenvalues but the 1
    vectors: Array  # (k, k - 1)
    rule: ExponentialSum
    constant: Array  # (rates - 1,) c at every positive rate
    scales: Array  # (rates - 1, k - 1) 1 / (1 - s value)
    own: Array  # (rates - 1, k) Z_vv
    powers: Array  # (head + 1, k) (W^i)_vv
    # how many times 1e-12 the generating functions may be off: more where the gap is small
    doubt: float

    @property
    def k(self) -> int:
        return int(self.matrix.shape[0])

    def blocks(self) -> Iterator[Ints]:
        """Observers, a few at a time."""
        for first in range(0, self.k, BLOCK):
            yield np.arange(first, min(first + BLOCK, self.k))

    def expected(self, block: Ints) -> tuple[Array, Array]:
        """E[exp(lambda / H) - 1] for each v of the block, rounded up: H the first passage from u to
        v, and H the first visit to v or back to u  # (l, k, block) each."""
        passage, either = np.empty((2, len(self.scales), self.k, block.size))
        for r, scale in enumerate(self.scales):
            c, of, against = self.constant[r], self.own[r][:, None], self.own[r, block]
            z = self.vectors @ (self.vectors[block] * scale).T
            passage[r] = (c + z) / (c + against)
            determinant = c * (of + against - 2 * z) + of * against - z * z
            determinant[block, np.arange(block.size)] = np.inf  # u = v, where it is 0
            either[r] = 1 - (against - z) / determinant
        law = self._first_passages(block)
        return self._expected(law, passage), self._expected(self._first_of_two(law, block), either)

    def _expected(self, law: Array, generating: Array) -> Array:
        """weights @ F + excess @ f + slack  # (l, ...)."""
        rule, shape = self.rule, law.shape[1:]
        flat = rule.weights[:, 1:] @ np.clip(generating, 0.0, 1.0).reshape(len(generating), -1)
        flat += (
            rule.excess @ law.reshape(len(law), -1)
            + (rule.weights[:, 0] + self.doubt * rule.slack)[:, None]
        )
        return np.maximum(flat, 0.0).reshape(-1, *shape)

    def _first_passages(self, block: Ints) -> Array:
        """Pr_u[H_v = i] for i up to the head: one step, then on from any peer but v  # (head, k,
        block)."""
        columns = np.arange(block.size)
        law = np.empty((self.rule.head, self.k, block.size))
        law[0] = self.matrix[:, block].toarray()
        for i in range(1, len(law)):
            onward = law[i - 1].copy()
            onward[block, columns] = 0.0
            law[i] = self.matrix @ onward
        return law

    def _first_of_two(self, passages: Array, block: Ints) -> Array:
        """Pr_u[first visit to u or v is at i], by power series: a = F_uv, g = G_uu - a^2 G_vv the
        visits to u before v.

            back to u before v: P = 1 - 1/g,     law = P + a (1 - P)

        Where a difference leaves only rounding, an earlier term of the same law is larger by far.
        """
        head = len(passages)
        twice = np.zeros_like(passages)  # a^2 G_vv, coefficient i + 1 at i
        squares = np.zeros_like(passages)
        for i in range(1, head):
            for j in range(i):
                squares[i] += passages[j] * passages[i - 1 - j]
            for j in range(i + 1):
                twice[i] += squares[i - j] * self.powers[j, block]
        visits = np.maximum(self.powers[1:, :, None] - twice, 0.0)
        back = np.empty_like(passages)
        for i in range(head):  # visits = back + back * visits
            back[i] = visits[i]
            for j in range(i):
                back[i] -= back[j] * visits[i - 1 - j]
        np.maximum(back, 0.0, out=back)
        law = back + passages
        for i in range(1, head):
            for j in range(i):
                law[i] -= passages[j] * back[i - 1 - j]
        return np.clip(law, 0.0, 1.0)

    def back(self, cooldown: int) -> Array:
        """E[exp(lambda / R_u) - 1], R_u the first return of u to itself at step `cooldown` or later
        # (l, k)."""
        wait = self.values ** (cooldown - 1)
        squares = self.vectors**2
        generating = np.empty_like(self.own)
        for r, scale in enumerate(self.scales):
            s, c = np.exp(-self.rule.rates[r + 1]), self.constant[r]
            later = (
                s * (squares @ (wait * self.values * scale)) + s * c
            )  # the constant part: c s, c = 1 / (k (1 - s))
            generating[r] = s ** (cooldown - 1) * later / (c + self.own[r])
        law = np.zeros((self.rule.head, self.k))
        for i in range(cooldown, self.rule.head + 1):
            law[i - 1] = self.powers[i]
            for j in range(cooldown, i):
                law[i - 1] -= law[j - 1] * self.powers[i - j]
            np.maximum(law[i - 1], 0.0, out=law[i - 1])
        return self._expected(law, generating)


def passages(weights: Any, rule: ExponentialSum) -> Passages:
    """Prepare one connected component: `weights` is its symmetric stochastic matrix, of two peers
    or more."""
    matrix = csr_array(weights)
    k = int(matrix.shape[0])
    values, vectors = np.linalg.eigh(matrix.toarray())
    values, vectors = (
        values[:-1],
        vectors[:, :-1],
    )  # connected: the eigenvalue 1 is simple and belongs to constants
    rates = rule.rates[1:]
    gaps = -np.expm1(-rates)  # 1 - s
    scales = 1.0 / ((1.0 - values) + values * gaps[:, None])  # 1 - s value without cancellation
    own = scales @ (vectors**2).T
    powers = _own_powers(matrix, rule.head)
    doubt = max(
        1.0, 1e-3 / (1.0 - float(values[-1]))
    )  # eigenvalues are off by 1e-15, 1 - value relatively by more
    return Passages(
        matrix=matrix,
        values=values,
        vectors=vectors,
        rule=rule,
        constant=1.0 / (k * gaps),
        scales=scales,
        own=own,
        powers=powers,
        doubt=doubt,
    )


def _own_powers(matrix: Any, head: int) -> Array:
    """(W^i)_vv for i = 0..head, from half as many products: rows of W^a times rows of W^b  # (head
    + 1, k)."""
    k = int(matrix.shape[0])
    found = np.empty((head + 1, k))
    for first in range(0, k, BLOCK):
        block = np.arange(first, min(first + BLOCK, k))
        columns = np.zeros((k, block.size))
        columns[block, np.arange(block.size)] = 1.0
        for i in range(head + 1):
            if i % 2 == 0:
                found[i, block] = (columns**2).sum(axis=0)
            else:
                onward = np.asarray(matrix @ columns)
                found[i, block] = (columns * onward).sum(axis=0)
                columns = onward
    return found
