"""What a figure was made by: a digest of the scripts that it reaches.

A figure whose scripts are as they were need not be made again, whatever was added beside it. What
counts is the module of its function and every module of `papers` that one imports, directly or not.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import platform
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import papers

ROOT = Path(papers.__file__).parent.parent
QUIETLY: dict[str, Any] = {"capture_output": True, "text": True, "check": True}


def made_by(repeat: Callable[..., Any]) -> str:
    """The version of bruit, and the digest of the scripts behind a function."""
    found = hashlib.sha256()
    for file in reached(Path(inspect.getsourcefile(repeat) or "")):
        found.update(file.read_bytes())
    return f"{version('bruit')} {found.hexdigest()[:12]}"


class Stamp(NamedTuple):
    """What makes a figure, as the process that asks for it knows: a machine that is only sent the
    sources knows neither a release nor a commit."""

    made_by: str
    release: str
    commit: str

    @classmethod
    def of(cls, repeat: Callable[..., Any]) -> Stamp:
        return cls(made_by(repeat), version("bruit"), commit())


def made_at(stamp: Stamp) -> dict[str, str]:
    """The day, the commit, the machine and the versions."""
    return {
        "day": datetime.now(UTC).date().isoformat(),
        "commit": stamp.commit,
        "machine": f"{processor()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": f"bruit {stamp.release}, "
        + ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
        + f", Python {platform.python_version()}",
    }


@cache
def commit() -> str:
    """The commit of the repository, and whether files differ from it; empty without git."""
    asked = ["git", "-C", str(ROOT)]
    try:
        head = subprocess.run([*asked, "rev-parse", "--short=10", "HEAD"], **QUIETLY).stdout.strip()
        changed = subprocess.run([*asked, "status", "--porcelain", "bruit", "papers"], **QUIETLY)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{head} and changes" if changed.stdout.strip() else head


def processor() -> str:
    """What the machine calls its processor."""
    told = Path("/proc/cpuinfo")
    if told.is_file():
        for line in told.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


@cache
def reached(first: Path) -> tuple[Path, ...]:
    """The file and all files of `papers` behind it, in a fixed order."""
    seen: dict[Path, None] = {}
    waiting = [first] if first.is_file() else []
    while waiting:
        file = waiting.pop()
        if file not in seen:
            seen[file] = None
            waiting += _imported(file)
    return tuple(sorted(seen))


def _imported(file: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("papers"):
            # `from papers.figures import walk_table` names a file, `from papers.x import f` none
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for name in names:
                at = ROOT / (name.replace(".", "/") + ".py")
                if at.is_file():
                    yield at
