"""Habilitation, chapter 4: how much canceling noise GOPA needs (perso:GOPA-6, EXP-8)."""

from __future__ import annotations

from papers.figures import gopa_table
from papers.figures.gopa_search import draw
from papers.reproduce.drawing import bars
from papers.reproduce.figure import Check, Figure, Finding

EPSILON, SHOWN = 0.1, {1.0: (20, 34.7), 0.5: (40, 28.4)}


def needed(n: int, k: int, rho: float, draws: int) -> list[float]:
    """Pair noise that drawn graphs need by the source's own rule."""
    small = (rho * n) ** -2
    return [
        draw(n, k, rho, seed).corollary_pair(EPSILON, small, 10 * small) for seed in range(draws)
    ]


def table_4_1(quick: bool) -> Finding:
    """Table 4.1."""
    found = gopa_table.corrected(quick)
    n, draws = (2000, 1) if quick else (10_000, 3)
    all_honest, half = needed(n, 20, 1.0, draws), needed(n, 40, 0.5, draws)
    words = found.words + (
        "" if not quick else "; --quick asks 2000 peers, not the source's 10,000"
    )
    return Finding(
        header=found.header,
        rows=found.rows,
        checks=(
            Check(
                "with everybody honest, drawn graphs of k = 20 need at most 34.7",
                max(all_honest) <= 34.7,
            ),
            Check(
                "with half of them honest, k = 40 needs 28.4",
                min(half) <= 28.4,
                f"drawn graphs need {min(half):.1f} at least, by the source's own rule",
                too_small=quick,
            ),
        ),
        draw=bars(
            ["all honest, k = 20", "half honest, k = 40"],
            {"source": [34.7, 28.4], "drawn graphs": [max(all_honest), max(half)]},
            "pair noise",
        ),
        settings={"peers": n, "epsilon": EPSILON, "drawn graphs": draws},
        words=words,
    )


FIGURES = (
    Figure(
        id="hdr-t4.1",
        title="Pair noise and neighbors of GOPA",
        number="Table 4.1",
        page="p. 65",
        repeat=table_4_1,
        criterion="34.7 is found for all honest; 28.4 for half is refuted",
        cpu_s=60,
        theory=("perso:GOPA-6", "perso:EXP-8"),
    ),
)
