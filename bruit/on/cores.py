"""How many cores this process may use: what it is bound to, what its container was given, and what
a batch system granted. Two jobs on one machine must not both count all of it."""

from __future__ import annotations

import os
from pathlib import Path

QUOTA = Path("/sys/fs/cgroup/cpu.max")
GRANTED = "SLURM_CPUS_PER_TASK"


def cores() -> int:
    """At least 1."""
    known = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    granted = os.environ.get(GRANTED, "")
    limits = [known, *([int(granted)] if granted.isdigit() else []), *_quota(QUOTA)]
    return max(1, min(limits))


def _quota(path: Path) -> list[int]:
    """The whole cores of a container's quota, rounded up; none where there is no quota."""
    try:
        allowed, period = path.read_text().split()
        return [-(-int(allowed) // int(period))]
    except (OSError, ValueError):
        return []
