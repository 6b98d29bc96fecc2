"""The lattice attack as a game: does it find out more about hidden peers than the printed epsilon
allows?

In each trial a fair coin says for every peer whether it holds -clip or +clip. The observers hear
averaging, solve for the noisy values (`bruit.adversary.attacks.lattice`), and guess each hidden
peer's coin, knowing all other coins: by the sign of its value where that is determined, else by the
likelihood ratio of the real-number protocol, which no linear score beats. Under a guarantee with
profile delta(epsilon), no guess is right more often than

    (1 + delta(0)) / 2                                  (total variation; Phi(mu / 2) for a Gaussian profile)

and one that is refutes it. *Hidden* are the peers whose loss is below 1: algebra alone exposes the
others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from bruit.adversary.attacks import decide, knowledge
from bruit.adversary.attacks.distinguish import likelihood_weights
from bruit.adversary.attacks.lattice import MOST, Dithers, Puzzle, check_size
from bruit.adversary.attacks.lattice_forms import heard_forms
from bruit.adversary.audits.bounds import check_confidence
from bruit.adversary.audits.lattice_game.talk import LatticeTarget, Talk
from bruit.adversary.audits.membership import rate_interval
from bruit.algorithms.algorithm import Algorithm
from bruit.arrays import Array, Bools
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.mechanisms import Mechanism
from bruit.privacy.exact import checked_observers
from bruit.privacy.guarantee import Guarantee
from bruit.privacy.profile import check_delta
from bruit.randomness import Replay
from bruit.runs.run import rehearse

NAME = "lattice attack"
TAXONOMY = {
    "goal": "data reconstruction",
    "behaviour": "passive (honest but curious)",
    "knowledge": "white box: graph, weights, schedule and arithmetic; for guesses, the data of all "
    "others",
}


@dataclass(frozen=True, kw_only=True)
class Trying:
    """How hard to try: trials, which peers are guessed at (all hidden ones if None), how many
    messages are used, and the most unknown numbers a lattice may have."""

    trials: int = 200
    of: int | None = None
    messages: int | None = None
    dithers: Dithers = "noise"
    delta: float = 1e-6
    confidence: float = 1 - 1e-6
    seed: int = 0
    most: int = MOST

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_confidence(self.confidence)
        if self.trials < 1:
            raise ConfigError(
                f"the lattice attack is tried once or more, found {self.trials} trials"
            )


@dataclass(frozen=True, kw_only=True)
class Guess:
    """About one hidden peer: values found exactly, right guesses with their interval, and what the
    printed loss allows.

    Of the values `found`, `sure` were also called determined; `mistaken` were called so and are
    wrong.
    """

    of: int
    loss: float
    epsilon: float
    found: int
    sure: int
    mistaken: int
    right: int
    low: float
    high: float
    bound: float

    @property
    def refutes(self) -> bool:
        return self.low > self.bound


@dataclass(frozen=True, kw_only=True)
class LatticeAudit:
    """What was tried, what came out, and whether it refutes what was printed."""

    algorithm: str
    graph: str
    steps: int
    seen_by: tuple[int, ...]
    numbers: str
    grid: float
    dither: float
    messages: int
    unknowns: int
    exposed: tuple[int, ...]
    guesses: tuple[Guess, ...]
    trials: int
    everybody: int
    whole_release: float
    delta: float
    confidence: float
    seconds: float

    @property
    def refuted(self) -> bool:
        return any(guess.refutes for guess in self.guesses)

    @property
    def hidden(self) -> tuple[int, ...]:
        """The hidden peers that were guessed at."""
        return tuple(guess.of for guess in self.guesses)

    @property
    def found(self) -> int:
        """Values of hidden peers found exactly, over all trials."""
        return sum(guess.found for guess in self.guesses)

    @property
    def worst(self) -> Guess | None:
        """The guess that exceeds what is allowed by most, or comes closest to it."""
        return max(self.guesses, key=lambda guess: guess.low - guess.bound, default=None)

    @property
    def needed(self) -> int:
        """The least number of trials that could refute anything, were every guess right."""
        least = min((guess.bound for guess in self.guesses), default=1.0)
        error = (1 - self.confidence) / (2 * max(1, len(self.guesses)))
        return 2**62 if least >= 1 else math.floor(math.log(error) / math.log(least)) + 1

    @property
    def verdict(self) -> str:
        if not self.guesses:
            return "nothing to attack: nobody who is heard of is hidden"
        if self.refuted:
            return "refutes the printed epsilon"
        few = (
            f"; so few trials could not, {self.needed} are needed"
            if self.trials < self.needed
            else ""
        )
        return f"does not refute the printed epsilon{few}"

    @property
    def defence(self) -> str:
        """What would prevent it, in one sentence."""
        if self.dither:
            return "dithers in every message are the defence: the theorem fp:FP-1 covers what this attack only tries"
        return "values and messages on one fine grid, and a fresh dither in every message (fp:FP-1)"

    @property
    def sentence(self) -> str:
        """One line for an audit."""
        worst = self.worst
        if worst is None:
            return self.verdict
        return (
            f"{self.verdict}: {self.found} of {len(self.guesses) * self.trials} hidden values found"
            f" exactly; of peer {worst.of} {worst.right} of {self.trials} guesses right, at least"
            f" {100 * worst.low:.1f} %, where epsilon {worst.epsilon:.3g} at delta {self.delta:g}"
            f" allows {100 * worst.bound:.1f} %"
        )

    def to_dict(self) -> dict[str, Any]:
        plain = {
            "hidden": self.hidden,
            "found": self.found,
            "refuted": self.refuted,
            "needed": self.needed,
        }
        return {**asdict(self), **plain, "verdict": self.verdict, "defence": self.defence}


def audit_lattice(
    protocol: LatticeTarget,
    seen_by: Sequence[int],
    trying: Trying | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LatticeAudit:
    """Play the game against these observers, and compare with what the library prints for the
    protocol."""
    begin, how = time.perf_counter(), Trying() if trying is None else trying
    n = protocol.graph.n
    observers = checked_observers(n, seen_by)
    arithmetic = protocol.arithmetic
    known = decide(knowledge(protocol.graph, observers, protocol.steps))
    check_size(known.peers.size + known.hidden.size - observers.size, how.most)
    puzzle = Puzzle(
        heard_forms(
            protocol.at, n, protocol.steps, observers, arithmetic, protocol.gamma, how.messages
        ),
        how.dithers,
    )
    reached = np.intersect1d(known.hidden, puzzle.heard.peers)
    hidden = _targets(reached.tolist(), how.of, known.peers.tolist())
    played = _play(protocol, observers.tolist(), puzzle, hidden, how, progress)
    printed = rehearse(protocol.algorithm, protocol.graph, protocol.mechanism, protocol.steps)
    alone = float(printed.epsilon(of=hidden[0], delta=how.delta)) if hidden else math.nan
    sure = 1 - (1 - how.confidence) / max(len(hidden), 1)  # of each peer, so that all hold together
    guesses = [
        _guess(
            u,
            played[:, place],
            printed.guarantee(of=u, seen_by=set(observers.tolist())),
            how.delta,
            sure,
        )
        for place, u in enumerate(hidden)
    ]
    return LatticeAudit(
        algorithm=protocol.algorithm.name(),
        graph=protocol.graph.name,
        steps=protocol.steps,
        seen_by=tuple(observers.tolist()),
        numbers=protocol.numbers,
        grid=arithmetic.grid,
        dither=arithmetic.dither,
        messages=len(puzzle.heard.keys),
        unknowns=puzzle.unknowns,
        exposed=tuple(known.peers.tolist()),
        guesses=tuple(guesses),
        trials=how.trials,
        everybody=int(played[:, :, 1].all(axis=1).sum()) if hidden else 0,
        whole_release=alone,
        delta=how.delta,
        confidence=how.confidence,
        seconds=time.perf_counter() - begin,
    )


def _play(
    protocol: LatticeTarget,
    observers: list[int],
    puzzle: Puzzle,
    hidden: list[int],
    how: Trying,
    progress: Callable[[int, int], None] | None,
) -> Bools:
    """All trials  # (trials, hidden peers, 3): value determined, value found, coin guessed."""
    n, clip = protocol.graph.n, protocol.noise.clip
    scores = [_LinearScore.of_peer(puzzle, u) for u in hidden]
    played = np.zeros((how.trials, len(hidden), 3), dtype=bool)
    for k in range(how.trials if hidden else 0):
        coins = _coins(n, how.seed, k)
        talk = protocol.talk(observers, clip * np.where(coins, 1.0, -1.0), how.seed, k)
        played[k] = _played(puzzle, scores, talk, coins, clip)
        if progress is not None:
            progress(k + 1, how.trials)
    return played


def _guess(of: int, played: Bools, claim: Guarantee, delta: float, confidence: float) -> Guess:
    """How the game went for one peer, over all trials, beside what is claimed for it.

    played: (trials, 3), whether its value was determined, found, and its coin guessed.
    """
    determined, equal, right = played.T
    low, high = rate_interval(int(right.sum()), len(played), confidence)
    return Guess(
        of=of,
        loss=claim.loss,
        epsilon=float(claim.epsilon(delta)),
        found=int(equal.sum()),
        sure=int((determined & equal).sum()),
        mistaken=int((determined & ~equal).sum()),
        right=int(right.sum()),
        low=low,
        high=high,
        bound=(1 + claim.delta(0.0)) / 2,
    )


def _targets(hidden: list[int], of: int | None, exposed: list[int]) -> list[int]:
    if of is None or of in hidden:
        return hidden if of is None else [of]
    if of in exposed:
        raise ConfigError(
            f"peer {of} is not hidden from these observers: what they heard exposes its value by "
            "algebra, and its loss says so; ask bruit attack reconstruct"
        )
    raise ConfigError(
        f"nothing of peer {of} reaches these observers; hidden from them are"
        f" {', '.join(map(str, hidden)) or 'none'}"
    )


def _coins(n: int, seed: int, trial: int) -> Bools:
    drawn = Replay(seed).words("lattice coins", np.arange(n), trial, 0, 1)[:, 0]
    return np.asarray(drawn >> np.uint64(63) == 1)


class _LinearScore(NamedTuple):
    """The best guess at a peer's coin when numbers are real: <w, y - (mean without it)>."""

    of: int
    place: int
    weights: Array  # (messages,)
    forms: Array  # (messages, peers)

    @classmethod
    def of_peer(cls, puzzle: Puzzle, of: int) -> _LinearScore:
        heard, size = puzzle.heard, len(puzzle.heard.keys)
        forms = np.array([[float(x) for x in row] for row in heard.of_values]).reshape(size, -1)
        dithers = np.array([[float(x) for x in row] for row in heard.of_dithers]).reshape(size, -1)
        noise = np.concatenate(
            [heard.arithmetic.sigma * forms, heard.arithmetic.dither * dithers], axis=1
        )
        place = heard.peers.tolist().index(of)
        return cls(of, place, likelihood_weights(noise, forms[:, place]).w, forms)

    def __call__(self, totals: Array, means: Array) -> bool:
        others = means.copy()
        others[self.place] = 0.0
        return bool(self.weights @ (totals - self.forms @ others) > 0)


def _played(
    puzzle: Puzzle, scores: list[_LinearScore], talk: Talk, coins: Bools, clip: float
) -> Bools:
    """For each hidden peer: was its value determined, is it right, was its coin guessed  # (peers,
    3)."""
    solved = puzzle.solve(talk.said)
    totals = np.array([float(x) for x in puzzle.heard.right(talk.said)])
    means = clip * np.where(coins[puzzle.heard.peers], 1.0, -1.0)
    found = np.zeros((len(scores), 3), dtype=bool)
    for row, score in zip(found, scores, strict=True):
        value = solved.values[score.place]
        guess = value > 0 if solved.determined[score.place] else score(totals, means)
        row[:] = (
            solved.determined[score.place],
            value == talk.values[score.of],
            guess == coins[score.of],
        )
    return found


class Check(NamedTuple):
    """One line of an audit."""

    name: str
    refuted: bool
    sentence: str


def lattice_check(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    mechanism: Mechanism | None,
    steps: int,
    seen_by: Sequence[int],
    trying: Trying | None = None,
) -> Check:
    """The attack as a part of an audit: on what the package sends, views of up to 40 values unless
    told otherwise.

    Where it cannot be tried, the sentence says why.
    """
    how = Trying(most=40) if trying is None else trying
    try:
        found = audit_lattice(
            LatticeTarget(algorithm=algorithm, graph=graph, mechanism=mechanism, steps=steps),
            seen_by,
            how,
        )
    except ConfigError as error:
        return Check(NAME, False, f"not tried: {error}")
    return Check(NAME, found.refuted, found.sentence)
