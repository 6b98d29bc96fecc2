"""Sums of per-record clipped gradients: what `br.tasks.Torch` takes, in units of Opacus.

The same batch, the same network and the same clip. Opacus: its default (hooks store every record's
gradient) and its ghost clipping, each up to the clipped sum, without noise and without a step. Ours:
`clipped_sum`, as a masked run asks it, of all records, in single and in double precision; and of
records that are drawn by coins (here all of them are), whose sums are always in double precision.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.networks.opacus_room import opacus
from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.arrays import Array
from bruit.tasks import Torch
from bruit.tasks.records import Records

CLIP, GRAIN, RECORDS, SIDE = 0.5, 2.0**-30, 512, 28
CASES = {"cnn:small": 1.0, "mlp:128": 1.5}  # -> goal


def task_of(module: str, records: int, dtype: str = "float32") -> Torch:
    """One peer with made-up pictures; what they show does not matter to the clock."""
    draws = np.random.default_rng(0)
    rows, labels = draws.random((records, SIDE * SIDE)), draws.integers(0, 10, records)
    owners = np.zeros(records, np.int64)
    return Torch(module, records=Records.of(rows, labels, owners, classes=10), dtype=dtype)


def ours(task: Torch, drawn: bool = False) -> Array:
    """The clipped sum at the starting weights; `drawn`: by coins that all fall well  # (d,)."""
    models, coins = task.start()[None], np.full((1, int(task.sizes[0])), 0.25) if drawn else None
    found = task.clipped_sum(np.zeros(1, np.int64), models, coins, 0.5, CLIP, 1.0 / GRAIN)
    return np.asarray(GRAIN * found[0].astype(np.float64))


class Theirs:
    """Opacus on the same batch, with modules and optimizers made beforehand."""

    def __init__(self, task: Torch) -> None:
        self.there, (block,) = opacus(), task.records.blocks
        self.batch = task.network.batch(block.features, block.targets)
        self.module = task.network.module_with(task.start())
        self.criterion = nn.CrossEntropyLoss(reduction="sum")

    def stored(self) -> Callable[[], Array]:
        """By hooks that store every record's gradient: what `PrivacyEngine` does by default."""
        wrapped = self.there.GradSampleModule(self._own(), loss_reduction="sum")
        optimizer = self.there.optimizers.DPOptimizer(
            torch.optim.SGD(wrapped.parameters(), lr=0.1),
            noise_multiplier=0.0,
            max_grad_norm=CLIP,
            expected_batch_size=None,
            loss_reduction="sum",
        )

        def summed() -> Array:
            optimizer.zero_grad()
            self.criterion(wrapped(self.batch.inputs[0]), self.batch.targets[0]).backward()
            optimizer.clip_and_accumulate()
            return _row(one.summed_grad for one in wrapped.parameters())

        return summed

    def ghost(self) -> Callable[[], Array]:
        """By ghost clipping: norms first, then a second backward pass of the weighted loss."""
        fast = self.there.grad_sample.GradSampleModuleFastGradientClipping
        wrapped = fast(
            self._own(), loss_reduction="sum", max_grad_norm=CLIP, use_ghost_clipping=True
        )
        each = nn.CrossEntropyLoss(reduction="none")

        def summed() -> Array:
            wrapped.zero_grad()
            losses = each(wrapped(self.batch.inputs[0]), self.batch.targets[0])
            losses.sum().backward(retain_graph=True)
            factors = wrapped.get_clipping_coef()
            wrapped.zero_grad()
            wrapped.disable_hooks()
            (losses * factors).sum().backward()
            wrapped.enable_hooks()
            return _row(one.grad for one in wrapped.parameters())

        return summed

    def _own(self) -> nn.Module:
        return copy.deepcopy(self.module).train()


def _row(parts: Any) -> Array:
    return np.concatenate([one.detach().numpy().ravel() for one in parts]).astype(np.float64)


def measure(quick: bool = False) -> Answer:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "Full backward hook is firing", UserWarning)
    records = 64 if quick else RECORDS
    answer = Answer(f"per-record clipped sums of {records} pictures of 28 x 28", quick)
    for module, goal in CASES.items():
        task, double = task_of(module, records), task_of(module, records, "float64")
        theirs = Theirs(task)
        stored, ghost = theirs.stored(), theirs.ghost()
        apart = max(float(np.abs(ours(task) - other()).max()) for other in (stored, ghost))
        seconds = interleaved(
            {
                "Opacus": stored,
                "Opacus, ghost clipping": ghost,
                "ours": lambda task=task: ours(task),  # type: ignore[misc]
                "ours, drawn by coins": lambda task=task: ours(task, True),  # type: ignore[misc]
                "ours, float64": lambda task=double: ours(task),  # type: ignore[misc]
            },
            7,
        )
        for name, found in seconds.items():
            answer.add(f"{module}: {name}", found / records * 1e6, "CPU us a record")
        answer.add(
            f"{module}: largest difference", apart, f"of sums of norm up to {CLIP * records:g}"
        )
        ratio = seconds["ours"] / seconds["Opacus"]
        answer.goals.append(Goal(f"{module}: times Opacus", ratio, goal))
    return answer


if __name__ == "__main__":
    main(measure)
