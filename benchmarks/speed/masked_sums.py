"""What do masks cost? Masked SGD among 16 peers, models of 100,000 numbers, with and without them
(silo:SILO-4).

Without masks: the same run, whose answers are said as they are, so that only the masks are missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import bruit as br
from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Inbox
from bruit.algorithms.silos.masked_sgd import MaskedSGD, State
from bruit.tasks.records import Records

PEERS, RECORDS, STEPS = 16, 32, 4


@dataclass(frozen=True, kw_only=True)
class Unmasked(MaskedSGD):
    """Says its noisy answers without masks: everybody may read them. For comparison only."""

    @classmethod
    def name(cls) -> str:
        return "unmasked-sgd"

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        state = self._descended(state, inbox, home)
        if home.attempt is None or not home.attempt.members:
            return state
        shares = len(home.attempt.members) - self.colluders
        answer = home.masked_answer(state.model, self._grain(home), shares)
        return state._replace(words=answer)


def task(dim: int) -> br.tasks.Logistic:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((PEERS * RECORDS, dim)) / np.sqrt(dim)
    labels = np.where(rng.random(len(rows)) < 0.5, -1.0, 1.0)
    return br.tasks.Logistic(Records.of(rows, labels, np.repeat(np.arange(PEERS), RECORDS)))


def measure(quick: bool = False) -> Answer:
    dim = 10_000 if quick else 100_000
    answer = Answer(f"what do masks cost? {PEERS} peers, d = {dim:,}", quick)
    data, noise = task(dim), br.RecordSums(clip=0.5, sigma=5.0, divisor=float(RECORDS))

    def run(algorithm: MaskedSGD) -> object:
        return br.run(
            algorithm,
            f"complete:{PEERS}",
            data,
            privacy=noise,
            steps=STEPS,
            engine=br.Bulk(),
            evaluate_every=0,
        )

    cases = {
        "without masks": lambda: run(Unmasked(rate=1.0)),
        "masked, one colluder": lambda: run(MaskedSGD(rate=1.0)),
        "masked, fourteen colluders (all pairs)": lambda: run(MaskedSGD(rate=1.0, colluders=14)),
    }
    seconds = interleaved(cases, 3)
    for name, found in seconds.items():
        answer.add(name, found / STEPS / PEERS * 1e3, "CPU ms a peer and round")
    bare = seconds["without masks"]
    for name in ("masked, one colluder", "masked, fourteen colluders (all pairs)"):
        answer.goals.append(Goal(f"{name}, times the cost without", seconds[name] / bare, 2.0))
    return answer


if __name__ == "__main__":
    main(measure)
