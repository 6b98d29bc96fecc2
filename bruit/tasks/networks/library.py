"""The door to torch, which is an extra: loaded when a network is made, never by `import bruit`."""

from __future__ import annotations

from importlib.util import find_spec

from bruit.errors import ConfigError


def need_torch() -> None:
    """Refuse to go on without torch, and say how to get it."""
    if find_spec("torch") is None:
        raise ConfigError(
            "networks need torch, which is not installed: pip install 'bruit[torch]'; its build for "
            "CPUs is enough"
        )
