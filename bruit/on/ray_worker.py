"""Workers of Ray: actors that hold what is done, and do it. They never draw real noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bruit.errors import ConfigError
from bruit.on.place import Raised
from bruit.on.team import Parts
from bruit.on.worker import done, versions
from bruit.randomness.shared_machine import declare_shared


class Worker:
    """One thing at a time, in the order in which they come."""

    def __init__(self) -> None:
        declare_shared("on a cluster")
        self._do: Callable[[Any], Any] | Raised | None = None

    def versions(self) -> dict[str, str]:
        """What its answers depend on."""
        return versions()

    def hold(self, do: list[Any]) -> None:
        """From now on this is what it does; fetched once from the object store. What cannot be loaded
        here takes the place of what was held before, too, and is told to whoever asks for a thing."""
        import ray

        self._do = done(lambda reference: _loaded(ray.get, reference), do[0])

    def do(self, thing: Any) -> Any:
        """The answer, or what went wrong."""
        if self._do is None:
            raise LookupError("nothing is held")
        return self._do if isinstance(self._do, Raised) else done(self._do, thing)


def _loaded(get: Callable[[Any], Any], reference: Any) -> Any:
    """What was sent, or the last line of why it means nothing here."""
    try:
        return get(reference)
    except Exception as error:
        words = str(error).strip().splitlines()[-1]
        raise ConfigError(
            f"a worker of Ray cannot load what it is to do ({words}); what is not part of bruit is"
            " sent by Ray(runtime_env={'py_modules': [...]}), or installed there"
        ) from error


class Crew:
    """An actor that keeps parts of one large thing (`bruit.on.team`)."""

    def __init__(self) -> None:
        declare_shared("on a cluster")
        self._parts = Parts()

    def versions(self) -> dict[str, str]:
        """What its answers depend on."""
        return versions()

    def make(self, number: int, made: Any, share: Any) -> Any:
        """The part is here from now on; made is fetched once a node from the object store."""
        return self._parts.make(number, made, share)

    def call(self, number: int, name: str, hands: int, arguments: Any, *parcels: Any) -> Any:
        """What the part tells, and each of its parcels as an object of its own: so many, also where
        something went wrong."""
        answer = self._parts.call(number, name, arguments, parcels)
        if not hands:
            return answer
        if isinstance(answer, Raised):
            return answer, *[None] * hands
        return answer._replace(parcels=()), *answer.parcels
