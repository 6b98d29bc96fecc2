"""The record of ballots: how many may be gone, how many listen together, how many attempts there
are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from bruit.algorithms.schedules.ballots.bulk import messages, play
from bruit.algorithms.schedules.ballots.routes import ROUTES, Route
from bruit.algorithms.schedules.ballots.terms import BallotTerms
from bruit.algorithms.schedules.given import Given
from bruit.algorithms.schedules.schedule import Schedule
from bruit.algorithms.schedules.stage import Stage
from bruit.arrays import Ints
from bruit.domains import chance, whole
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.randomness import Dice
from bruit.trace import Meetings

if TYPE_CHECKING:
    from bruit.algorithms.schedules.peer import PeerMachine, Seat


@dataclass(frozen=True)
class Ballots(Schedule):
    """In every attempt a list of peers is made, and each of them says one row of 64-bit words; only
    the sum of all rows modulo 2^64 means anything (silo:SILO-5).

    `steps` counts rounds, the sums to be made. `dropouts` D peers may be gone; `colluders` a may
    lie, or put together what they hear; `spare` attempts may fail, so that nobody is charged for
    more than steps + spare. `grace` is the part of its patience (the timeout of its seat) for which
    a leader waits for the last D. `route` is how words come together: "complete" (everybody hears
    all, or with more than 8 peers the leader does), along a "tree" under the leader, or by a
    "butterfly". All peers must be neighbors with any of them: lists, and words after an attempt in
    vain, go straight.

    What an algorithm is asked:

    - `start` reads nothing: who else will speak is not known yet. `emit` must then say a row of
      words of the right width, which is never sent.
    - An attempt is `absorb`, then `emit`. `home.attempt` (`Attempt`) says ballot, round, list,
      keys and binding; `home.clock` is the ballot, `home.step` how many attempts this peer was
      charged for, this one included; `home.edges` are the other members. The inbox holds the sums
      that the state has not absorbed yet, none, one or more, as rows of words in order: those of
      lane i are `inbox.copies()[start[i] : start[i + 1]]` with start = `inbox.links.start`, and
      over which lists they are is `home.attempt.sums`. `emit` is asked for one row of uint64 for
      all (`edges.broadcast`). A failed attempt is followed by another with an empty inbox: fresh
      coins and noise, at another `home.step`.
    - After the last round `absorb` is called once more with `home.last`: sums, and no data, no
      draws.
    - The state may be set back to one that had absorbed fewer sums, where somebody lied about a
      sum; charges, steps and ledger never are.
    """

    dropouts: int = 0
    spare: int = 4
    colluders: int = 1
    grace: float = 0.25
    route: Route = "complete"
    unit: ClassVar[str] = "rounds"
    events: ClassVar[str] = "attempts"
    complete: ClassVar[bool] = True
    masked: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole(self, "dropouts", "spare", "colluders")
        chance(self, "grace")
        if self.route not in ROUTES:
            raise ConfigError(
                f"unknown route of words {self.route!r}; use {', '.join(map(repr, ROUTES))}"
            )

    def terms(self, peers: int, steps: int) -> BallotTerms:
        """The rules of a run of so many peers and rounds."""
        return BallotTerms(
            peers=peers,
            dropouts=self.dropouts,
            colluders=self.colluders,
            steps=steps,
            limit=steps + self.spare,
            route=self.route,
        )

    def meetings(
        self, graph: Graph, steps: int, dice: Dice, before: int = 0, holder: int | None = None
    ) -> Meetings:
        return Meetings.none()

    def play(self, stage: Stage) -> Any:
        self.check_graph(stage.one_graph)
        return play(stage, self.terms(stage.n, stage.steps))

    def machine(self, seat: Seat) -> PeerMachine:
        from bruit.algorithms.schedules.ballots.peer import BallotPeer

        graph = self.one_graph(seat.graph)
        self.check_graph(graph)
        return BallotPeer(seat, self.terms(graph.n, seat.steps), self.grace)

    def most_turns(self, steps: int) -> int:
        """T_max: every attempt is charged, and a peer that has made so many falls silent."""
        return steps + self.spare

    def may_be_gone(self) -> int:
        return self.dropouts

    def quorum(self, neighbors: int) -> int:
        """n - D, this peer included: with fewer there is no list."""
        return neighbors - self.dropouts

    def done(self, counts: Sequence[int], now: float) -> int:
        """The rounds of the slowest."""
        return min(counts)

    def behind(self, count: int, steps: int) -> bool:
        return count < steps

    def check_graph(self, graph: Graph) -> None:
        n, gone, liars = graph.n, self.dropouts, self.colluders
        if not bool((graph.degrees == n - 1).all()):
            raise ConfigError(
                f"ballots need that all peers are neighbors of each other, and in {graph.name} they"
                f" are not; use complete:{n}"
            )
        if liars + gone >= n:
            raise ConfigError(
                f"of {n} peers {liars} may collude and {gone} may be gone: nobody is left to hide"
                " among; plan for fewer"
            )
        if 2 * gone >= n:
            raise ConfigError(
                f"of {n} peers {gone} may be gone, so two lists might have no peer in common; plan"
                " for fewer than half"
            )

    def check_given(self, given: Given) -> None:
        events = len(given.trace.meetings.a)
        if events:
            raise given.no_place(
                f"who met whom, {events} times", "in a simulation every attempt is of everybody"
            )

    def messages(self, graph: Graph, acting: Ints, total: int) -> int:
        return total * messages(self.terms(graph.n, total))
