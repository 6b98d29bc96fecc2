"""The options of `bruit plan`: which of them belong together, and the question that they ask."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bruit.errors import ConfigError

if TYPE_CHECKING:
    from bruit.planning.question import Question
    from bruit.planning.silos.question import SilosQuestion

# Beside --silos or --trust these options would say nothing, or the contrary.
NOT_BESIDE_SILOS = (
    "--graph",
    "--algorithm",
    "--peers",
    "--caps",
    "--contributions",
    "--protect",
    "--cooldown",
    "--sensitivity",
    "--trust",
    "--level user",
)
NOT_BESIDE_TRUST = (
    "--graph",
    "--algorithm",
    "--caps",
    "--contributions",
    "--steps",
    "--protect",
    "--cooldown",
    "--colluders",
    "--dim",
    "--sensitivity",
)
NOT_BESIDE_DESIGN = (
    "--algorithm",
    "--caps",
    "--contributions",
    "--protect",
    "--cooldown",
    "--colluders",
    "--dim",
    "--sensitivity",
    "--trust",
    "--silos",
    "--level user",
    "--level record",
    "--adjacency",
    "--dropouts",
    "--sample-rate",
)
ONLY_OF_SILOS = ("--level record", "--adjacency", "--dropouts", "--sample-rate")


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What was asked for on the command line."""

    graph: str | None
    algorithm: str | None
    peers: int | None
    epsilon: float
    delta: float
    protect: str
    caps: Path | None
    contributions: int | None
    cooldown: int
    colluders: int
    steps: int | None
    dim: int
    sensitivity: float
    silos: int | None
    records: str | None
    level: str | None
    adjacency: str | None
    dropouts: int
    sample_rate: float | None
    trust: Path | None
    design: bool = False

    @property
    def for_silos(self) -> bool:
        """Whether each record of a few holders is protected."""
        return self.silos is not None or self.records is not None

    def refuse_misplaced(self) -> None:
        """Options of another kind of plan than the one asked for."""
        named = self._given(NOT_BESIDE_DESIGN) if self.design else ""
        if named:
            raise ConfigError(
                "--design compares graphs for plain gossip, in units of one release: it needs"
                f" --peers or --graph and perhaps --steps; leave out {named}"
            )
        if self.for_silos:
            named = self._given(NOT_BESIDE_SILOS)
            if named:
                raise ConfigError(
                    f"--silos plans for each record, and compares alone, local noise, masked sums "
                    f"and a curator by itself; leave out {named}"
                )
            return
        named = self._given(ONLY_OF_SILOS)
        if named:
            raise ConfigError(
                f"{named} is about holders of many records; add --silos 4 --records "
                f"200,170,30,85, or leave it out: other plans protect all that a peer holds"
            )
        named = self._given(NOT_BESIDE_TRUST) if self.trust is not None else ""
        if named:
            raise ConfigError(
                f"--trust finds graph and noise itself, in units of the sensitivity; leave out"
                f" {named}"
            )

    def silos_question(self) -> SilosQuestion:
        """What the planner of silos is asked."""
        from bruit.planning.silos.question import SilosQuestion, held_by

        if self.records is None:
            raise ConfigError(
                "say how many records each silo holds: --records 200,170,30,85, or one number for "
                "all"
            )
        return SilosQuestion(
            records=held_by(self.silos, self.records),
            dim=self.dim,
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency or "replace",  # type: ignore[arg-type]
            colluders=self.colluders,
            dropouts=self.dropouts,
            steps=self.steps,
            sample_rate=self.sample_rate,
        )

    def question(self) -> Question:
        """What the planner of protocols is asked."""
        from bruit.planning.plan import learning_names
        from bruit.planning.question import Question, among
        from bruit.planning.trust import read_trust

        n, chosen = among(self.graph, self.peers)
        learns = self.contributions is not None or self.algorithm in learning_names()
        return Question(
            n,
            self.epsilon,
            delta=self.delta,
            job="learning" if learns else "mean",
            graph=chosen,
            steps=self.steps,
            protect=self.protect,  # type: ignore[arg-type]
            caps=None if self.caps is None else read_trust(self.caps, self.epsilon, n),
            contributions=self.contributions or 1,
            cooldown=self.cooldown,
            colluders=self.colluders,
            dim=self.dim,
            sensitivity=self.sensitivity,
        )

    def _given(self, options: tuple[str, ...]) -> str:
        """Those of these options that do not have their usual value, in words."""
        given = {
            "--graph": self.graph is not None,
            "--algorithm": self.algorithm is not None,
            "--peers": self.peers is not None,
            "--caps": self.caps is not None,
            "--contributions": self.contributions is not None,
            "--steps": self.steps is not None,
            "--protect": self.protect != "worst",
            "--cooldown": self.cooldown != 1,
            "--colluders": self.colluders != 1,
            "--dim": self.dim != 1,
            "--sensitivity": self.sensitivity != 1,
            "--trust": self.trust is not None,
            "--silos": self.for_silos,
            "--level user": self.level not in (None, "record"),
            "--level record": self.level not in (None, "user"),
            "--adjacency": self.adjacency is not None,
            "--dropouts": self.dropouts != 0,
            "--sample-rate": self.sample_rate is not None,
        }
        return ", ".join(option for option in options if given[option])
