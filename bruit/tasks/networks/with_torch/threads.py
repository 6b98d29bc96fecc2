"""How many threads a step through a network takes: one where it is small, since waking others would
take longer than the step; else as many as torch was told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

SMALL = 5e8  # multiplications that one thread makes in less time than several need to meet


@contextmanager
def threads_for(work: float) -> Iterator[None]:
    """The threads of a step of so many multiplications. Their number follows from public shapes."""
    before = torch.get_num_threads()
    if work >= SMALL or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
