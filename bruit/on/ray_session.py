"""The connection to Ray: made when asked for, printed, closed by who made it; and what goes wrong
with it, in sentences."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from bruit.errors import ConfigError
from bruit.how_many import how_many
from bruit.on.cores import cores
from bruit.on.ray_pulse import GONE, Pulse, knock

if TYPE_CHECKING:
    from bruit.on.ray_place import Ray

MISSING = (
    "Ray is not installed; `pip install 'bruit[ray]'`, or stay on this machine with --on processes"
)
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is told to anybody
    "RAY_ENABLE_AUTO_CONNECT": "0",  # nothing of Ray starts by itself
}
SENT = ("bruit", "papers")


def imported() -> Any:
    """Ray, or how to get it."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    if find_spec("ray") is None:
        raise ConfigError(MISSING)
    import ray

    return ray


def opened(place: Ray) -> Session:
    """Connected to what the place names, and to nothing else."""
    ray = imported()
    if ray.is_initialized():
        raise ConfigError(
            "this process is connected to Ray already, and bruit does not know to what end; call"
            " ray.shutdown() first, or do this in a process of its own"
        )
    local, actors, address = place.address == "local", place.actors, _found(place)
    if local and actors is None:
        actors = max(1, int(cores() / place.cpus))
    with _signals_kept():
        try:
            ray.init(address=address, **_asked(place, actors))
        except Exception as error:
            raise ConfigError(_refused(place, str(error) or type(error).__name__)) from error
    try:
        return _session(place, ray, actors, client=address.startswith("ray://"))
    except BaseException:
        ray.shutdown()
        raise


def _found(place: Ray) -> str:
    """The address, where somebody listens. Ray itself asks one where nobody does for ten minutes,
    without a word, and hears no Ctrl-C meanwhile."""
    if place.address == "local":
        return place.address
    address = _running() if place.address == "auto" else place.address
    protocol, _, host = address.rpartition("://")
    try:
        if protocol not in ("", "ray"):
            raise ValueError(protocol)
        knock(host)
    except OSError as error:
        at = place.address if address == place.address else f"{place.address} ({address})"
        raise ConfigError(
            f"no Ray cluster answers at {at}: {error}; start one with `ray start --head`, or"
            " look at its address with `ray status`"
        ) from error
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"the address of a cluster of Ray is auto, HOST:PORT or ray://HOST:PORT, found"
            f" {address!r}"
        ) from error
    return address


def _running() -> str:
    """What Ray takes "auto" for."""
    told = os.environ.get("RAY_ADDRESS")
    if told:
        return told
    from ray._private.services import canonicalize_bootstrap_address

    try:
        return str(canonicalize_bootstrap_address("auto"))
    except ConnectionError as error:
        raise ConfigError(
            "no cluster of Ray is known on this machine; start one with `ray start --head`, or give"
            " the address of one (ray:HOST:PORT)"
        ) from error


def _asked(place: Ray, actors: int | None) -> dict[str, Any]:
    """The arguments of `ray.init`: all of them are said, none is guessed."""
    common: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if place.address == "local":
        return common | {
            "include_dashboard": False,
            "num_cpus": max(1, -int(-place.cpus * (actors or 1) // 1)),
            "num_gpus": max(0, -int(-place.gpus * (actors or 1) // 1)),
            "object_store_memory": place.object_store,
            "runtime_env": dict(place.runtime_env or {}),
        }
    return common | {"runtime_env": _sent() if place.runtime_env is None else place.runtime_env}


def _sent() -> dict[str, Any]:
    """The packages of this repository that are loaded, as they are here."""
    folders = [
        os.path.dirname(str(sys.modules[name].__file__)) for name in SENT if name in sys.modules
    ]
    return {"py_modules": folders, "excludes": ["**/__pycache__"]}


def _refused(place: Ray, words: str) -> str:
    """Why Ray did not begin, or somebody listens and does not let this process in."""
    words = " ".join(words.split())
    if "ersion mismatch" in words:
        return (
            f"the Ray cluster at {place.address} has other versions than this process: {words};"
            " start it with the same versions of Ray and Python"
        )
    if place.address == "local":
        return f"Ray did not start on this machine: {words}"
    return (
        f"who listens at {place.address} does not let this process in: {words}; is it the head of a"
        " cluster of Ray? If it asks for a token, set RAY_AUTH_MODE=token here, with its token in"
        " RAY_AUTH_TOKEN or ~/.ray/auth_token (`ray get-auth-token` on its machine tells it)"
    )


def _session(place: Ray, ray: Any, actors: int | None, client: bool) -> Session:
    known = ray.cluster_resources()
    cpus, gpus = float(known.get("CPU", 0)), float(known.get("GPU", 0))
    nodes = sum(bool(node.get("Alive")) for node in ray.nodes())
    room = _room(known, place.cpus, place.gpus)
    if (actors or 1) > room:
        raise ConfigError(
            f"{how_many(actors or 1, 'actor')} with {_units(place.cpus, place.gpus)} each do not fit on"
            f" {_where(place)}, which has {_units(cpus, gpus)}; ask for fewer"
        )
    chosen = room if actors is None else actors
    words = (
        f"on {_where(place)} ({ray.get_runtime_context().gcs_address}): {how_many(nodes, 'node')},"
        f" {_units(cpus, gpus)}; {how_many(chosen, 'actor')} with {_units(place.cpus, place.gpus)} each"
    )
    pulse = Pulse("" if client else ray.get_runtime_context().gcs_address)
    return Session(ray, words, chosen, pulse)


def _room(known: Mapping[str, float], cpus: float, gpus: float) -> int:
    """How many actors with so many CPUs and GPUs each such resources are enough for, but for how
    they lie on nodes."""
    room = int(known.get("CPU", 0) / cpus)
    return min(room, int(known.get("GPU", 0) / gpus)) if gpus else room


def _units(cpus: float, gpus: float) -> str:
    return f"{how_many(float(cpus), 'CPU')} and {how_many(float(gpus), 'GPU')}"


def _where(place: Ray) -> str:
    return "Ray on this machine" if place.address == "local" else f"Ray at {place.address}"


@dataclass(frozen=True, eq=False)
class Session:
    """A connection to Ray, and how many actors were asked for."""

    ray: Any
    words: str
    actors: int
    pulse: Pulse

    @property
    def losses(self) -> tuple[type[Exception], ...]:
        """What the end of an actor or of its node looks like."""
        errors = self.ray.exceptions
        return (errors.RayActorError, errors.ObjectLostError, errors.OutOfMemoryError)

    def put(self, thing: Any) -> Any:
        """A thing in the object store, once for all; inside a list it stays a reference."""
        try:
            with self._watched():
                return [self.ray.put(thing)]
        except self.ray.exceptions.ObjectStoreFullError as error:
            raise ConfigError(
                "what is to be done does not fit into the object store of Ray; give it more:"
                " Ray(object_store=BYTES)"
            ) from error

    def first(self, references: list[Any]) -> list[Any]:
        """Those that are done, at least one; a cluster that is gone is said to be."""
        while True:
            self.pulse.check()
            with self._watched():
                ready, _ = self.ray.wait(references, num_returns=1, timeout=1.0)
            if ready:
                return list(ready)

    def get(self, reference: Any) -> Any:
        """One answer."""
        with self._watched():
            return self.ray.get(reference)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """What ends a connection, in a sentence."""
        try:
            yield
        except self.losses:
            raise
        except self.ray.exceptions.RayTaskError as error:
            words = str(error).strip().splitlines()[-1]
            raise ConfigError(f"a worker of Ray could not begin: {words}") from error
        except (self.ray.exceptions.RaySystemError, ConnectionError) as error:  # that of a client
            raise ConfigError(
                f"the Ray cluster is gone ({' '.join(str(error).split())}); {GONE}"
            ) from error

    def room(self, cpus: float, gpus: float) -> int:
        """How many such actors the cluster as it is now has room for, in all."""
        return _room(self.ray.cluster_resources(), cpus, gpus)

    def actor(self, cpus: float, gpus: float, kind: Callable[[], Any], spread: bool = False) -> Any:
        """A new actor, wherever there is room for it; `spread`: on as many nodes as there are."""
        options = {"num_cpus": cpus, "num_gpus": gpus, "max_restarts": 0, "max_task_retries": 0}
        where = {"scheduling_strategy": "SPREAD"} if spread else {}
        return self.ray.remote(kind).options(**options, **where).remote()

    def compare(self, told: Sequence[Any], patience: float) -> None:
        """Refuses workers on which the same call might give other bits."""
        from bruit.on.worker import versions

        try:
            found = self.ray.get(list(told), timeout=patience)
        except self.ray.exceptions.GetTimeoutError:
            raise ConfigError(
                f"the actors did not begin within {patience:g} s; is the cluster busy with other"
                " jobs? Ask for fewer actors, or wait"
            ) from None
        except (self.ray.exceptions.RayError, ImportError) as error:
            raise ConfigError(_unbegun(error)) from error
        here = versions()
        for there in found:
            differ = [f"{name} {here[name]} here, {there[name]} there" for name in here]
            differ = [
                words for words, name in zip(differ, here, strict=True) if here[name] != there[name]
            ]
            if differ:
                raise ConfigError(
                    f"the workers run other versions, so bits might differ: {'; '.join(differ)}."
                    " Install the same there, or send this one: leave runtime_env out"
                )

    def close(self) -> None:
        """The actors are gone with the connection."""
        if self.ray.is_initialized():
            self.ray.shutdown()


def _unbegun(error: Exception) -> str:
    """Why an actor did not begin: what it was sent means nothing there, or it was lost."""
    words = str(error).strip()
    if isinstance(error, ImportError) or "creation task" in words:
        return (
            f"the workers of the cluster could not load bruit: {words.splitlines()[-1]}; leave"
            " runtime_env out, which sends it, and install there what it needs"
        )
    return f"the actors did not begin: {lost_because(error)}"


def lost_because(error: Exception) -> str:
    """Why an actor is no more, in a sentence."""
    words = " ".join(str(error).split())
    if type(error).__name__ == "OutOfMemoryError" or "low on memory" in words:
        return (
            "a worker of Ray ran out of memory; ask for fewer actors a node (more cpus each), or"
            " for a machine with more of it"
        )
    if "SYSTEM_ERROR" in words:  # whose usual causes Ray lists, memory among them
        return (
            "the process of an actor of Ray ended all of a sudden; it crashed, or was killed, maybe"
            " by a machine that has too little memory for so many actors"
        )
    return f"an actor of Ray or its node is gone: {words[:300]}"


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray brings handlers of its own; ours stay."""
    names = (signal.SIGINT, signal.SIGTERM)
    before = {name: signal.getsignal(name) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            try:
                signal.signal(name, handler)
            except ValueError:  # not the first thread: there nothing was changed
                break
