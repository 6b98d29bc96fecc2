"""What correlated noise can buy: noise left in the models, local DP = 1, when every peer's loss against
every single curious one is the same (gossip:COR-2).

*Space*: 100 rounds of averaging after one answer each. One ratio for all edges (`decor`), `by_degree`,
and the best parts of edges that a search finds. *Free* is the optimum over all covariances: noise that
somebody deals to whom it is not known; no peers can make it. The masked sum has one colluder.
*Time and space*: 12 rounds of descent, each record read once; the best `own`, `pair` and one `back` of
`mafalda`, and the free optimum over rounds and peers. A search is told what the account says: all
shares are attained.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from benchmarks.timing import Answer, Goal, main
from bruit.algorithms.gossip.noise_over_time import noise_kept
from bruit.arrays import Array
from bruit.graphs import Graph
from bruit.graphs.names import fixed_graph
from bruit.privacy.exact import CorrelatedNoise, correlated_losses, edge_parts

SPACE = (
    "ring:16",
    "torus:4x4",
    "grid:4x5",
    "ws:24,k=4,p=0.2,seed=1",
    "er:20,c=3,seed=1",
    "ba:30,m=2,seed=1",
)
BOTH, AVERAGED, DESCENT, TURNS = ("ring:16", "torus:4x4"), 100, 12, 2000
FLOOR, CLOSE = 1e-9, 1e-5  # what is added to G so that it has an inverse; where turns end
SHARPER = (20, 100, 500, 3000)  # norms that take the place of the largest loss, one after another


def kept(weights: Array, rounds: int, summed: bool) -> Array:
    """G: noise n leaves n' G n in the models, added up over the rounds. `summed`: models keep what is
    put in, so that G has a row for each round and peer; else each answer is averaged alone."""
    n, powers = len(weights), [np.eye(len(weights))]
    for _ in range(rounds):
        powers.append(weights @ powers[-1])
    if not summed:
        return np.asarray(sum(power.T @ power for power in powers[1:]))
    found = np.zeros((rounds * n, rounds * n))
    for end in range(rounds):
        row = np.hstack(
            [powers[end - s + 1] if s <= end else np.zeros((n, n)) for s in range(rounds)]
        )
        found += row.T @ row
    return found


def root(matrix: Array) -> Array:
    sizes, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(sizes, 0.0))) @ vectors.T)


def free(gram: Array) -> tuple[float, float]:
    """The least tr(G N) with [N^-1]_ii <= 1 as a share of tr(G): what N = G^-1/2 K^1/2 G^-1/2, K = G^1/2
    diag(l) G^1/2, attains when its largest loss is scaled to 1, and a bound that nothing passes (COR-2)."""
    plain = float(np.trace(gram))
    half = root(gram + FLOOR * plain / len(gram) * np.eye(len(gram)))
    prices, attained, bound = np.ones(len(gram)), np.inf, 0.0
    for _ in range(TURNS):
        middle = root(half @ (prices[:, None] * half))
        losses = np.diagonal(half @ np.linalg.inv(middle) @ half)
        attained = min(attained, float(np.trace(middle) * losses.max()))
        bound = max(bound, float(np.trace(middle) ** 2 / prices.sum()))
        if attained < (1 + CLOSE) * bound:
            break
        prices = prices * losses
    return attained / plain, bound / plain


def watchers(place: Graph) -> list[int]:
    return [0] if place.group is not None else list(range(place.n))


def worst(place: Graph, noise: CorrelatedNoise, rounds: int = 1) -> float:
    others = np.arange(place.n)
    return max(
        float(correlated_losses(place, noise, rounds, (v,))[others != v].max())
        for v in watchers(place)
    )


def laplacian(place: Graph, sizes: Array) -> Array:
    found, (a, b) = np.zeros((place.n, place.n)), place.edges().T
    found[a, b] = found[b, a] = -sizes
    return np.asarray(found - np.diag(found.sum(axis=1)))


def least(share: Callable[[float], float]) -> float:
    """The least of a function of one number by its logarithm, from a grid and a search around it."""
    points = np.linspace(-1.5, 4.5, 25)
    values = [share(x) for x in points]
    best = int(np.argmin(values))
    around = points[max(best - 1, 0)], points[min(best + 1, 24)]
    return min(*values, minimize_scalar(share, bounds=around, method="bounded").fun)


def decor(place: Graph, gram: Array, by_degree: bool) -> float:
    """The share of the best ratio."""
    parts = edge_parts(place.degrees, place.edges()) if by_degree else np.ones(place.edge_count)
    plain, pairs = np.trace(gram), np.trace(gram @ laplacian(place, parts**2))

    def share(x: float) -> float:
        noise = CorrelatedNoise(pair=float(np.exp(x)), by_degree=by_degree)
        return float(worst(place, noise) * (1 + np.exp(2 * x) * pairs / plain))

    return least(share)


def searched(place: Graph, gram: Array) -> float:
    """The share of the best parts of edges that descent finds (the problem is convex in 1/loss)."""
    (a, b), plain = place.edges().T, np.trace(gram)
    cost = gram[a, a] + gram[b, b] - 2 * gram[a, b]

    def views(logs: Array) -> tuple[Array, list[tuple[Array, Array]]]:
        whole, found = laplacian(place, np.exp(logs)), []
        for v in range(place.n):
            hidden = np.setdiff1d(np.arange(place.n), [v])
            own = np.diag(1.0 + whole[hidden, v])
            found.append((hidden, np.linalg.inv(whole[hidden][:, hidden] + own)))
        return np.concatenate([np.diagonal(inverse) for _, inverse in found]), found

    def share(logs: Array, power: int) -> tuple[float, Array]:
        losses, found = views(logs)
        sizes, spent = np.exp(logs), plain + np.exp(logs) @ cost
        weights = (losses / losses.max()) ** power
        value = np.log(losses.max() * spent / plain) + np.log(weights.sum()) / power
        weights, slope = weights / weights.sum() / losses, sizes * cost / spent
        for k, (hidden, inverse) in enumerate(found):
            lot = np.zeros((place.n, place.n))
            mine = weights[k * len(hidden) : (k + 1) * len(hidden)]
            lot[hidden[:, None], hidden] = inverse @ (mine[:, None] * inverse)
            inside = np.isin(a, hidden) & np.isin(b, hidden)
            slope = slope - np.where(inside, sizes * (lot[a, a] + lot[b, b] - 2 * lot[a, b]), 0.0)
        return float(value), slope

    logs = np.full(place.edge_count, np.log(3.0))
    for power in SHARPER:
        bounds = [(-14.0, 9.0)] * len(logs)
        logs = minimize(share, logs, (power,), "L-BFGS-B", jac=True, bounds=bounds).x
    return float(views(logs)[0].max() * (plain + np.exp(logs) @ cost) / plain)


def mafalda(place: Graph, uses: tuple[bool, bool, bool]) -> float:
    """The share of the best `own`, `pair` and single `back`, of which only some are used."""
    plain = noise_kept(place, CorrelatedNoise(), DESCENT)

    def share(x: Array) -> float:
        own, pair = (float(np.exp(x[k])) if uses[k] else 0.0 for k in (0, 1))
        back = float(1 / (1 + np.exp(-x[2]))) if uses[2] else 0.0
        noise = CorrelatedNoise(own, pair, (1.0, -back), cycle=DESCENT)
        spent = noise_kept(place, noise, DESCENT)
        return float(np.log(worst(place, noise, DESCENT) * spent / plain))

    starts = [np.array([own, pair, 1.0]) for own in (0.0, 1.5) for pair in (-1.0, 1.0)]
    return float(np.exp(min(minimize(share, x, method="Nelder-Mead").fun for x in starts)))


def space(answer: Answer, name: str) -> tuple[float, float]:
    """The rows of one graph; the shares of one ratio and by degree."""
    place = fixed_graph(name)
    gram = kept(place.weights.toarray(), AVERAGED, summed=False)
    one, degree = decor(place, gram, False), decor(place, gram, True)
    attained, bound = free(gram)
    for what, share in {
        "one ratio": one,
        "by degree": degree,
        "best parts of edges": searched(place, gram),
        "free": attained,
        "free, nothing below": bound,
        "masked sum": AVERAGED / (place.n - 1) / np.trace(gram),
    }.items():
        answer.add(f"{name}: {what}", share, "of local DP")
    return one, degree


def both(answer: Answer, name: str) -> tuple[float, float]:
    """The rows of one graph; the shares of time alone and of both."""
    place = fixed_graph(name)
    gram = kept(place.weights.toarray(), DESCENT, summed=True)
    time = mafalda(place, (True, False, True))
    together = mafalda(place, (True, True, True))
    masked = DESCENT * (DESCENT + 1) / 2 / (place.n - 1) / np.trace(gram)
    for what, share in {
        "time": time,
        "space": mafalda(place, (False, True, False)),
        "time and space": together,
        "free": free(gram)[0],
        "masked sum": masked,
    }.items():
        answer.add(f"{name}, descent: {what}", share, "of local DP")
    return time, together


def measure(quick: bool = False) -> Answer:
    answer = Answer("correlated noise: noise left in the models at the same loss", quick)
    for name in SPACE[2:3] if quick else SPACE[::-1]:
        one, degree = space(answer, name)
        answer.goals.append(Goal(f"{name}: by degree against one ratio", degree / one, 1 + 1e-6))
    for name in () if quick else BOTH:
        time, together = both(answer, name)
        answer.goals.append(Goal(f"{name}: both against time alone", together / time, 1.0))
    return answer


if __name__ == "__main__":
    main(measure)
