"""Figures of the sources without numbers: what they show, and why nothing is computed for them."""

from __future__ import annotations

from papers.reproduce.illustration import Illustration

ILLUSTRATIONS = (
    Illustration(
        id="hdr-3.1",
        number="Figure 3.1",
        why="draws the phantom graph of a proof, where data travel apart from averages; the proof is perso:PAIR-7",
    ),
    Illustration(
        id="hdr-3.2",
        number="Figure 3.2",
        why="explains a hierarchical histogram by five numbers; hdr-3.6 measures the protocol built on it",
    ),
    Illustration(
        id="hdr-3.3",
        number="Figure 3.3",
        why="explains which nodes of that tree are visited; hdr-3.6 measures with and without pruning",
    ),
    Illustration(
        id="th-1.1",
        number="Figure 1.1",
        why="a drawing of how data grew",
    ),
    Illustration(
        id="th-2.1",
        number="Figure 2.1",
        why="pictures of what machine learning does elsewhere",
    ),
    Illustration(
        id="th-t2.1",
        number="Table 2.1",
        why="a made-up table of shoppers, to explain what a record is",
    ),
    Illustration(
        id="th-2.2",
        number="Figure 2.2",
        why="two parabolas around a function: the definitions of smoothness and strong convexity",
    ),
    Illustration(
        id="th-2.3",
        number="Figure 2.3",
        why="draws who sends what to whom, with a server and without",
    ),
    Illustration(
        id="th-2.4",
        number="Figure 2.4",
        why="draws one round and one meeting; `bruit ui` shows them of any run",
    ),
    Illustration(
        id="th-3.1",
        number="Figure 3.1",
        why="draws how two tables are joined on what they share",
    ),
    Illustration(
        id="th-3.2",
        number="Figure 3.2",
        why="draws the definition of differential privacy: two densities with a bounded ratio",
    ),
    Illustration(
        id="th-3.3",
        number="Figure 3.3",
        why="draws intermediate trust; papers/theorems/trust_ladder.py has its numbers",
    ),
    Illustration(
        id="th-3.4",
        number="Figure 3.4",
        why="another paper's picture of gradient matching; th-4.4b runs the attack",
    ),
    Illustration(
        id="sl-sgd",
        number="rates of private descent",
        why="orders of magnitude without constants: nothing that a run could confirm or refute",
    ),
)
