"""Draws images/scale-out.svg, a round of averaging among 10^9 peers by workers, from the cost model
and what was measured last (benchmarks/speed/scale_out.json): `python -m docs.scale_picture`."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

from benchmarks.speed.scale_model import NUMBER, Costs, known_costs, random_rows, torus_rows
from docs.network_pictures import page
from docs.picture import label

PATH = Path(__file__).parent / "images" / "scale-out.svg"
PEERS, DEGREE, DIM = 1e9, 6, 10
WORKERS = (1, 10, 100, 1000)  # a slab of a torus has one layer at least
LEFT, RIGHT, TOP, BOTTOM = 90.0, 520.0, 90.0, 330.0


def across(workers: float) -> float:
    return LEFT + (RIGHT - LEFT) * math.log10(workers) / math.log10(WORKERS[-1])


def height(seconds: float, low: int, high: int) -> float:
    return BOTTOM - (BOTTOM - TOP) * (math.log10(seconds) - low) / (high - low)


def lines(model: Costs, low: int, high: int) -> list[str]:
    """Seconds of both graphs, and at the end the bytes that cross."""
    parts = []
    for random, name, kind in (
        (False, "torus of 3 dimensions", "hidden"),
        (True, "random graph", "exposed"),
    ):
        seconds = [model.seconds(PEERS, DEGREE, DIM, k, random) for k in WORKERS]
        dots = [(across(k), height(s, low, high)) for k, s in zip(WORKERS, seconds, strict=True)]
        for (a, b), (x, y) in pairwise(dots):
            parts.append(
                f'<line class="link" x1="{a:.1f}" y1="{b:.1f}" x2="{x:.1f}" y2="{y:.1f}"/>'
            )
        parts += [f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>' for x, y in dots]
        k = WORKERS[2]
        rows = random_rows(PEERS, k, DEGREE) if random else torus_rows(PEERS, k)
        gigabytes = NUMBER * DIM * rows / 1e9
        y = TOP + (34 if random else 14)
        parts += [
            f'<circle class="{kind}" cx="{RIGHT + 24:.1f}" cy="{y + 20 * random - 4:.1f}" r="4.5"/>',
            label(RIGHT + 36, y + 20 * random, f"{name}", "say"),
            label(RIGHT + 36, y + 20 * random + 16, f"{k} workers: {gigabytes:.3g} GB a round"),
        ]
    return parts


def draw() -> str:
    """The picture."""
    model = known_costs()
    found = [model.seconds(PEERS, DEGREE, DIM, k, r) for k in WORKERS for r in (False, True)]
    low, high = math.floor(math.log10(min(found))), math.ceil(math.log10(max(found)))
    parts = [
        label(28, 34, "A billion peers, on paper", "title"),
        label(28, 56, f"seconds a round of averaging, degree {DEGREE}, {DIM} numbers a peer"),
    ]
    for power in range(low, high + 1):
        y = height(10.0**power, low, high)
        parts.append(f'<line class="link" x1="{LEFT}" y1="{y:.1f}" x2="{RIGHT}" y2="{y:.1f}"/>')
        parts.append(label(LEFT - 10, y + 4, f"{10.0**power:g} s", anchor="end"))
    parts += [label(across(k), BOTTOM + 24, f"{k}", anchor="middle") for k in WORKERS]
    parts.append(label((LEFT + RIGHT) / 2, BOTTOM + 46, "workers, a core each", anchor="middle"))
    parts.append(label(28, BOTTOM + 74, f"constants measured on one machine: {model.machine}"))
    parts += lines(model, low, high)
    told = (
        f"A round among 10^9 peers: {model.seconds(PEERS, DEGREE, DIM, 1, False):.3g} s on one worker,"
        f" {model.seconds(PEERS, DEGREE, DIM, 1000, False):.3g} s on 1000 (torus)."
    )
    return page(790, 420, told, parts)


if __name__ == "__main__":
    PATH.write_text(draw())
