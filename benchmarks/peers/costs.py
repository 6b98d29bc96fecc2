"""What a command and everything that it starts costs, orphans included."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SOON = 0.01  # seconds between two looks at the memory, at least
REST = 4.0  # and so many times what a look took: many processes are looked at less often
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: orphans of the command become children of this process


@dataclass(frozen=True)
class Cost:
    cpu: float  # seconds, of all processes
    mib: float  # most memory of all processes together; shared pages are counted once
    said: str  # standard output
    failed: str  # the end of standard error, if it failed


def cost(command: Sequence[str], environment: Mapping[str, str], timeout: float) -> Cost:
    """Run it to its end. What it leaves running is ended, and counted."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    before, most = _cpu(), 0.0
    ends = time.monotonic() + timeout
    with subprocess.Popen(
        command, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None and time.monotonic() < ends:
            began = time.monotonic()
            most = max(most, sum(map(_mib, _below(os.getpid()))))
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(SOON, REST * (time.monotonic() - began)))
        in_time = process.poll() is not None
        _end_all()
        said, wrong = process.communicate()
    why = "" if process.returncode == 0 else wrong[-2000:]
    return Cost(_cpu() - before, most, said, why if in_time else f"took more than {timeout:g} s")


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _below(top: int) -> list[int]:
    """All processes that descend from this one."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.parent.name))
    found = list(children.get(top, ()))
    for process in found:
        found += children.get(process, ())
    return found


def _mib(process: int) -> float:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _end_all() -> None:
    """Whoever is left is killed and waited for, so that its seconds are known."""
    while left := _below(os.getpid()):
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for process in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, 0)
