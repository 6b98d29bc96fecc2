"""A team of actors of Ray. Parcels are objects of its store: they go from node to node, and the
process that asks has their names only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bruit.errors import ConfigError
from bruit.on.place import Raised
from bruit.on.ray_place import PATIENCE, Ray
from bruit.on.ray_session import Session, lost_because
from bruit.on.team import Broken, Handed, Parcel, PartCall, Team, opened


class RayTeam(Team):
    """The actors of one place, spread over its nodes. A lost one is begun again if there is room,
    else the others take over its parts."""

    def __init__(self, place: Ray, session: Session) -> None:
        from bruit.on.ray_worker import Crew

        self._place, self._session, self._kind = place, session, Crew
        self.words, self.size, self.checkpoint = session.words, session.actors, place.checkpoint
        self.place: dict[int, int] = {}
        self._actors: dict[int, Any] = {}
        self._orphans: set[int] = set()  # parts whose worker is lost
        try:
            self._fill(range(self.size))
        except BaseException:
            self.stop(now=True)
            raise

    def begin(self, made: Callable[[Any], Any], share: Callable[[int], Any], parts: int) -> None:
        self._made, self._share = self._session.put(made), share
        self.place = {number: number % self.size for number in range(parts)}
        self._make(list(self.place))

    def ask(self, name: str, asked: Mapping[int, PartCall]) -> dict[int, Handed]:
        calls = {}
        for number, one in asked.items():
            call = self._actors[self.place[number]].call.options(num_returns=1 + one.hands)
            made = call.remote(number, name, one.hands, one.arguments, *one.parcels)
            calls[number] = made if one.hands else [made]
        told = self._told({number: made[0] for number, made in calls.items()})
        return {
            number: answer._replace(parcels=calls[number][1:]) for number, answer in told.items()
        }

    def safe(self, parcel: Parcel) -> Parcel:
        try:
            return self._session.put(self._session.get(parcel))[0]
        except self._session.losses as error:
            raise Broken(lost_because(error)) from error

    def mend(self) -> None:
        for at in [at for at in self._actors if not self._alive(at)]:
            del self._actors[at]
            self._orphans |= {number for number, here in self.place.items() if here == at}
        self._replace(sorted({self.place[number] for number in self._orphans}))
        left = list(self._actors)
        for k, number in enumerate(sorted(self._orphans)):
            if self.place[number] not in self._actors:
                self.place[number] = left[k % len(left)]
        self._make(sorted(self._orphans))
        self._orphans = set()

    def _replace(self, lost: list[int]) -> None:
        """New actors, as far as there is room. A cluster learns late that a node is gone, and may
        send them there."""
        room = self._session.room(self._place.cpus, self._place.gpus) - len(self._actors)
        some = [at for at in lost if at not in self._actors][: max(0, room)]
        try:
            self._fill(some)
        except ConfigError as error:
            for at in some:
                del self._actors[at]
            raise Broken(str(error)) from error
        if not self._actors:
            raise ConfigError(
                "no node of the cluster has room for an actor any more; the same command on"
                " another place does all of it, with the same draws"
            )

    def stop(self, now: bool) -> None:
        self._actors = {}
        self._session.close()

    def _fill(self, numbers: Sequence[int]) -> None:
        """Actors of these numbers, that have begun and are like this process."""
        for at in numbers:
            self._actors[at] = self._session.actor(
                self._place.cpus, self._place.gpus, self._kind, spread=True
            )
        told = [self._actors[at].versions.remote() for at in numbers]
        self._session.compare(told, PATIENCE)

    def _make(self, numbers: list[int]) -> None:
        self._told(
            {
                number: self._actors[self.place[number]].make.remote(
                    number, self._made[0], self._share(number)
                )
                for number in numbers
            }
        )

    def _told(self, asked: Mapping[int, Any]) -> dict[int, Handed]:
        """What all of them answered, once all are done or lost."""
        answers: dict[int, Handed | Raised] = {}
        loss: Exception | None = None
        waiting = {reference: number for number, reference in asked.items()}
        while waiting:
            for reference in self._session.first(list(waiting)):
                number = waiting.pop(reference)
                try:
                    answers[number] = self._session.get(reference)
                except self._session.losses as error:
                    loss = error
        if loss is not None:
            raise Broken(lost_because(loss)) from loss
        return opened(answers)

    def _alive(self, at: int) -> bool:
        try:
            self._session.get(self._actors[at].versions.remote())
        except self._session.losses:
            return False
        return True
