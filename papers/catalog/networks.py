"""Thesis, chapter 4 and appendix A: digits out of decentralized descent on a convolutional network
(gossip:EXP-8, EXP-9, EXP-11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bruit.adversary.attacks.descent import KnownDescent, observations
from bruit.adversary.attacks.gradients import estimate
from bruit.adversary.attacks.inversion import SYNTHETIC_SUCCESS, psnr
from bruit.arrays import Array, Ints
from bruit.graphs import Graph, florentine, path
from papers.catalog.images import arrays
from papers.figures.sections import Cell
from papers.reproduce.drawing import curves, pictures
from papers.reproduce.figure import Check, Figure, Finding

RATE, HIDDEN, SMALLER = 1e-6, 1024, 64
SIDE, COLUMNS = 28, 1 << 18
REACH = 26  # the source: accurate up to this distance
DISTANCES = (5, 15, 26, 28, 30)


def digits(count: int) -> tuple[Array, Ints]:
    """The first digits of MNIST, pixels in 0..1, and their labels."""
    data = arrays("mnist/mnist.npz")
    return data["x_train"][:count] / 255.0, data["y_train"][:count].astype(np.int64)


def through_network(
    graph: Graph, attacker: int, victims: Sequence[int], hidden: int, steps: int
) -> tuple[Any, dict[int, Array]]:
    """The network that all peers start from, and the gradients of the victims as the attacker
    estimates them after so many rounds of descent, one digit a peer.

    What is heard is solved for some coordinates at a time: at 3.3 million numbers a model it does
    not fit at once.
    """
    from torch import as_tensor
    from torch.nn.utils import parameters_to_vector, vector_to_parameters

    from papers.baselines.matching import convnet, gradient_of

    pixels, labels = digits(graph.n)
    network = convnet((1, SIDE, SIDE), 10, hidden=hidden)
    start = parameters_to_vector(network.parameters()).detach().numpy().copy()
    near, models = graph.neighbors(attacker), np.tile(start, (graph.n, 1))
    heard = np.empty((steps, len(near), len(start)))
    own = np.empty((steps, 1, len(start)))
    for step in range(steps):
        for peer in range(graph.n):
            vector_to_parameters(as_tensor(models[peer].copy()), network.parameters())
            models[peer] -= RATE * gradient_of(network, pixels[peer][None, None], int(labels[peer]))
        heard[step], own[step] = models[near], models[[attacker]]
        for first in range(0, len(start), COLUMNS):
            some = slice(first, first + COLUMNS)
            models[:, some] = graph.weights @ models[:, some]
    vector_to_parameters(as_tensor(start), network.parameters())
    descent = KnownDescent.on(graph, attacker, steps)
    places = np.searchsorted(descent.targets, victims)
    found = np.empty((len(victims), len(start)))
    for first in range(0, len(start), COLUMNS):
        some = slice(first, first + COLUMNS)
        said = observations(descent, list(heard[:, :, some]), own[:, :, some], start[some])
        found[:, some] = estimate(descent, said, RATE).values[places]
    return network, dict(zip(victims, found, strict=True))


def seen(graph: Graph, attacker: int, victims: Sequence[int], hidden: int, steps: int) -> Any:
    """Of every victim the digit that gradient matching finds, and the label."""
    from papers.baselines.matching import Matching, invert

    network, gradients = through_network(graph, attacker, victims, hidden, steps)
    how = Matching(total_variation=1e-3, steps=200)
    return {
        peer: invert(network, gradient, (1, SIDE, SIDE), how=how)
        for peer, gradient in gradients.items()
    }


def scored(found: Any, graph: Graph, attacker: int) -> list[tuple[Cell, ...]]:
    """Distance, PSNR of the digit's mean gray and of what was recovered, and whether the label
    is right."""
    pixels, labels = digits(graph.n)
    far = graph.distances(attacker)
    return [
        (
            int(far[peer]),
            float(psnr(pixels[peer].ravel(), np.full(SIDE**2, pixels[peer].mean()))),
            float(psnr(pixels[peer].ravel(), one.inputs.ravel())),
            "yes" if one.label == labels[peer] else "no",
        )
        for peer, one in found.items()
    ]


def line(quick: bool) -> Finding:
    """Figure 4.4(b) and Table A.2."""
    graph, hidden = path(31, kind="laplacian", plus=0), SMALLER if quick else HIDDEN
    victims = (5, 26) if quick else DISTANCES
    rows = scored(seen(graph, 0, victims, hidden, graph.n), graph, 0)
    near = [row for row in rows if int(str(row[0])) <= REACH]
    far = [int(str(row[0])) for row in rows]
    good = sum(float(str(row[2])) > SYNTHETIC_SUCCESS for row in near)
    return Finding(
        header=("distance", "PSNR of its mean gray", "PSNR recovered", "label recovered"),
        rows=rows,
        checks=(
            Check(
                f"up to distance {REACH} digits are above 20 dB ({good} of {len(near)}); the source:"
                f" accurate up to {REACH}",
                good == len(near),
            ),
            Check(f"up to distance {REACH} every label is right", all(r[3] == "yes" for r in near)),
        ),
        draw=curves(
            {
                "recovered": (far, [float(str(row[2])) for row in rows]),
                "its mean gray": (far, [float(str(row[1])) for row in rows]),
            },
            "distance from the attacker",
            "PSNR, dB",
            level=(SYNTHETIC_SUCCESS, "20 dB"),
        ),
        settings={"graph": "path:31", "steps": 31, "rate": RATE, "hidden units": hidden},
        words="beyond that double precision ends: digits of the models, divided by the rate, are"
        " amplified by a condition number of 8e11",
    )


def families(quick: bool) -> Finding:
    """Figure A.5."""
    graph, hidden = florentine(kind="laplacian", plus=0), SMALLER if quick else HIDDEN
    names = graph.labels or ()
    attacker = names.index("Medici")
    victims = [peer for peer in range(graph.n) if peer != attacker][:: 7 if quick else 3]
    found = seen(graph, attacker, victims, hidden, 7)
    rows = [
        (names[peer], *row) for peer, row in zip(found, scored(found, graph, attacker), strict=True)
    ]
    good = sum(float(str(row[3])) > SYNTHETIC_SUCCESS for row in rows)
    right = sum(row[4] == "yes" for row in rows)
    pixels, _ = digits(graph.n)
    return Finding(
        header=(
            *("family", "distance", "PSNR of its mean gray"),
            *("PSNR recovered", "label recovered"),
        ),
        rows=rows,
        checks=(
            Check(
                f"the Medici see digits of the others above 20 dB ({good} of {len(rows)} tried), and their"
                f" labels ({right})",
                good == right == len(rows),
            ),
        ),
        draw=pictures(
            {
                "true": pixels[list(found)],
                "recovered": np.stack([one.inputs[0] for one in found.values()]),
            },
            (SIDE, SIDE),
        ),
        settings={"graph": "florentine", "steps": 7, "rate": RATE, "hidden units": hidden},
        words="the source attacks from its node 0, whose name its text does not say",
    )


TABLE_A2 = "Table A.2"
FIGURES = (
    Figure(
        id="th-4.4b",
        also=("th-tA.2",),
        title="Digits through a convolutional network along a line of 31",
        number=f"Figure 4.4(b), {TABLE_A2}",
        page="pp. 65, 139",
        repeat=line,
        criterion="digits above 20 dB and labels right up to distance 26",
        cpu_s=300,
        theory=("gossip:EXP-8", "gossip:EXP-11"),
        data=("mnist",),
        extra="torch",
    ),
    Figure(
        id="th-A.5",
        title="Digits through a convolutional network among the Florentine families",
        number=f"Figure A.5, {TABLE_A2}",
        page="p. 138",
        repeat=families,
        criterion="every digit above 20 dB and every label right",
        cpu_s=300,
        theory=("gossip:EXP-9", "gossip:EXP-11"),
        data=("mnist",),
        extra="torch",
        shows_records=True,
    ),
)
