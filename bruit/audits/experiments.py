"""Audits of experiment files: graph, algorithm, mechanism and steps as the file says, on worst-case data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from bruit.audits.audit import CONFIDENCE, Audit, audit
from bruit.audits.trials import Neighbors
from bruit.build import build
from bruit.config import read
from bruit.experiment import rehearse, run
from bruit.privacy.guarantee import Status


def hardest_pair(path: str | Path, status: Status = "proven", seed: int | None = None) -> tuple[int, int]:
    """The pair (of, seen by) whose claim is the most exposed: the largest proven loss, or, for a published formula, the
    largest proven loss that the formula puts lower."""
    file, text = read(path)
    made = build(file, text, str(path))
    chosen = file.seed if seed is None else seed
    said = rehearse(made.algorithm, made.graph, made.privacy, made.steps, chosen, 1)
    m = said.losses()
    gap = m if status == "proven" else m - np.minimum(said.losses(status), m)
    of, seen_by = np.unravel_index(int(np.nanargmax(gap)), gap.shape)
    return int(of), int(seen_by)


def audit_experiment(
    path: str | Path, of: int, seen_by: int | Iterable[int] | None, trials: int = 10_000, delta: float = 1e-6,
    confidence: float = CONFIDENCE, status: Status = "proven", seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:  # fmt: skip
    """Try to refute what is claimed, proven or published, for the protocol of an experiment file.

    Its data plays no part: the audit puts the worst neighbors of peer `of` in their place, so that what is found is
    about the protocol. Walks and meetings are those of the file's seed, unless another one is given.
    """
    file, text = read(path)
    made = build(file, text, str(path))
    chosen = file.seed if seed is None else seed
    watching = seen_by if seen_by is None or isinstance(seen_by, int) else tuple(seen_by)
    claimed = None
    if status != "proven":
        clip = 1.0 if made.privacy is None else made.privacy.clip
        worst = Neighbors.opposite(made.graph.n, of, clip)
        said = run(made.algorithm, made.graph, worst, privacy=made.privacy, steps=made.steps, seed=chosen,
                   evaluate_every=0)  # fmt: skip
        claimed = said.guarantee(of, watching, delta, status)
    return audit(made.algorithm, made.graph, made.privacy, of, watching, made.steps, trials, delta, confidence, claimed,
                 chosen, progress=progress)  # fmt: skip
