"""Gossip on a hidden random graph: a stranger is protected by not knowing how far away it is
(gossip:MUF-8, 10, 11).

For u in N(V): epsilon_0 = alpha / (2 z^2). For everybody else, with c = alpha (alpha - 1) / (2 z^2)
<= 1:

    D_alpha <= (1 + c) epsilon_0 min(1, (T - 1) d / (n - |V| - d)),      d = |N(V)|

The first d messages concern neighbors only, so strangers share a loss of at most (T - 1) d. The law
of the graph does not tell them apart, so each has the average in expectation. Weak convexity of the
Renyi divergence (gossip:DP-10) gives 1 + c (`..._renyi`). Orders with c > 1 are charged epsilon_0,
which always holds. Epsilons come out sharper another way. Given the graph, the view is a Gaussian
pair of loss m <= 1, so delta is at most the mean over graphs of what m gives (walk:F-3). What m
gives grows with m, and by Markov P(m >= x) <= share / x. So the law with exactly these tails bounds
delta for every epsilon, and for several runs on one graph with r m in place of m.
Hypotheses: given N(V) the law of the graph is invariant under permutations of the strangers
(Erdos-Renyi graphs are); the observers know N(V) and their own weights, nothing else of the graph;
ONE run per hidden graph. Runs on the same hidden graph do not add up, since a run tells something
of the graph that depends on the data. An example: one neighbor joined to one of two strangers, T =
2, alpha = 2, z = 2. Ten runs have exact loss 1.886, ten bounds add up to 1.5625. For r runs the
lemma is applied once, with r c <= 1 and r epsilon_0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bruit.errors import PrivacyError
from bruit.privacy.composition import compose
from bruit.privacy.guarantee import Guarantee, Hypothesis, Status, gaussian
from bruit.privacy.profile import ORDERS, MixtureProfile, Profile, RenyiProfile
from bruit.privacy.theorem import IDEALLY

EXCHANGEABLE = Hypothesis(
    "given the observers' neighbors, the law of the graph does not tell strangers apart", False
)
HIDDEN = Hypothesis(
    "the observers know their neighbors and their own weights, nothing else of the graph", False
)
ONE_RUN = Hypothesis("the hidden graph is used for no other run", False)
FRESH = Hypothesis(
    "every round has a fresh hidden graph, independent of the others and of the data", False
)
AGREED = Hypothesis(
    "every round ends in exact consensus, so the next one starts from a state everybody knows",
    False,
)
ATOMS = 128
ADVICE = ("fewer neighbors or fewer steps", "a fresh hidden graph for every run")


def stranger_share(n: int, degree: int, steps: int, colluders: int = 1) -> float:
    """Average loss of those who are no neighbor of the observers, at most: min(1, (T - 1) d / (n -
    |V| - d)).

    >>> round(7 * 10 / 1989, 9), round(stranger_share(2000, 10, 8), 9)
    (0.035193565, 0.035193565)
    """
    if colluders < 1 or degree < 0 or steps < 0:
        raise PrivacyError(
            f"found {colluders} observers, {degree} neighbors, {steps} steps; give >= 1, >= 0 and "
            f">= 0"
        )
    strangers = n - colluders - degree
    if strangers < 1:
        raise PrivacyError(
            f"with {colluders} observers and {degree} neighbors among {n} peers nobody is left to"
            " hide among; use the exact loss of gossip, or local DP"
        )
    return min(1.0, max(steps - 1, 0) * degree / strangers)


def stranger_divergence(
    order: float, noise_multiplier: float, share: float, runs: int = 1
) -> float:
    """Renyi divergence of a stranger, (1 + c) epsilon_0 share clipped at epsilon_0; refused when c
    > 1.

    >>> round(stranger_divergence(2.0, 2.0, stranger_share(2000, 10, 8)), 10)
    0.0109979889
    """
    _check_order(order)
    _check_setting(noise_multiplier, share, runs)
    local = runs * order / (2 * noise_multiplier**2)
    c = (order - 1) * local
    if c > 1:
        raise PrivacyError(
            f"weak convexity needs c = runs alpha (alpha - 1) / (2 z^2) <= 1, found {c:.4g} at"
            f" alpha = {order:g}, z = {noise_multiplier:g}, {runs} runs; raise the noise multiplier"
            f" to {noise_multiplier * math.sqrt(c):.4g}, lower alpha, or use a fresh hidden graph"
            " for every run"
        )
    return min(local, (1 + c) * local * share)


def adjacency_probability(edge_probability: float, colluders: int = 1) -> float:
    """How probably a given peer is a neighbor of some observer on an Erdos-Renyi graph: 1 - (1 -
    q)^|V|.

    >>> round(adjacency_probability(2 * math.log(2000) / 2000, 3), 10)
    0.0226298254
    """
    if not 0 <= edge_probability <= 1 or colluders < 1:
        raise PrivacyError(
            f"q is a probability and observers are at least 1, found {edge_probability} and "
            f"{colluders}"
        )
    return -math.expm1(colluders * math.log1p(-edge_probability)) if edge_probability < 1 else 1.0


def hidden_graph(
    n: int, degree: int, steps: int, noise_multiplier: float, *, colluders: int = 1, runs: int = 1
) -> Guarantee:
    """What observers with so many neighbors learn about a stranger from `runs` runs on one hidden
    random graph.

    >>> stranger, neighbor = hidden_graph(2000, 10, 8, 2.0), hidden_graph_neighbor(2000, 8, 2.0)
    >>> bool(stranger.epsilon(1e-6) < neighbor.epsilon(1e-6)), stranger.status
    (True, 'ideal')
    """
    share = stranger_share(n, degree, steps, colluders)
    _check_setting(noise_multiplier, share, runs)
    profile = _mixture(noise_multiplier, share, runs)
    return _about_stranger(
        profile, share, degree, steps, noise_multiplier, colluders, runs, "gossip:MUF-8, walk:F-3"
    )


def hidden_graph_renyi(
    n: int, degree: int, steps: int, noise_multiplier: float, *, colluders: int = 1, runs: int = 1
) -> Guarantee:
    """The same by weak convexity: sharper Renyi divergences of orders with c <= 1, larger epsilons.

    >>> round(hidden_graph_renyi(2000, 10, 8, 2.0).profile.divergence(2.0), 6)
    0.010998
    """
    share = stranger_share(n, degree, steps, colluders)
    _check_setting(noise_multiplier, share, runs)
    profile = _renyi(noise_multiplier, share, runs)
    return _about_stranger(
        profile, share, degree, steps, noise_multiplier, colluders, runs, "gossip:MUF-8, MUF-10"
    )


def _about_stranger(
    profile: Profile,
    share: float,
    degree: int,
    steps: int,
    z: float,
    colluders: int,
    runs: int,
    spec: str,
) -> Guarantee:
    once = (
        ONE_RUN
        if runs == 1
        else Hypothesis(f"the hidden graph is used for these {runs} runs only", False)
    )
    return Guarantee(
        theorem="gossip on a hidden random graph, about a stranger",
        spec=spec,
        status="ideal",
        level="user",
        of="a peer that is no neighbor",
        against=_observers(colluders),
        hypotheses=(EXCHANGEABLE, HIDDEN, once, *IDEALLY),
        profile=profile,
        loss=math.nan,
        noise_multiplier=z,
        notes=(
            f"expected loss at most {runs * share:.6g} in local-DP units over the hidden graph",
        ),
        seen=f"{degree * steps * runs} messages in {runs} x {steps} rounds from {degree} neighbors",
        advice=ADVICE,
    )


def hidden_graph_neighbor(
    n: int, steps: int, noise_multiplier: float, *, runs: int = 1
) -> Guarantee:
    """What an observer learns about its own neighbor there: the full local loss of every run."""
    _check_setting(noise_multiplier, 1.0, runs)
    if n < 2 or steps < 0:
        raise PrivacyError(f"found {n} peers and {steps} steps; give >= 2 and >= 0")
    return Guarantee(
        theorem="gossip on a hidden random graph, about a neighbor",
        spec="gossip:MUF-8",
        status="ideal",
        level="user",
        of="a neighbor",
        against="the observer",
        hypotheses=IDEALLY,
        profile=gaussian(float(runs if steps else 0), noise_multiplier),
        loss=float(runs if steps else 0),
        noise_multiplier=noise_multiplier,
        notes=(f"a neighbor among {n} peers tells its noisy value itself",),
        seen="the neighbor's messages",
        advice=("a graph with fewer neighbors makes neighbors rarer",),
    )


@dataclass(frozen=True)
class HiddenRound:
    """One round with its own hidden graph: whether u was a neighbor of the observers, else the
    strangers' share.

    `share` is `stranger_share(n, degree, mixing, colluders)`, or under masked consensus
    (gossip:MUF-X3), where all masked models are revealed and ranks do not count, the average of its
    loss over the strangers.
    """

    adjacent: bool
    share: float


def fresh_divergence(order: float, noise_multiplier: float, rounds: Sequence[HiddenRound]) -> float:
    """Renyi divergence over rounds on fresh hidden graphs: epsilon_0 where adjacent, else a
    stranger's (gossip:MUF-11).

    >>> rounds = [HiddenRound(False, stranger_share(2000, 9, 8)), HiddenRound(True, 1.0),
    ...           HiddenRound(False, stranger_share(2000, 8, 8))]
    >>> round(fresh_divergence(2.0, 2.0, rounds), 9)
    0.268682769
    """
    _check_order(order)
    _check_setting(noise_multiplier, 1.0, 1)
    local = order / (2 * noise_multiplier**2)
    return sum(
        local if each.adjacent else stranger_divergence(order, noise_multiplier, each.share)
        for each in rounds
    )


def fresh_hidden_graphs(
    rounds: Sequence[HiddenRound], noise_multiplier: float, colluders: int = 1
) -> Guarantee:
    """Gradient descent with a fresh hidden graph in every round, every round ending in exact
    consensus."""
    parts = [_mixture(noise_multiplier, share, 1) for share in _shares(rounds, noise_multiplier)]
    return _fresh(compose(parts), rounds, noise_multiplier, colluders, "ideal", (FRESH, AGREED))


def fresh_hidden_graphs_renyi(
    rounds: Sequence[HiddenRound], noise_multiplier: float, colluders: int = 1
) -> Guarantee:
    """The same by weak convexity: sharper Renyi divergences of orders with c <= 1, larger
    epsilons."""
    profile = _summed(noise_multiplier, _shares(rounds, noise_multiplier))
    return _fresh(profile, rounds, noise_multiplier, colluders, "ideal", (FRESH, AGREED))


def fresh_hidden_graphs_without_consensus(
    rounds: Sequence[HiddenRound], noise_multiplier: float, colluders: int = 1
) -> Guarantee:
    """The Renyi sum when rounds do not end in exact consensus: a heuristic, since information flows
    on in later rounds.

    This is the accounting behind figure 6.1(c) of arXiv:2206.05091.
    """
    profile = _summed(noise_multiplier, _shares(rounds, noise_multiplier))
    return _fresh(profile, rounds, noise_multiplier, colluders, "heuristic", (FRESH,))


def _shares(rounds: Sequence[HiddenRound], z: float) -> list[float]:
    if not rounds:
        raise PrivacyError("there is no round to account for; give at least one HiddenRound")
    for each in rounds:
        _check_setting(z, each.share, 1)
    return [1.0 if each.adjacent else each.share for each in rounds]


def _fresh(
    profile: Profile,
    rounds: Sequence[HiddenRound],
    z: float,
    colluders: int,
    status: Status,
    own: tuple[Hypothesis, ...],
) -> Guarantee:
    adjacent = sum(each.adjacent for each in rounds)
    flows = (
        "not a guarantee: what a round mixed into other peers' models keeps flowing in later rounds"
    )
    return Guarantee(
        theorem="gradient descent on fresh hidden random graphs",
        spec="gossip:MUF-11",
        status=status,
        level="user",
        of="a peer",
        against=_observers(colluders),
        hypotheses=(EXCHANGEABLE, HIDDEN, *own, *IDEALLY),
        profile=profile,
        loss=math.nan,
        noise_multiplier=z,
        notes=(flows,) if status == "heuristic" else (),
        seen=f"the messages of {len(rounds)} rounds; in {adjacent} of them the peer was a neighbor",
        advice=ADVICE,
    )


def _mixture(z: float, share: float, runs: int) -> Profile:
    """Losses with the tails min(1, share / x) that Markov's inequality allows, rounded up to a
    grid."""
    if share in (0.0, 1.0) or z == 0:
        return gaussian(float(runs) if share > 0 else 0.0, z)
    losses = np.geomspace(share, 1.0, ATOMS)
    tails = np.append(
        share / losses[:-1], 0.0
    )  # of the atoms above each: P(m > losses[i]) <= share / losses[i]
    return MixtureProfile(runs * losses / z**2, np.append(1.0, tails[:-1]) - tails)


def _renyi(z: float, share: float, runs: int) -> Profile:
    if z == 0 or share == 0:
        return gaussian(float(share > 0), z)

    def curve(order: float) -> float:
        local = runs * order / (2 * z**2)
        c = (order - 1) * local
        return min(local, (1 + c) * local * share) if c <= 1 else local * (share > 0)

    return RenyiProfile(curve, _orders(z, runs))


def _summed(z: float, shares: Sequence[float]) -> Profile:
    parts = [_renyi(z, share, 1) for share in shares]
    if z == 0:
        return max(parts, key=lambda part: part.divergence(2.0))
    return RenyiProfile(lambda order: sum(part.divergence(order) for part in parts), _orders(z, 1))


def _orders(z: float, runs: int) -> tuple[float, ...]:
    """The usual orders, and the largest one to which weak convexity applies: runs alpha (alpha - 1)
    = 2 z^2."""
    edge = (1 + math.sqrt(1 + 8 * z**2 / runs)) / 2 * (1 - 1e-12)
    return tuple(sorted({*ORDERS, 2.0, edge} if edge > 1 else ORDERS))


def _observers(colluders: int) -> str:
    return "one observer" if colluders == 1 else f"{colluders} observers together"


def _check_order(order: float) -> None:
    if not 1 < order < math.inf:
        raise PrivacyError(f"a Renyi order must be above 1, found {order}")


def _check_setting(noise_multiplier: float, share: float, runs: int) -> None:
    if not (noise_multiplier >= 0 and 0 <= share <= 1 and runs >= 1):
        raise PrivacyError(
            f"found noise multiplier {noise_multiplier}, share {share} and {runs} runs;"
            " noise is >= 0, a share lies in [0, 1], runs are at least 1"
        )


def equal_hidden_rounds(
    n: int,
    degree: int,
    mixing: int,
    noise_multiplier: float,
    *,
    rounds: int = 1,
    adjacent: int = 0,
    colluders: int = 1,
) -> Guarantee:
    """What observers learn about a peer from rounds on fresh hidden graphs, all ending in exact
    consensus; in `adjacent` of them the peer was a neighbor.

    >>> said = equal_hidden_rounds(2000, 10, 8, 2.0, rounds=3, adjacent=1)
    >>> bool(said.epsilon(1e-6) < hidden_graph_neighbor(2000, 8, 2.0, runs=3).epsilon(1e-6))
    True
    """
    if not 0 <= adjacent <= rounds:
        raise PrivacyError(
            f"a peer is a neighbor in 0..{rounds} of {rounds} rounds, found {adjacent}"
        )
    share = stranger_share(n, degree, mixing, colluders)
    each = [HiddenRound(number < adjacent, share) for number in range(rounds)]
    return fresh_hidden_graphs(each, noise_multiplier, colluders)


ASK = {
    "hidden-graph": hidden_graph,
    "hidden-graph-neighbor": hidden_graph_neighbor,
    "fresh-hidden-graphs": equal_hidden_rounds,
}
