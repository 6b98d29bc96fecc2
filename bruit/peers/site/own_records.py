"""A participant's own records: one file that never leaves its folder, and the task it makes.

The file holds prepared rows (the preparation was agreed on, see the experiment), labels, and the
public held-out part for scores. A peer knows only its own row of the task: a question about anybody
else is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, LocalProtocolError
from bruit.files import write_whole
from bruit.tasks import Mean, Statistic, Task
from bruit.tasks.data.own_rows import recipe_column
from bruit.tasks.data.recipe import Recipe, recipe_from
from bruit.tasks.kinds.kind import held_kinds, kinds
from bruit.tasks.linear import LinearTask
from bruit.tasks.networks.learned_network import LearnedNetwork
from bruit.tasks.networks.network_task import Torch
from bruit.tasks.pairs.pairwise import Pairwise
from bruit.tasks.task import Constants, Manifest, Score, Sensitivities

UNSCORED = "nothing: there are no public records, and a score on this peer's own would tell of them without noise"


@dataclass(frozen=True, eq=False)
class OwnTask(Task):
    """The part of a task that one peer holds: `inner` has one peer, which is peer `me` of
    `among`."""

    inner: Task
    me: int
    among: int

    @property
    def peers(self) -> int:
        return self.among

    @property
    def dim(self) -> int:
        return self.inner.dim

    @property
    def width(self) -> int:
        return self.inner.width

    @property
    def metric(self) -> str:
        return self.inner.metric

    def _mine(self, ids: Ints) -> Ints:
        if np.any(ids != self.me):
            raise LocalProtocolError(
                f"peer {self.me} was asked for the records of peer {ids[ids != self.me][0]}"
            )
        return np.zeros_like(ids)

    def value(self, ids: Ints) -> Array:
        return self.inner.value(self._mine(ids))

    def gradient(self, ids: Ints, x: Array) -> Array:
        return self.inner.gradient(self._mine(ids), x)

    def gradient_sampled(self, ids: Ints, x: Array, uniforms: Array) -> Array:
        return self.inner.gradient_sampled(self._mine(ids), x, uniforms)

    def prox(self, ids: Ints, x: Array, rho: float) -> Array:
        return self.inner.prox(self._mine(ids), x, rho)

    def record_counts(self) -> Ints:
        """Of the other peers nothing is known here."""
        counts = np.zeros(self.among, np.int64)
        counts[self.me] = self.inner.record_counts()[0]
        return counts

    def sensitivities(self, answer: str, order: int) -> Sensitivities:
        """Of this peer's own answer; what the others release rests on theirs, which they compare."""
        mine, values = self.inner.sensitivities(answer, order), np.zeros(self.among)
        values[self.me] = mine.values[0]
        return mine._replace(values=tuple(values.tolist()))

    def clipped_sum(
        self, ids: Ints, x: Array, coins: Array | None, rate: float, clip: float, unit: float
    ) -> Ints:
        return self.inner.clipped_sum(self._mine(ids), x, coins, rate, clip, unit)

    def cut_losses(self, ids: Ints, x: Array, ceiling: float) -> Array:
        return self.inner.cut_losses(self._mine(ids), x, ceiling)

    def clip_votes(
        self, ids: Ints, x: Array, coins: Array | None, rate: float, clip: float
    ) -> Ints:
        return self.inner.clip_votes(self._mine(ids), x, coins, rate, clip)

    def start(self) -> Array:
        return self.inner.start()

    def assumed_of_records(self) -> tuple[str, ...]:
        return self.inner.assumed_of_records()

    def penalty_gradient(self, x: Array) -> Array:
        return self.inner.penalty_gradient(x)

    def pair_value(self, x: Array, y: Array, uniform: float) -> Array:
        return self.inner.pair_value(x, y, uniform)

    def pair_gradient(self, models: Array, x: Array, y: Array, uniform: float) -> Array:
        return self.inner.pair_gradient(models, x, y, uniform)

    @property
    def local(self) -> tuple[str, ...]:
        return self.inner.local

    def at_home(self, ids: Ints, models: Array) -> Array:
        return self.inner.at_home(self._mine(ids), models)

    @property
    def scored_on(self) -> str:
        """What `evaluate` measures a model on, in words."""
        if isinstance(self.inner, Mean | Statistic):
            return "nothing: no peer knows the true answer"
        return "public records" if self._public else UNSCORED

    @property
    def _public(self) -> bool:
        if isinstance(self.inner, Pairwise):
            return self.inner.held_out is not None
        return (
            isinstance(self.inner, LinearTask | Torch) and self.inner.records.held_out is not None
        )

    def evaluate(self, models: Array) -> dict[str, float]:
        """How good models are on public records. A score on private ones would be a release that no
        door has charged: there is none; nor of a mean, whose own value is no reference."""
        return self.inner.evaluate(models) if self._public else {}

    def constants(self) -> Constants:
        return self.inner.constants()

    def describe(self) -> Manifest:
        return self.inner.describe()

    def references(self) -> dict[str, float]:
        """None: what a peer would learn alone is for whoever simulates all of them."""
        return {}

    def judge(self, models: Array, peer: int) -> Score:
        """On public records; on private ones nobody is judged, not even at home."""
        return self.inner.judge(models, peer) if self._public else Score(math.nan, public=False)

    @property
    def kind(self) -> str:
        return self.inner.kind

    def recipe(self) -> Recipe | None:
        return self.inner.recipe()

    def learned_network(self) -> LearnedNetwork | None:
        return self.inner.learned_network()


def write_share(
    task: Task,
    kind: str,
    peer: int,
    path: Path,
    columns_file: str = "",
    options: Mapping[str, Any] | None = None,
) -> None:
    """One peer's records of a whole task, for demonstrations and rehearsals on data one may lose;
    `columns_file` is the digest of the file they were prepared by, `options` what else the
    experiment says of what is in the file."""
    columns: dict[str, Any] = {"kind": np.str_(kind), **(options or {})}
    if columns_file:
        columns["columns_file"] = np.str_(columns_file)
    # Shares of two demonstrations on the same bundled data are no copies of each other.
    columns["network"] = np.str_(os.urandom(16).hex())
    columns |= kinds()[kind].share(task, peer)
    columns |= recipe_column(task.recipe())
    write_whole(path, lambda file: np.savez_compressed(file, **columns), private=True)


def read_share(
    path: Path,
    me: int,
    among: int,
    agreed: str | None = None,
    columns_file: str | None = None,
    local: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> tuple[OwnTask, str]:
    """The task of peer `me` from its own file, and the file's digest; `agreed` is the kind the
    experiment names, `columns_file` the digest of its columns file ("" if it names none), `local`
    the parts of a model that stay at home, `options` what the experiment says of what is in the file
    too."""
    if not path.is_file():
        raise ConfigError(
            f"the records {path} are missing; every participant keeps its own file there"
        )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        with np.load(path, allow_pickle=False) as stored:
            columns = {name: stored[name] for name in stored.files}
        kind = str(columns["kind"])
        if agreed is not None and kind != agreed:
            raise ConfigError(
                f"the records {path} are for a task of kind {kind!r}, but {agreed!r} was agreed on"
            )
        _same_columns(path, str(columns.get("columns_file", "")), columns_file)
        _same_options(path, columns, options or {})
        recipe = recipe_from(json.loads(str(columns["recipe"]))) if "recipe" in columns else None
        if kind not in (held := held_kinds()):
            raise ConfigError(f"records are of kind {kind!r}; known: {', '.join(held)}")
        inner = held[kind].own_task(columns, recipe, among)
        if local and isinstance(inner, LinearTask | Torch):
            inner = replace(inner, local=tuple(local))
    except (KeyError, ValueError, TypeError, OSError, EOFError, BadZipFile) as error:
        raise ConfigError(f"the records {path} cannot be read: {error}") from None
    return OwnTask(inner, me, among), digest


def _same_options(path: Path, columns: Mapping[str, Any], agreed: Mapping[str, Any]) -> None:
    """Who begins at other weights, or with another network, would learn another model."""
    for name, wanted in agreed.items():
        found = np.asarray(columns[name]).tolist()
        if found != np.asarray(wanted).tolist():
            raise ConfigError(
                f"the records {path} were prepared for {name} = {found!r}, but the experiment agrees "
                f"on {wanted!r}; prepare them again with `bruit peer data`"
            )


def _same_columns(path: Path, used: str, agreed: str | None) -> None:
    """Records that were prepared by another columns file are not those that were agreed on."""
    if agreed is None or used == agreed:
        return
    by = f"a columns file of sha256 {used}" if used else "no columns file"
    what = f"one of sha256 {agreed}" if agreed else "none"
    raise ConfigError(
        f"the records {path} were prepared by {by}, but the experiment agrees on {what}; prepare "
        "them again with `bruit peer data`"
    )
