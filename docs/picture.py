"""Draws images/loss-torus.svg from the accountant itself: `python -m docs.picture`.

What peer 0 of a 16x16 torus could have learned about the others after 5 rounds of gossip averaging,
by distance: the exact loss (gossip:MUF-2) beside the published formula (gossip:MUF-1), which is not
a bound. One dot per peer; the lines join the worst peer of each distance.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from bruit.arrays import Array, Ints
from bruit.graphs import torus
from bruit.privacy.exact.krylov import leverage
from bruit.privacy.theorems.published import published_pairwise

PATH = Path(__file__).parent / "images" / "loss-torus.svg"
SIDE, STEPS = 16, 5
LEFT, RIGHT, TOP, BOTTOM = 92.0, 524.0, 84.0, 344.0
HIGHEST, LOWEST = 0.75, -4.6  # powers of ten at the ends of the axis

STYLE = """
  .card { fill: #ffffff; stroke: #d9dce1 }
  text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #444b55 }
  .title { font-size: 16px; font-weight: 600; fill: #15181d }
  .grid { stroke: #e6e8ec } .unit { stroke: #8a929e; stroke-dasharray: 5 4 }
  .exact, .published { fill: none; stroke-width: 2.5 } .exact { stroke: #b34300 } .published { stroke: #00695f }
  .dot-exact { fill: #b34300; fill-opacity: .4 } .dot-published { fill: #00695f; fill-opacity: .4 }
  .say-exact { fill: #b34300; font-weight: 600 } .say-published { fill: #00695f; font-weight: 600 }
  .gap { stroke: #15181d; stroke-width: 1.3; fill: none } .say-gap { fill: #15181d; font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    .card { fill: #111618; stroke: #2c313a }
    text { fill: #aeb6c2 } .title, .say-gap { fill: #f0f2f5 } .gap { stroke: #f0f2f5 }
    .grid { stroke: #262b33 } .unit { stroke: #7b8494 }
    .exact { stroke: #ff9e57 } .published { stroke: #5cd3c2 }
    .dot-exact, .dot-published { fill-opacity: .6 }
    .dot-exact, .say-exact { fill: #ff9e57 } .dot-published, .say-published { fill: #5cd3c2 }
  }
"""


def distances() -> Ints:
    """Number of links between peer 0 and every peer of the torus."""
    rows, columns = np.divmod(np.arange(SIDE * SIDE), SIDE)
    return np.asarray(np.minimum(rows, SIDE - rows) + np.minimum(columns, SIDE - columns), np.int64)


def losses() -> tuple[Array, Array]:
    """Exact and published loss of every peer in the view of peer 0."""
    graph = torus(SIDE, SIDE)
    return leverage(graph, [0], STEPS).loss, published_pairwise(graph, STEPS)[:, 0]


def worst(loss: Array) -> Array:
    """The largest loss at each distance 1..STEPS."""
    far = distances()
    return np.array([loss[far == distance].max() for distance in range(1, STEPS + 1)])


def across(distance: float) -> float:
    return LEFT + 34 + (RIGHT - LEFT - 68) * (distance - 1) / (STEPS - 1)


def height(loss: float) -> float:
    return TOP + (HIGHEST - math.log10(loss)) / (HIGHEST - LOWEST) * (BOTTOM - TOP)


def label(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{text}</text>'


def line(kind: str, x: float, y: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def series(kind: str, loss: Array) -> list[str]:
    """A dot for every different loss at each distance, and the line through the worst ones."""
    far, parts = distances(), []
    for distance in range(1, STEPS + 1):
        for value in np.unique(np.round(np.log10(loss[far == distance]), 6)):
            parts.append(
                f'<circle class="dot-{kind}" cx="{across(distance):.1f}" '
                f'cy="{height(10**value):.1f}" r="4"/>'
            )
    points = " ".join(
        f"{across(i + 1):.1f},{height(value):.1f}" for i, value in enumerate(worst(loss))
    )
    return [*parts, f'<polyline class="{kind}" points="{points}"/>']


def axes() -> list[str]:
    parts = []
    for power in range(0, -5, -1):
        y = height(10.0**power)
        parts += [
            line("unit" if power == 0 else "grid", LEFT, y, RIGHT, y),
            label(LEFT - 10, y + 4, ("1", "0.1", "0.01", "0.001", "0.0001")[-power], anchor="end"),
        ]
    parts += [label(across(i), BOTTOM + 20, str(i), anchor="middle") for i in range(1, STEPS + 1)]
    middle = (LEFT + RIGHT) / 2
    below = "distance between the two peers, in links (dots: every peer, lines: the worst)"
    return [
        *parts,
        label(middle, BOTTOM + 42, below, anchor="middle"),
        label(RIGHT + 12, height(1.0) + 4, "local DP"),
    ]


def draw() -> str:
    """The whole picture."""
    exact, published = losses()
    top, low = worst(exact)[-1], worst(published)[-1]
    x = across(STEPS) + 14
    above, below = height(top), height(low)
    gap = f"M{x - 4:.1f} {above:.1f} h8 m-4 0 V{below:.1f} m-4 0 h8"
    about = f"{SIDE}x{SIDE} torus, {STEPS} rounds of gossip averaging; privacy loss in units of one local-DP release"
    parts = [
        '<rect class="card" x="0.5" y="0.5" width="699" height="403" rx="8"/>',
        label(28, 34, "What one peer learns about another, by distance", "title"),
        label(28, 56, about),
        *axes(),
        *series("published", published),
        *series("exact", exact),
        f'<path class="gap" d="{gap}"/>',
        label(x + 14, (above + below) / 2 - 4, f"{top / low:.0f} times", "say-gap"),
        label(x + 14, (above + below) / 2 + 13, "too small", "say-gap"),
        label(x + 14, above + 4, "exact loss", "say-exact"),
        label(x + 14, below + 4, "published formula", "say-published"),
    ]
    body = "\n".join(parts)
    told = f"Exact loss {top:.2g} against published {low:.2g} at distance {STEPS}."
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 404" width="700" height="404" '
        f'role="img">\n'
        f"<title>{told}</title>\n<style>{STYLE}</style>\n{body}\n</svg>\n"
    )


if __name__ == "__main__":
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(draw())
