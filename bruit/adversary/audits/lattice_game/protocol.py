"""Which protocol the lattice attack takes apart: one named by its parts, or that of a run or an
experiment."""

from __future__ import annotations

from pathlib import Path

from bruit.adversary.audits.lattice_game.talk import LatticeTarget
from bruit.algorithms.gossip.averaging import Averaging
from bruit.algorithms.gossip.chebyshev import Chebyshev
from bruit.errors import ConfigError
from bruit.graphs import graph as named_graph
from bruit.mechanisms import Gaussian
from bruit.runs.build import build
from bruit.runs.file import read
from bruit.runs.result import load


def named_protocol(
    graph: str | None, steps: int | None, sigma: float | None, clip: float, algorithm: str
) -> LatticeTarget:
    """A protocol by its parts, without any data."""
    if graph is None or steps is None or sigma is None:
        raise ConfigError(
            "name a run folder or an experiment, or a protocol: --graph ... --steps ... --sigma ..."
        )
    if steps < 1:
        raise ConfigError(f"--steps {steps}: nobody would say anything; ask for at least one step")
    if algorithm not in ("averaging", "chebyshev"):
        raise ConfigError(
            f"the lattice attack takes averaging or chebyshev apart, found {algorithm!r}"
        )
    chosen = Averaging() if algorithm == "averaging" else Chebyshev()
    return LatticeTarget(
        algorithm=chosen,
        graph=named_graph(graph),
        mechanism=Gaussian(clip=clip, sigma=sigma),
        steps=steps,
    )


def protocol_of(place: Path) -> LatticeTarget:
    """The protocol of a run or an experiment; coins take the place of its data."""
    if not place.is_dir():
        file, text = read(place)
        made = build(file, text, str(place))
        return LatticeTarget(
            algorithm=made.algorithm, graph=made.graph, mechanism=made.privacy, steps=made.steps
        )
    done = load(place)
    if done.phase or done.trace.missed or len(done.trace.faults.round):
        raise ConfigError(
            f"{place} goes on from an earlier run, or some of its messages were lost;"
            " the lattice attack is made for complete rounds from the start"
        )
    return LatticeTarget(
        algorithm=done.algorithm, graph=done.graph, mechanism=done.privacy, steps=done.steps
    )
