"""Members: a task whose records are inside or outside by the toss of a coin, and how well a model
fits each of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.randomness import Replay
from bruit.runs.result import Run
from bruit.runs.run import run as run_protocol
from bruit.tasks.counted import Counted
from bruit.tasks.linear import LinearTask
from bruit.tasks.logistic import Logistic
from bruit.tasks.networks.network_task import Torch
from bruit.tasks.task import Task


@dataclass(frozen=True, eq=False)
class RecordPool(Counted):
    """All records in one list, block by block as the task holds them, and who owns each."""

    task: LinearTask | Torch
    features: Array  # (r, p)
    targets: Array  # (r,)
    owners: Ints  # (r,)

    @staticmethod
    def of(task: Task) -> RecordPool:
        """Refuses tasks without records, or without public ones to put in the place of those
        outside."""
        if not isinstance(task, LinearTask | Torch):
            raise ConfigError(
                f"membership is asked about records, and {type(task).__name__.lower()} tasks hold"
                " none; attack a ridge, logistic, softmax or torch task"
            )
        if task.records.held_out is None or not len(task.records.held_out.targets):
            raise ConfigError(
                "a record that is outside is replaced by a public one, and this task holds none"
                " out; give the task test = 0.2, say"
            )
        blocks, kept = task.records.blocks, [block.weights > 0 for block in task.records.blocks]
        return RecordPool(
            task,
            np.concatenate([b.features[real] for b, real in zip(blocks, kept, strict=True)]),
            np.concatenate([b.targets[real] for b, real in zip(blocks, kept, strict=True)]),
            np.concatenate(
                [b.peers[np.nonzero(real)[0]] for b, real in zip(blocks, kept, strict=True)]
            ),
        )

    def with_members(self, inside: Bools, seed: int) -> LinearTask | Torch:
        """The task when records outside are replaced by public ones, drawn anew by the seed."""
        public = self.task.records.held_out
        if public is None:
            raise ConfigError("this task holds no public records out")
        draws = Replay(seed).words("replacements", np.arange(1), 0, 0, len(inside))[0] % np.uint64(
            len(public.targets)
        )
        chosen = draws.astype(np.int64)
        features = np.where(inside[:, None], self.features, public.features[chosen])
        targets = np.where(inside, self.targets, public.targets[chosen])
        blocks, start = [], 0
        for block in self.task.records.blocks:
            real = block.weights > 0
            part = slice(start, start + int(real.sum()))
            new_features, new_targets = block.features.copy(), block.targets.copy()
            new_features[real], new_targets[real] = features[part], targets[part]
            blocks.append(replace(block, features=new_features, targets=new_targets))
            start = part.stop
        return replace(self.task, records=replace(self.task.records, blocks=tuple(blocks)))

    def margins(self, models: Array) -> Array:
        """How well the mean of these models fits each record, on a scale that is nearly normal
        # (r,)."""
        scores = self._scores(models.mean(axis=0))
        if isinstance(self.task, Logistic):
            return np.asarray(self.targets * scores[:, 0])
        if not self.task.classifies:
            return np.asarray(-np.abs(scores[:, 0] - self.targets))
        rows, own = np.arange(len(scores)), self.targets.astype(np.int64)
        right = scores[rows, own]
        scores[rows, own] = -np.inf
        top = scores.max(axis=1)
        return np.asarray(right - top - np.log(np.exp(scores - top[:, None]).sum(axis=1)))

    def _scores(self, model: Array) -> Array:
        """What one model says of every record  # (r, outputs)."""
        if isinstance(self.task, Torch):
            from bruit.tasks.networks.with_torch.judging import outputs_of

            return outputs_of(self.task.network, model, self.features)
        return np.asarray(self.features @ model.reshape(self.task.outputs, -1).T)


@dataclass(frozen=True)
class LearnedByObservers:
    """What the observers hold at the end, when these of the attacked records are inside."""

    done: Run
    pool: RecordPool
    attacked: Bools
    observers: tuple[int, ...]

    def __call__(self, inside: Bools, seed: int) -> Array:
        done, everyone = self.done, np.ones(len(self.attacked), dtype=np.bool_)
        everyone[self.attacked] = inside
        again = run_protocol(
            done.algorithm,
            done.graph,
            self.pool.with_members(everyone, seed),
            privacy=done.privacy,
            steps=done.steps,
            seed=seed,
            evaluate_every=0,
            given=done.trace,
        )
        if np.any(again.ledger.counts().sum(axis=1) > done.ledger.counts().sum(axis=1)):
            raise ConfigError(
                f"{done.algorithm.name()} draws who takes part anew in every run, so that the"
                " epsilon of one run is not that of another; attack it with everybody taking part"
            )
        return again.estimates[list(self.observers)]
