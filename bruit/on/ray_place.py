"""A cluster of Ray, or Ray on this machine: a few long-lived actors, each of which holds what is
done and does one thing after the other.

Nothing of Ray is imported, started or looked for before a `Ray` is opened, and only what it names:
no address is guessed. On this machine it starts with as many cores as its actors take, never with
all there are. Lost actors are not begun again by Ray, whose second try would not be told from the
first; the thing is done again elsewhere, from the same addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bruit.errors import ConfigError
from bruit.on.place import Lost, Pool, Workplace, check_rounds
from bruit.on.ray_session import Session, lost_because, opened
from bruit.on.team import Team

LOCAL = "local"
PATIENCE = 120.0  # seconds until an actor must have begun


@dataclass(frozen=True, kw_only=True)
class Ray(Workplace):
    """`address`: "local" starts Ray on this machine; "auto" or host:port is a cluster that runs
    already, ray://host:port its client. `actors`: by default as many as `cpus` (of each) allow;
    `gpus`: of each, and may be a fraction. `object_store`: bytes of shared memory that Ray takes on
    this machine. `runtime_env`: what a cluster's workers are given (`ray.init`); by default the
    package bruit as it is here, on other machines; {} where it is installed already. `checkpoint`:
    of one run in blocks, rounds after which states are kept; 0 keeps none."""

    address: str = LOCAL
    actors: int | None = None
    cpus: float = 1
    gpus: float = 0
    object_store: int = 200 << 20
    runtime_env: Mapping[str, Any] | None = field(default=None, hash=False)
    checkpoint: int = 10

    def __post_init__(self) -> None:
        if self.actors is not None and self.actors < 1:
            raise ConfigError(f"at least one actor does the work, found {self.actors}")
        if not self.cpus > 0 or not self.gpus >= 0:
            raise ConfigError(
                f"an actor takes CPUs > 0 and GPUs >= 0, found {self.cpus:g} and {self.gpus:g}"
            )
        check_rounds(self.checkpoint)

    def open(self) -> Pool:
        return RayPool(self, opened(self))

    def team(self) -> Team:
        from bruit.on.ray_team import RayTeam

        return RayTeam(self, opened(self))


class RayPool(Pool):
    """The actors of one place."""

    tries = 3

    def __init__(self, place: Ray, session: Session) -> None:
        super().__init__()
        self.place, self.session, self.words = place, session, session.words
        self._actors: dict[int, Any] = {}
        self._asked: dict[Any, int] = {}
        self._next = 0
        try:
            for _ in range(session.actors):
                self._begin()
            session.compare([actor.versions.remote() for actor in self._actors.values()], PATIENCE)
        except BaseException:
            self.stop(now=True)
            raise

    def workers(self) -> list[int]:
        if not self._actors:
            self._begin()
        return list(self._actors)

    def hold(self, do: Callable[[Any], Any]) -> None:
        self._do = self.session.put(do)
        for actor in self._actors.values():
            actor.hold.remote(self._do)

    def send(self, worker: int, thing: Any) -> None:
        self._asked[self._actors[worker].do.remote(thing)] = worker

    def wait(self) -> list[tuple[int, Any]]:
        found = []
        for answered in self.session.first(list(self._asked)):
            worker = self._asked.pop(answered)
            try:
                found.append((worker, self.session.get(answered)))
            except self.session.losses as error:
                self._actors.pop(worker, None)
                found.append((worker, Lost(lost_because(error))))
        return found

    def stop(self, now: bool) -> None:
        self._actors, self._asked = {}, {}
        self.session.close()

    def _begin(self) -> None:
        from bruit.on.ray_worker import Worker

        self._actors[self._next] = self.session.actor(self.place.cpus, self.place.gpus, Worker)
        if hasattr(self, "_do"):
            self._actors[self._next].hold.remote(self._do)
        self._next += 1
