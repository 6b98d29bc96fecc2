"""Questions about epsilon: of a run, or of a protocol without data; of a pair, a coalition,
everybody, or over all pairs.

What a protocol costs is known before anybody brings a record: its ledger and its meetings do not
depend on the data, so a rehearsal on blank values stands for every run of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from bruit.errors import ConfigError
from bruit.files import write_whole
from bruit.mechanisms import Gaussian, Mechanism, RecordSums
from bruit.privacy.events import Adjacency
from bruit.privacy.guarantee import Epsilon, Hypothesis, Status
from bruit.privacy.pair_table import Summary
from bruit.runs.build import protocol
from bruit.runs.file import ExperimentFile, from_dict
from bruit.runs.result import Run
from bruit.runs.run import rehearse
from bruit.runs.settings import parse_settings
from bruit.tasks.task import Constants


@dataclass(frozen=True, kw_only=True)
class BlankProtocol:
    """A protocol without data.

    `settings` are parameters of the algorithm, KEY=VALUE. `smoothness` declares that losses are
    convex, that smooth, and that gradients never reach half the sensitivity. At the level of
    records the sensitivity is how far one record moves a sum of clipped records, of which each is
    in a batch with chance `sample_rate` (silo:SILO-2).
    """

    graph: str | None = None
    algorithm: str = "averaging"
    settings: tuple[str, ...] = ()
    steps: int | None = None
    sigma: float | None = None
    sensitivity: float = 1.0
    smoothness: float | None = None
    dim: int = 1
    seed: int = 0
    level: str = "user"
    adjacency: str = "replace"
    sample_rate: float = 1.0

    def rehearse(self) -> Run:
        """A run of it on blank values, whose ledger and meetings are those of every run."""
        noise = self._noise()
        agreed = protocol(self._file())
        blank = rehearse(agreed.algorithm, agreed.graph, noise, agreed.steps, self.seed, self.dim)
        many = f"{self.dim} number{'s' * (self.dim > 1)}"
        text = f"a message holds {many}, and rounding is charged for each (--dim)"
        kept = blank.declared if self.level == "record" else ()
        blank.declared = (*kept, Hypothesis(text, checked=False))
        if self.smoothness is not None:
            if not 0 < self.smoothness < math.inf:
                raise ConfigError(
                    f"the smoothness must be finite and positive, found {self.smoothness:g}"
                )
            blank.constants = Constants(self.sensitivity / 2, self.smoothness, 0.0, "declared")
        return blank

    def _noise(self) -> Mechanism:
        """What every release is hidden in."""
        size = _checked_size(self.sigma, self.sensitivity)
        if self.level == "record":
            half = 1.0 if self.adjacency == "add-remove" else 2.0
            return RecordSums(
                clip=self.sensitivity / half,
                sigma=size,
                sample_rate=self.sample_rate,
                adjacency=cast(Adjacency, self.adjacency),
            )
        if self.level != "user":
            raise ConfigError(
                f"--level {self.level}: what is hidden is 'user', all that a peer holds, or"
                " 'record', one row of it"
            )
        if self.adjacency != "replace" or self.sample_rate != 1.0:
            raise ConfigError(
                "--adjacency and --sample-rate are about records; add --level record, or leave them"
                " out"
            )
        return Gaussian(clip=self.sensitivity / 2, sigma=size)

    def _file(self) -> ExperimentFile:
        """The protocol as the experiment file of a mean."""
        if self.steps is not None and self.steps < 1:
            raise ConfigError(
                f"steps = {self.steps}: nobody would say anything; ask for at least one step"
            )
        return from_dict(
            {
                "graph": self.graph,
                "seed": self.seed,
                "task": {"kind": "mean", "dim": self.dim},
                "privacy": {"sigma": self.sigma},
                "algorithm": {**_parameters(self.settings), "name": self.algorithm},
                **({} if self.steps is None else {"steps": self.steps}),
            },
            where="this question",
        )


def _checked_size(sigma: float | None, sensitivity: float) -> float:
    """The noise that was asked for, refused where it or what it is measured by means nothing."""
    if sigma is None:
        raise ConfigError(
            "say how much noise: --sigma, the standard deviation of what each peer adds"
        )
    if not sigma > 0:
        raise ConfigError(
            f"sigma = {sigma:g} adds no noise, so there is no epsilon to speak of; give --sigma > 0"
        )
    if not (0 < sensitivity < math.inf and sigma < math.inf):
        raise ConfigError(
            f"sigma and sensitivity must be finite and positive, found {sigma:g} and "
            f"{sensitivity:g}"
        )
    return sigma


def _parameters(settings: tuple[str, ...]) -> dict[str, Any]:
    """What `--set algorithm.KEY=VALUE` says of the algorithm; a protocol without data has nothing
    else to set."""
    found = {}
    for key, value in parse_settings(list(settings)):
        head, _, rest = key.partition(".")
        if head != "algorithm" or not rest:
            raise ConfigError(
                f"--set {key}: a protocol without data is described by its own options and by"
                f" parameters of its algorithm, --set algorithm.{key.rpartition('.')[2]}=..."
            )
        found[rest] = value
    return found


def ask(
    subject: Run,
    of: int | list[int] | None,
    seen_by: list[int] | str | None,
    delta: float,
    status: Status,
    progress: Callable[[int, int], None] | None,
) -> Epsilon | Summary:
    """One epsilon when somebody is named, else the summary over all pairs."""
    if of is None and seen_by is None:
        return subject.summary(delta, status, progress)
    return subject.epsilon(of, seen_by, delta, status)


def explain(subject: Run, found: Epsilon | Summary, delta: float, status: Status) -> str:
    """Why: of the epsilon itself, or of the worst pair behind a summary."""
    if isinstance(found, Epsilon):
        return found.why()
    m = subject.accountant().table(delta, status).losses
    if m is None:  # pairs are not told apart
        pair = subject.accountant().any_pair(delta, status)
        return (subject.guarantee(delta=delta) if pair is None else pair).epsilon(delta).why()
    if not np.any(m[~np.eye(len(m), dtype=bool)] > 0):
        return "no pair learned anything"
    of, seen_by = (int(k) for k in np.unravel_index(np.nanargmax(m), m.shape))
    return subject.epsilon(of, seen_by, delta, status).why()


def write_matrix(
    subject: Run, path: Path, status: Status, progress: Callable[[int, int], None] | None
) -> None:
    """m[u, v] for all pairs as .npy, whole or not at all."""
    m = subject.losses(status, progress)
    write_whole(path, lambda stream: np.save(stream, m))
