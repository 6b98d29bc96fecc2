"""G8: cryptographic noise against numpy's generator, which is not; and the exact discrete
Gaussian."""

from __future__ import annotations

import numpy as np

import bruit as br
from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.randomness import Replay

WIDTH = 1024


def measure(quick: bool = False) -> Answer:
    answer = Answer("G8: how fast is noise?", quick)
    rows = 500 if quick else 4000
    lanes, dice, rng, count = np.arange(rows), Replay(0), np.random.default_rng(0), rows * WIDTH
    few, exact = rows // 10, br.DiscreteGaussian(clip=1.0, sigma=1.0)
    plain = br.Gaussian(clip=1.0, sigma=1.0)
    seconds = interleaved(
        {
            "words": lambda: dice.words("floor", lanes, 0, 0, WIDTH // 2),
            "pcg": lambda: rng.standard_normal((rows, WIDTH)),
            "pcg32": lambda: rng.standard_normal((rows, WIDTH), dtype=np.float32),
            "normal": lambda: dice.normal("noise", lanes, 0, 0, WIDTH),
            "normal32": lambda: dice.normal32("noise", lanes, 0, 0, WIDTH),
            "lattice": lambda: plain.noise(dice, lanes, 0, 0, WIDTH),
            "discrete": lambda: exact.noise(dice, lanes[:few], 0, 0, WIDTH),
        },
        7,
    )
    speed = {
        name: (few * WIDTH if name == "discrete" else count) / found / 1e6
        for name, found in seconds.items()
    }
    speed["words"] /= 2
    labels = {
        "words": "floor: 64-bit AES words",
        "pcg": "numpy PCG64, double",
        "pcg32": "numpy PCG64, single",
        "normal": "Dice.normal",
        "normal32": "Dice.normal32",
        "lattice": "Gaussian.noise on its lattice",
        "discrete": "DiscreteGaussian.noise, exact",
    }
    for name, label in labels.items():
        answer.add(label, speed[name], "million a CPU second")
    answer.goals += [
        Goal("double: million normals a second", speed["normal"], 250, at_least=True),
        Goal("single: million normals a second", speed["normal32"], 500, at_least=True),
        Goal(
            "single against numpy PCG64, double: times faster",
            speed["normal32"] / speed["pcg"],
            5,
            at_least=True,
        ),
        Goal("exact discrete Gaussian: million a second", speed["discrete"], 10, at_least=True),
    ]
    return answer


if __name__ == "__main__":
    main(measure)
