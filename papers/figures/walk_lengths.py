"""How long the published experiments walk and gossip (walk:F-5)."""

from __future__ import annotations

import math

from bruit.graphs import Graph, second_eigenvalue


def walk_steps(graph: Graph, noise_multiplier: float) -> int:
    """T = 20 ceil(log n / (1 - lambda_2)) (0.25 + z^2) / z^2, rounded down."""
    passes = 20 * math.ceil(math.log(graph.n) / (1 - second_eigenvalue(graph)))
    return int(passes * (0.25 + noise_multiplier**2) / noise_multiplier**2)


def gossip_steps(graph: Graph, noise_multiplier: float) -> int:
    """ceil((1 - lambda_2)^(-1/2) log(n / z^2 max(0.25, z^2))): exchanges until the mean is as good
    as its noise."""
    square = noise_multiplier**2
    gap = 1 - second_eigenvalue(graph)
    return math.ceil(math.log(graph.n / square * max(0.25, square)) / math.sqrt(gap))
