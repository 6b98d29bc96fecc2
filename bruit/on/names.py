"""Places by name, as `--on` takes them: processes[:N] and ray[:ADDRESS][,key=value]."""

from __future__ import annotations

from typing import Any

from bruit.errors import ConfigError
from bruit.on.place import Workplace
from bruit.on.processes import Processes
from bruit.on.ray_place import Ray

FORMS = "processes, processes:4, ray, ray:auto, ray:HOST:PORT or ray:auto,actors=8,cpus=2,gpus=0.25"
NUMBERS = {"actors": int, "cpus": float, "gpus": float, "object_store": int, "checkpoint": int}


def named_place(text: str) -> Workplace:
    """
    >>> named_place("processes:4").count
    4
    >>> named_place("ray:auto,actors=8").actors
    8
    """
    name, _, rest = text.partition(":")
    if name == "processes" or name.startswith("processes,"):
        if rest and not rest.isdigit():
            raise ConfigError(f"--on {text!r}: processes:N takes a whole number; say {FORMS}")
        return Processes(int(rest) if rest else None)
    first, *others = text.split(",")
    if first != "ray" and not first.startswith("ray:"):
        raise ConfigError(f"--on {text!r} names no place; say {FORMS}")
    address = first.removeprefix("ray").removeprefix(":")
    given: dict[str, Any] = {"address": address} if address else {}
    for part in others:
        key, sign, value = part.partition("=")
        if not sign or key not in NUMBERS:
            raise ConfigError(
                f"--on {text!r}: {part!r} is no setting of Ray (there are: {', '.join(NUMBERS)})"
            )
        try:
            given[key] = NUMBERS[key](value)
        except ValueError:
            raise ConfigError(f"--on {text!r}: {key} is a number, found {value!r}") from None
    return Ray(**given)


def place_for(jobs: int, on: Workplace | str | None) -> Workplace | None:
    """The place that `--jobs` or `--on` asks for; None is this process alone."""
    if on is None:
        return Processes(jobs) if jobs > 1 else None
    if jobs > 1:
        raise ConfigError("--jobs N is --on processes:N; give one of them")
    return named_place(on) if isinstance(on, str) else on
