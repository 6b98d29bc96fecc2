"""Draws the map of how-to/which-network.md, from what is to be learned to a command: `python -m
docs.protocol_map`.

A row is a case: what is learned, what is hidden, who is trusted and can be reached, the protocol, and
the command to begin with. Neighboring rows that begin alike share their first boxes. A test checks
that each command stands on that page, so that the map and the words below it agree.
"""

from __future__ import annotations

import html
import textwrap
from itertools import groupby
from pathlib import Path

from docs.network_pictures import FOLDER
from docs.picture import label

PATH = FOLDER / "which-protocol.svg"
PERSON, ROW = "all that a person holds", "one record of a holder"
CASES = (
    (
        "one number",
        PERSON,
        "All can reach all, most are honest and stay",
        "masked sum",
        "bruit plan --peers 12 --epsilon 1",
    ),
    (
        "one number",
        PERSON,
        "The same, and no liar may bend it",
        "verified average",
        "bruit mean --book",
    ),
    (
        "one number",
        PERSON,
        "Some trust each other more than the rest",
        "circles of trust",
        "bruit plan --trust caps.csv",
    ),
    (
        "one number",
        PERSON,
        "Only neighbors talk, on a graph you choose",
        "gossip by design",
        "bruit plan --design --peers 50",
    ),
    (
        "one number",
        PERSON,
        "Only neighbors talk, the graph is given",
        "gossip, fresh noise",
        "bruit plan --graph file:edges.txt --algorithm renoised --epsilon 1",
    ),
    (
        "one number",
        PERSON,
        "Nobody is trusted: all may read everything",
        "local DP",
        "bruit plan --peers 12 --epsilon 1 --algorithm local-dp",
    ),
    (
        "one model",
        ROW,
        "A few holders of many records, who may collude",
        "masked learning",
        "bruit plan --silos 4 --records 200,170,30,85 --level record",
    ),
    (
        "one model",
        PERSON,
        "Many people",
        "tokens, butterflies",
        "bruit plan --peers 64 --contributions 12 --epsilon 4",
    ),
    (
        "one model",
        PERSON,
        "Only neighbors talk, the graph is given",
        "masked consensus",
        "bruit plan --graph ... --algorithm masked-consensus",
    ),
    (
        "one model",
        PERSON,
        "Some may lie; the graph is dense",
        "rules against outliers",
        'algorithm.name = "robust-sgd"',
    ),
    (
        "a model each",
        PERSON,
        "People differ; neighbors are alike",
        "personalized models",
        'algorithm.name = "personalized"',
    ),
    (
        "how well a score ranks",
        ROW,
        "Two holders, a table each",
        "garbled comparison",
        "bruit auc --with",
    ),
)
HEADINGS = ("to learn", "to hide", "whom one can reach and trust", "to begin with")
LEFTS, WIDTH, TOP, ROWS, GAP = (14.0, 132.0, 262.0, 502.0), 860, 88, 58, 6.0
LETTERS = (14, 17, 30, 46)  # that fit on a line of a column
STYLE = """
  .card { fill: #ffffff; stroke: #d9dce1 } .box { fill: #eef3f3; stroke: #c9d4d3 } .end { fill: #00695f }
  text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #23292f }
  .title { font-size: 17px; font-weight: 600; fill: #15181d } .head { font-weight: 600; fill: #444b55 }
  .name { font-weight: 600; fill: #ffffff }
  .command { font: 11px ui-monospace, "DejaVu Sans Mono", Menlo, monospace; fill: #ffffff }
  @media (prefers-color-scheme: dark) {
    .card { fill: #111618; stroke: #2c313a } .box { fill: #1d2629; stroke: #37444a } .end { fill: #0c4740 }
    text { fill: #e6eaee } .title { fill: #f0f2f5 } .head { fill: #b7c0ca }
  }
"""


def draw() -> str:
    parts = [label(LEFTS[0], 36, "Which protocol for us?", "title")]
    parts += [label(x, TOP - 16, text, "head") for x, text in zip(LEFTS, HEADINGS, strict=True)]
    for depth in range(3):
        begin = 0
        for key, rows in groupby(CASES, key=lambda case: case[: depth + 1]):
            count = len(list(rows))
            parts += _box(depth, begin, count, key[-1])
            begin += count
    for row, (*_, name, command) in enumerate(CASES):
        parts += _end(row, name, command)
    height = TOP + ROWS * len(CASES) + 10
    told = "; ".join(f"{learned}, {who}: {name}" for learned, _, who, name, _ in CASES)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img">\n<title>{html.escape(told)}.</title>\n<style>{STYLE}</style>\n'
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>\n'
        f"{body}\n</svg>\n"
    )


def _box(depth: int, row: int, count: int, text: str) -> list[str]:
    x, wide = LEFTS[depth], LEFTS[depth + 1] - LEFTS[depth] - GAP
    y, high = TOP + ROWS * row, ROWS * count - GAP
    lines = textwrap.wrap(text, LETTERS[depth])
    first = y + high / 2 + 4.5 - 8 * (len(lines) - 1)
    shape = f'<rect class="box" x="{x}" y="{y}" width="{wide}" height="{high}" rx="5"/>'
    return [shape, *(label(x + 9, first + 16 * k, line) for k, line in enumerate(lines))]


def _end(row: int, name: str, command: str) -> list[str]:
    x, y, wide = LEFTS[3], TOP + ROWS * row, WIDTH - LEFTS[3] - LEFTS[0]
    lines = textwrap.wrap(command, LETTERS[3], break_on_hyphens=False)
    first = y + 20 + 6 * (2 - len(lines))
    return [
        f'<rect class="end" x="{x}" y="{y}" width="{wide}" height="{ROWS - GAP}" rx="5"/>',
        label(x + 9, first - 2, name, "name"),
        *(
            label(x + 9, first + 13 + 13 * k, html.escape(line), "command")
            for k, line in enumerate(lines)
        ),
    ]


if __name__ == "__main__":
    Path(PATH).write_text(draw())
