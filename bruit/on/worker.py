"""What a worker does with a thing: the answer, or in words what went wrong."""

from __future__ import annotations

import platform
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bruit.digests import digest
from bruit.errors import ConfigError
from bruit.on.place import Raised


def done(do: Callable[[Any], Any], thing: Any) -> Any:
    """The answer, or `Raised`: an exception is told, not thrown, since some cannot travel."""
    try:
        return do(thing)
    except Exception as error:
        words = str(error) or repr(error)
        return Raised(type(error), words, traceback.format_exc())
    except SystemExit as error:
        words = f"what was to be done ended its process ({error!r})"
        return Raised(ConfigError, words, traceback.format_exc())


def versions() -> dict[str, str]:
    """What the bits of an answer depend on besides what is sent."""
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    source = digest(b"", *(path.read_bytes() for path in files)).hex()[:12]
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "numpy": np.__version__,
        "bruit": f"sources {source}",
    }
