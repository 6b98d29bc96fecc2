"""Laws of numbers on the grid of the integers, by enumeration and convolution: the truth that
bounds are compared with.

Nothing here comes from the package: laws are arrays of probabilities with the integer at which they
begin.
"""

import math
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy import convolve
from scipy.signal import fftconvolve
from scipy.special import logsumexp, ndtr

FEW = 2000  # numbers of a law that is convolved term by term


@dataclass(frozen=True)
class Law:
    """P(k) = p[k - low]."""

    low: int
    p: np.ndarray

    @property
    def k(self):
        return self.low + np.arange(len(self.p))

    def plus(self, other):
        """Of the sum of two independent numbers."""
        whole = convolve if min(len(self.p), len(other.p)) < FEW else fftconvolve
        return Law(self.low + other.low, np.maximum(whole(self.p, other.p), 0.0))

    def times(self, factor):
        """Of a multiple."""
        p = np.zeros(factor * (len(self.p) - 1) + 1)
        p[::factor] = self.p
        return Law(factor * self.low, p)

    def shifted(self, by):
        return Law(self.low + by, self.p)

    def mapped(self, to):
        """Of an integer function of the number."""
        values = to(self.k)
        return Law(int(values.min()), np.bincount(values - values.min(), self.p))

    def on(self, low, size):
        """The probabilities from `low` on."""
        p = np.zeros(size)
        p[self.low - low : self.low - low + len(self.p)] = self.p
        return p


def normal(s, reach=12.0):
    """The discrete normal law of parameter s around 0."""
    k = np.arange(-math.ceil(reach * s), math.ceil(reach * s) + 1)
    p = np.exp(-(k**2) / (2 * s * s))
    return Law(int(k[0]), p / p.sum())


def nearest(denominator):
    """Q of a fraction with this denominator, halves rounded up."""
    return lambda k: (2 * k + denominator) // (2 * denominator)


def rounded_normal(w, s, k):
    """P(Q(N(w, s^2)) = k)."""
    far = np.abs(k - w)  # in the lower tail nothing is lost
    return ndtr((0.5 - far) / s) - ndtr((-0.5 - far) / s)


def renyi(p, q, order):
    seen = (p > 0) & (q > 0)
    return float(logsumexp(order * np.log(p[seen]) + (1 - order) * np.log(q[seen]))) / (order - 1)


def divergence(p, q):
    """Of order 1."""
    seen = p > 1e-280
    return float((p[seen] * np.log(p[seen] / q[seen])).sum())


def delta(p, q, epsilon):
    """The larger of both hockey-stick divergences."""
    e = math.exp(epsilon)
    return float(max(np.maximum(p - e * q, 0).sum(), np.maximum(q - e * p, 0).sum()))


def aligned(a, b):
    """Two laws as arrays of one support."""
    low, high = min(a.low, b.low), max(a.low + len(a.p), b.low + len(b.p))
    return a.on(low, high - low), b.on(low, high - low)


# what an observer sees of dithered gossip, fp:FP-5


def said(sigma, tau, value=0):
    """The first message of a peer with this value."""
    return normal(sigma).plus(normal(tau)).shifted(value)


def row_view(row, sigma, tau, shift, known=(0, 1), hidden=(2, 3)):
    """P and P' of (M_0(0), M_1(0), M_1(1)): peer 1 has the weights row / sum(row), and x_3 is 0 or
    `shift`. The first two count by the remainder of their part of the sum only: one block of
    columns for each of these."""
    whole, first = sum(row), said(sigma, tau)
    offsets = first.times(row[known[0]]).plus(first.times(row[known[1]]))
    chances = np.bincount(offsets.k % whole, offsets.p, whole)
    quiet = first.times(row[hidden[0]])
    laws = []
    for rest in np.flatnonzero(chances > 0):
        told = [
            quiet.plus(said(sigma, tau, value).times(row[hidden[1]]))
            .shifted(int(rest))
            .mapped(nearest(whole))
            for value in (0, shift)
        ]
        p, q = aligned(*(law.plus(normal(tau)) for law in told))
        laws.append((chances[rest] * p, chances[rest] * q))
    return tuple(np.concatenate(parts) for parts in zip(*laws, strict=True))


def star_view(sigma, tau, shift):
    """P and P' of (M_1(1), M_1(2)) given M_0(0) = M_0(1) = M_1(0) = 0: a star of 4 around peer 1,
    weights 1/4, three rounds, x_3 = 0 or `shift`. Hidden: M_2(0) and M_3(0), and the dithers of
    M_2(1) and M_3(1)."""
    two, kept, dither = said(sigma, tau), nearest(4), normal(tau)
    pair = dither.plus(dither)
    views = []
    for value in (0, shift):
        three = said(sigma, tau, value)
        a, b = np.meshgrid(two.k, three.k, indexing="ij")
        center, leaves = kept(a + b), kept(3 * a) + kept(3 * b)
        weight = two.p[:, None] * three.p
        views.append((center, leaves, weight))
    low, low_leaves = (min(int(view[i].min()) for view in views) for i in (0, 1))
    size = max(int(view[0].max()) for view in views) - low + 1
    size_leaves = max(int(view[1].max()) for view in views) - low_leaves + 1
    found = []
    for center, leaves, weight in views:
        place = (center - low) * size_leaves + leaves - low_leaves
        joint = np.bincount(place.ravel(), weight.ravel(), size * size_leaves).reshape(
            size, size_leaves
        )
        joint = np.apply_along_axis(
            np.convolve, 0, joint, dither.p
        )  # M_1(1) = the mean and its dither
        joint = np.apply_along_axis(np.convolve, 1, joint, pair.p)  # M_2(1) + M_3(1)
        m = low + dither.low + np.arange(joint.shape[0])
        total = low_leaves + pair.low + np.arange(joint.shape[1])
        mean = kept(m[:, None] + total)
        last = np.stack(
            [
                np.bincount(row - mean.min(), chance, int(np.ptp(mean)) + 1)
                for row, chance in zip(mean, joint, strict=True)
            ]
        )
        found.append(np.apply_along_axis(np.convolve, 1, last, dither.p))
    return tuple(found)


def silent_star_view(sigma, shift, rounds):
    """P and P' of all that peer 0 hears in a star of 4 around peer 1 without dithers, X_0 = X_1 =
    0."""
    kept = nearest(4)
    a, b = np.meshgrid(
        normal(sigma, 8.0).k, np.arange(-8 * sigma, shift + 8 * sigma + 1), indexing="ij"
    )
    state = [np.zeros(a.size, np.int64), np.zeros(a.size, np.int64), a.ravel(), b.ravel()]
    heard = np.zeros(a.size, np.uint64)
    for _ in range(rounds):
        heard = heard * np.uint64(0x9E3779B97F4A7C15) + state[1].astype(np.uint64)
        leaves = [kept(3 * leaf + state[1]) for leaf in (state[0], state[2], state[3])]
        state = [leaves[0], kept(sum(state)), leaves[1], leaves[2]]
    _, place = np.unique(heard, return_inverse=True)
    chances = [
        np.exp(-(a**2 + (b - value) ** 2) / (2.0 * sigma**2)).ravel() for value in (0, shift)
    ]
    return tuple(np.bincount(place, one / one.sum()) for one in chances)


# noise that cancels, fp:FP-3


def canceling_ratio(n, s, c):
    """max |ln ratio| of the masked values' law and the discrete Gaussian of covariance Sigma = s^2
    I + c^2 L, over all points, when all n peers are neighbors.

    At m the law is sum over integer edge noises D of exp(-(D - x)' H (D - x) / 2), H = I / c^2 + B'
    B / s^2 and x = c^2 B' Sigma^-1 m, times exp(-m' Sigma^-1 m / 2) over the sums of all single
    noises. By Poisson summation that is a sum of few cosines; x is a difference of two masked
    values over s^2 / c^2 + n.
    """
    edges = list(combinations(range(n), 2))
    b = np.zeros((n, len(edges)))
    for e, (i, j) in enumerate(edges):
        b[i, e], b[j, e] = 1.0, -1.0
    sigma, h = s * s * np.eye(n) + c * c * b @ b.T, np.eye(len(edges)) / c**2 + b.T @ b / s**2
    points = np.array(
        [(*point, 0) for point in product(range(round((s / c) ** 2) + n), repeat=n - 1)]
    )
    x = points @ np.linalg.solve(sigma, b) * c * c
    noises = _waves(np.linalg.inv(h), x) * math.sqrt((2 * math.pi) ** len(edges) / np.linalg.det(h))
    whole = _waves(sigma, np.zeros((1, n)))[0] * math.sqrt(
        (2 * math.pi) ** n * np.linalg.det(sigma)
    )
    single = [
        _waves(np.array([[t * t]]), np.zeros((1, 1)))[0] * t * math.sqrt(2 * math.pi)
        for t in (s, c)
    ]
    ratio = noises * whole / (single[0] ** n * single[1] ** len(edges))
    return float(np.abs(np.log(ratio)).max())


def _waves(covariance, x):
    """sum over integer k of exp(-2 pi^2 k' C k) cos(2 pi k x), for every row of x."""
    k = np.array(list(product(range(-2, 3), repeat=len(covariance))))
    size = np.exp(-2 * np.pi**2 * np.einsum("ki,ij,kj->k", k, covariance, k))
    return np.cos(2 * np.pi * x @ k[size > 1e-17].T) @ size[size > 1e-17]


def theta(edges, s, c):
    """The bound of fp:FP-3 on that."""
    v = 2 * sum(
        math.exp(-2 * math.pi**2 * k * k * s * s * c * c / (s * s + 2 * c * c)) for k in range(1, 9)
    )
    return edges * math.log((1 + v) / (1 - v))
