"""Where benchmarks keep what is dear to make again: a folder of this user's own under the machine's
temporary one, never the repository."""

from __future__ import annotations

import getpass
import tempfile
from pathlib import Path


def folder() -> Path:
    found = Path(tempfile.gettempdir()) / f"bruit-benchmarks-{getpass.getuser()}"
    found.mkdir(mode=0o700, exist_ok=True)
    return found
