"""The lattice attack, measured: where averaging in floats was broken, and that dithered whole
numbers were not.

    python -m papers.figures.lattice_attack            # all tables, some two minutes of CPU
    python -m papers.figures.lattice_attack --quick    # a tenth of the runs
    python -m papers.figures.lattice_attack --only four
"""

from __future__ import annotations

import argparse
import json
import math

import numpy as np

import bruit as br
from bruit.adversary.attacks.lattice import Dithers
from bruit.adversary.audits.lattice_game.game import Trying, audit_lattice
from bruit.adversary.audits.lattice_game.talk import LatticeTarget, Numbers
from bruit.arrays import Ints
from bruit.graphs import Graph, from_matrix, graph
from bruit.privacy.toolbox.gaussian import delta_of
from papers.figures.sections import Section

CLIP, SIGMA, GRAPHS = 0.5, 0.2, 30
LINKS = ((0, 1, 0.25), (1, 2, 0.31830988618379067), (1, 3, 0.051099895069))


def four_peers() -> Graph:
    """A star of four whose links have weights of their own; peer 1 is the center."""
    weights = np.zeros((4, 4))
    for a, b, weight in LINKS:
        weights[a, b] = weights[b, a] = weight
    return from_matrix(weights + np.diag(1 - weights.sum(axis=1)), name="four")


def noise(sigma: float = SIGMA) -> br.Gaussian:
    return br.Gaussian(clip=CLIP, sigma=sigma)


def four(runs: int) -> Section:
    """Peer 3 seen by peer 0 after two rounds, in both arithmetics."""
    cases: list[tuple[Numbers, int, int]] = [("float", 20, 0), ("float", 40, 0)]
    cases += [("dithered", bits, dither) for bits in (20, 32, 40, 48) for dither in (4, 10, 20)]
    rows = []
    for seed, (numbers, bits, dither) in enumerate(cases):
        protocol = LatticeTarget(
            algorithm=br.Averaging(),
            graph=four_peers(),
            mechanism=noise(),
            steps=2,
            numbers=numbers,
            bits=bits,
            dither_bits=dither,
        )
        found = audit_lattice(protocol, [0], Trying(trials=runs, of=3, seed=seed))
        guess = found.guesses[0]
        rows.append(
            (
                numbers,
                bits,
                dither or "none",
                guess.found,
                runs,
                round(100 * guess.right / runs, 1),
                round(100 * guess.bound, 1),
                "yes" if found.refuted else "no",
            )
        )
    return Section(
        "four",
        "values of peer 3 found exactly by peer 0; right guesses and what epsilon 3.76 allows, in %",
        (
            "numbers",
            "grid sigma 2^-",
            "dither sigma 2^-",
            "found",
            "of",
            "right",
            "allowed",
            "refuted",
        ),
        tuple(rows),
    )


def random_graphs(runs: int) -> Section:
    """Peer 0 of er:24,c=1 after seven rounds, default weights, over thirty graphs."""
    cases: list[tuple[Numbers, int, float]] = [
        ("float", 20, SIGMA),
        ("float", 20, 1.0),
        ("float", 0, SIGMA),
        ("float", 0, 1.0),
        ("float", 40, SIGMA),
        ("dithered", 20, SIGMA),
        ("dithered", 40, SIGMA),
    ]
    rows = []
    for numbers, bits, sigma in cases:
        some = [
            audit_lattice(
                LatticeTarget(
                    algorithm=br.Averaging(),
                    graph=graph(f"er:24,c=1,seed={seed}"),
                    mechanism=noise(sigma),
                    steps=7,
                    numbers=numbers,
                    bits=bits,
                ),
                [0],
                Trying(trials=runs),
            )
            for seed in range(GRAPHS)
        ]
        with_hidden = [one for one in some if one.guesses]
        hidden = sum(len(one.hidden) for one in with_hidden)
        rows.append(
            (
                numbers,
                bits,
                sigma,
                len(with_hidden),
                sum(one.everybody == runs for one in with_hidden),
                sum(one.found for one in with_hidden),
                hidden * runs,
            )
        )
    return Section(
        "graphs",
        f"er:24,c=1, {GRAPHS} graphs, 7 rounds, seen by peer 0, {runs} runs each",
        (
            "numbers",
            "grid sigma 2^-",
            "sigma",
            "graphs with hidden peers",
            "all of them found in",
            "found",
            "of",
        ),
        tuple(rows),
    )


def twelve(runs: int) -> Section:
    """Twelve peers, dithers as noise and as further unknowns of the lattice; a graph that floats
    give away, the only one of the seeds 0 to 11 of er:12 with 3 to 5 rounds."""
    cases: list[tuple[Numbers, int, Dithers]] = [("float", 20, "noise")]
    cases += [
        ("dithered", bits, dithers) for bits in (20, 40, 48) for dithers in ("noise", "unknown")
    ]
    rows = []
    for seed, (numbers, bits, dithers) in enumerate(cases):
        protocol = LatticeTarget(
            algorithm=br.Averaging(),
            graph=graph("er:12,c=1,seed=2"),
            mechanism=noise(),
            steps=5,
            numbers=numbers,
            bits=bits,
        )
        found = audit_lattice(protocol, [0], Trying(trials=runs, dithers=dithers, seed=seed))
        rows.append(
            (
                numbers,
                bits,
                dithers if found.dither else "none",
                found.unknowns,
                found.found,
                len(found.hidden) * runs,
                "yes" if found.refuted else "no",
            )
        )
    return Section(
        "twelve",
        f"er:12,c=1,seed=2, 5 rounds, dithers of sigma 2^-10, seen by peer 0, {runs} runs",
        ("numbers", "grid sigma 2^-", "dithers as", "unknowns", "found", "of", "refuted"),
        tuple(rows),
    )


def undithered(
    sigma: int, epsilons: tuple[float, ...] = (2.0, 4.0), steps: int = 20
) -> list[float]:
    """delta(epsilon) of the star of four: values and messages on one grid of step 1, nothing
    dithered (fp:FP-5 d).

    By counting: peers 0 (the observer) and 1 (the center) hold 0, peer 3 holds 0 or 2 sigma, halves
    are rounded up; the view is what the center says in all rounds, a function of the two noisy
    values that are hidden.
    """
    side = np.arange(-12 * sigma, 14 * sigma + 1)
    two, three = (values.ravel() for values in np.meshgrid(side, side))
    state: list[Ints] = [np.zeros_like(two), np.zeros_like(two), two, three]
    views: Ints = np.zeros(len(two), dtype=np.int64)
    for _ in range(steps):
        views = np.unique(views * 2**20 + state[1] + 2**19, return_inverse=True)[1]
        center: Ints = (sum(state[1:], state[0]) + 2) // 4
        state = [center if i == 1 else (3 * own + state[1] + 2) // 4 for i, own in enumerate(state)]
    mass = [np.exp(-((side - mean) ** 2) / (2 * sigma**2)) for mean in (0, 2 * sigma)]
    both = [
        np.bincount(views, np.outer(law, mass[0]).ravel()) / (mass[0].sum() * law.sum())
        for law in mass
    ]
    return [
        max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) for p, q in (both, both[::-1]))
        for epsilon in epsilons
    ]


def no_dither() -> Section:
    real = [delta_of(epsilon, math.sqrt(2)) for epsilon in (2.0, 4.0)]  # loss 1/2, D = 2 sigma
    rows: list[tuple[str | float, ...]] = [
        (f"one grid, sigma = {sigma} steps", *undithered(sigma)) for sigma in (4, 64)
    ]
    return Section(
        "no-dither",
        "star of four, 20 rounds: true delta of rounding without dithers, by counting",
        ("protocol", "delta(2)", "delta(4)"),
        (*rows, ("real numbers", *real)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("four", "graphs", "twelve", "no-dither"))
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    share = 10 if options.quick else 1
    made = {
        "four": lambda: four(1000 // share),
        "graphs": lambda: random_graphs(20 // share),
        "twelve": lambda: twelve(100 // share),
        "no-dither": no_dither,
    }
    sections = [make() for name, make in made.items() if options.only in (None, name)]
    if options.json:
        print(json.dumps([section.plain() for section in sections]))
    else:
        print("\n\n".join(map(str, sections)))


if __name__ == "__main__":
    main()
