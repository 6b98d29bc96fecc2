"""Draws the pictures of how-to/which-network.md from the accountant and the planner: `python -m
docs.network_pictures`.

exposed-peers.svg: the peers whose noisy value one observer computes after 30 rounds of plain
gossip, on a graph of few eigenvalues and on a random one (gossip:MUF-2). clinics.svg: the network
that `bruit plan --trust` finds for three clinics of four departments, and its error beside that of
local DP and of one masked sum of everybody, at epsilon = 1 across clinics.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from bruit.arrays import Array
from bruit.graphs import Graph, graph
from bruit.planning.plan import plan
from bruit.planning.question import Question
from bruit.planning.trust import plan_trust
from bruit.planning.trust.files import last_graph
from bruit.privacy.exact.krylov import leverage
from docs.picture import label

FOLDER = Path(__file__).parent / "images"
STEPS = 30
SYMMETRIC, RANDOM = "moore:7", "regular:50,degree=6"
CLINICS, DEPARTMENTS = 3, 4
INSIDE, ACROSS, DELTA = 8.0, 1.0, 1e-6
EXPOSED = 1 - 1e-9
STEP = 52.0  # between two circles of peers, by distance from the observer
FULL = 240.0  # length of the longest bar

STYLE = """
  .card { fill: #ffffff; stroke: #d9dce1 }
  text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #444b55 }
  .title { font-size: 16px; font-weight: 600; fill: #15181d }
  .say { font-weight: 600; fill: #15181d }
  .link { stroke: #b9bfc8; stroke-width: .7 } .circle { fill: #00695f; fill-opacity: .12; stroke: #00695f }
  .observer { fill: #15181d } .exposed { fill: #b34300 } .hidden { fill: #00695f }
  .peer { fill: #00695f } .bar { fill: #00695f } .worse { fill: #b34300 }
  @media (prefers-color-scheme: dark) {
    .card { fill: #111618; stroke: #2c313a }
    text { fill: #aeb6c2 } .title, .say { fill: #f0f2f5 } .observer { fill: #f0f2f5 }
    .link { stroke: #4a515c } .circle { fill: #5cd3c2; fill-opacity: .14; stroke: #5cd3c2 }
    .exposed, .worse { fill: #ff9e57 } .hidden, .peer, .bar { fill: #5cd3c2 }
  }
"""


def distances(found: Graph, start: int) -> list[list[int]]:
    """The peers 0, 1, 2, ... links away."""
    known, rings = {start}, [[start]]
    while rings[-1]:
        near = {int(v) for u in rings[-1] for v in found.neighbors(u)} - known
        known |= near
        rings.append(sorted(near))
    return rings[:-1]


def dots(found: Graph, loss: Array, x: float, y: float) -> list[str]:
    """The observer in the middle, the others in circles by distance, colored by what is known."""
    place = {}
    for far, ring in enumerate(distances(found, 0)):
        for k, peer in enumerate(ring):
            angle = 2 * math.pi * (k + 0.5 * (far % 2)) / len(ring)
            place[peer] = (x + STEP * far * math.cos(angle), y + STEP * far * math.sin(angle))
    parts = links(found, place)
    for peer, (a, b) in place.items():
        kind = "observer" if peer == 0 else "exposed" if loss[peer] > EXPOSED else "hidden"
        parts.append(
            f'<circle class="{kind}" cx="{a:.1f}" cy="{b:.1f}" r="{7 if peer == 0 else 5}"/>'
        )
    return parts


def links(found: Graph, place: dict[int, tuple[float, float]]) -> list[str]:
    return [
        f'<line class="link" x1="{place[u][0]:.1f}" y1="{place[u][1]:.1f}" '
        f'x2="{place[v][0]:.1f}" y2="{place[v][1]:.1f}"/>'
        for u in range(found.n)
        for v in sorted(map(int, found.neighbors(u)))
        if u < v
    ]


def page(width: int, height: int, told: str, parts: list[str]) -> str:
    body = "\n".join(parts)
    card = f'<rect class="card" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img">\n'
        f"<title>{told}</title>\n<style>{STYLE}</style>\n{card}\n{body}\n</svg>\n"
    )


def exposed() -> str:
    """Two graphs of 50 peers, and whom one observer exposes on each."""
    parts = [
        label(28, 34, "Symmetry protects, randomness exposes", "title"),
        label(28, 56, f"whose noisy value one peer computes in {STEPS} rounds of plain gossip"),
    ]
    told = []
    for name, x in ((SYMMETRIC, 185.0), (RANDOM, 535.0)):
        found = graph(name)
        if not isinstance(found, Graph):
            raise TypeError(f"{name} is no single graph")
        loss = leverage(found, [0], STEPS).loss
        count = int(np.sum(np.delete(loss, 0) > EXPOSED))
        parts += dots(found, loss, x, 245)
        told.append(f"{name}: {count} of {found.n - 1} exposed")
        parts.append(label(x, 432, told[-1], "say", "middle"))
    parts += [
        '<circle class="observer" cx="250" cy="462" r="6"/>',
        label(262, 466, "observer"),
        '<circle class="exposed" cx="340" cy="462" r="5"/>',
        label(352, 466, "exposed"),
        '<circle class="hidden" cx="425" cy="462" r="5"/>',
        label(437, 466, "not exposed"),
    ]
    return page(720, 486, "; ".join(told) + ".", parts)


def caps() -> Array:
    """What each department may learn about each other one."""
    clinic = np.arange(CLINICS * DEPARTMENTS) // DEPARTMENTS
    found = np.where(clinic[:, None] == clinic[None, :], INSIDE, ACROSS)
    np.fill_diagonal(found, np.nan)
    return found


def clinics() -> str:
    """The network found for the clinics, and errors at the same caps."""
    found = plan_trust(caps(), DELTA)
    masked = plan(Question(CLINICS * DEPARTMENTS, ACROSS, delta=DELTA), "gopa").chosen.error
    place = {}
    parts = [
        label(28, 34, "Three clinics of four departments", "title"),
        label(28, 56, f"epsilon {INSIDE:g} within a clinic, {ACROSS:g} across"),
    ]
    for k, circle in enumerate(found.circles):
        x, y = (95.0 + 180 * (k % 2), 150.0) if k < 2 else (185.0, 300.0)
        parts.append(f'<circle class="circle" cx="{x}" cy="{y}" r="62"/>')
        for j, peer in enumerate(circle):
            angle = 2 * math.pi * (j + 0.5) / len(circle)
            place[peer] = (x + 38 * math.cos(angle), y + 38 * math.sin(angle))
    parts += links(last_graph(found), place)
    parts += [f'<circle class="peer" cx="{a:.1f}" cy="{b:.1f}" r="5"/>' for a, b in place.values()]
    rows = (
        ("local DP", found.local_error, "worse"),
        ("circles of trust (bruit plan --trust)", found.error, "bar"),
        ("one masked sum of everybody (gopa)", masked, "bar"),
    )
    parts.append(label(380, 112, "root mean squared error of the mean", "say"))
    for k, (name, error, kind) in enumerate(rows):
        y, length = 150 + 70 * k, FULL * error / found.local_error
        parts += [
            label(380, y, name),
            f'<rect class="{kind}" x="380" y="{y + 8}" width="{length:.1f}" height="18" rx="3"/>',
            label(388 + length, y + 22, f"{error:.2f}", "say"),
        ]
    told = ", ".join(f"{name} {error:.2f}" for name, error, _ in rows)
    return page(700, 390, f"Error of the mean: {told}.", parts)


PICTURES = {"exposed-peers.svg": exposed, "clinics.svg": clinics}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw())
