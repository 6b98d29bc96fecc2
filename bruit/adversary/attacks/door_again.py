"""The door of a simulated run once more: whoever has its records can draw its noise again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from bruit.algorithms.task_door import TaskDoor
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.tasks.task import Task

if TYPE_CHECKING:
    from bruit.runs.result import Run

Opened = TypeVar("Opened", bound=TaskDoor)


def door_again(kind: type[Opened], run: Run, task: Task, **more: Any) -> Opened:
    """A door of that kind with the noise and the public draws of the run, and an empty ledger."""
    return kind(
        task=task,
        mechanism=run.privacy,
        dice=run.dice(task),
        ledger=Ledger(peers=run.n),
        run=run.phase,
        public=Replay(run.seed),
        **more,
    )
