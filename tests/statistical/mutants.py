"""Planted bugs: mechanisms, algorithms, ledgers and claims that are each wrong in one way."""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.gossip.averaging import Averaging
from bruit.algorithms.gossip.averaging import State as Value
from bruit.algorithms.gossip.gopa import Gopa
from bruit.algorithms.gossip.gopa import State as Masked
from bruit.algorithms.gossip.gossip_sgd import GossipSGD
from bruit.algorithms.gossip.renoised import Renoised, taper_of
from bruit.algorithms.gossip.renoised import State as Spoken
from bruit.algorithms.messages import Message
from bruit.algorithms.tokens.walk_sgd import State as Token
from bruit.algorithms.tokens.walk_sgd import WalkSGD
from bruit.mechanisms import DiscreteGaussian, Gaussian, Laplace, clip_rows
from bruit.mechanisms.mechanism import snap
from bruit.privacy.ledger import Budget, Ledger
from bruit.privacy.theorems.gossip import ExactGossip
from bruit.privacy.theorems.renoised import RenoisedGossip
from bruit.privacy.theorems.walk import RealizedWalk

# Mechanisms


class Mutant(Gaussian):
    """What is wrong with a release is as wrong on the grid of a protocol."""

    def release_on(self, grid, times, values, dice, lanes, steps, use, run=0):
        return snap(times * self.release(values, dice, lanes, steps, use, run), grid)


class HalfNoise(Mutant):
    def noise(self, dice, lanes, steps, use, d, run=0):
        return 0.5 * super().noise(dice, lanes, steps, use, d, run)


class VarianceAsDeviation(Mutant):
    """Draws with sigma**2 where sigma was meant: too little when sigma < 1."""

    def noise(self, dice, lanes, steps, use, d, run=0):
        return self.sigma * super().noise(dice, lanes, steps, use, d, run)


class ClipAfterNoise(Mutant):
    def release(self, values, dice, lanes, steps, use, run=0):
        return clip_rows(
            values + self.noise(dice, lanes, steps, use, values.shape[1], run), self.clip
        )


class NoClip(Mutant):
    def release(self, values, dice, lanes, steps, use, run=0):
        return snap(values, self.spacing) + self.noise(
            dice, lanes, steps, use, values.shape[1], run
        )


class ClipEachCoordinate(Mutant):
    def release(self, values, dice, lanes, steps, use, run=0):
        rows = snap(np.clip(values, -self.clip, self.clip), self.spacing)
        return rows + self.noise(dice, lanes, steps, use, values.shape[1], run)


class LaplaceClippedInL2(Laplace):
    norm: ClassVar[int] = 2


class ThirdOfIntegers(DiscreteGaussian):
    def noise(self, dice, lanes, steps, use, d, run=0):
        return np.rint(super().noise(dice, lanes, steps, use, d, run) / (3 * self.grid)) * self.grid


class NoiseOnFirstHalf(Mutant):
    def noise(self, dice, lanes, steps, use, d, run=0):
        drawn = super().noise(dice, lanes, steps, use, d, run)
        drawn[:, (d + 1) // 2 :] = 0.0
        return drawn


class OneDrawForAllCoordinates(Mutant):
    def noise(self, dice, lanes, steps, use, d, run=0):
        return np.repeat(super().noise(dice, lanes, steps, use, 1, run), d, axis=1)


class RoundsOutward(DiscreteGaussian):
    """Rounds a clipped row away from zero, out of its ball."""

    def release(self, values, dice, lanes, steps, use, run=0):
        rows = clip_rows(values, self.clip)
        rows = np.sign(rows) * np.ceil(np.abs(rows) / self.spacing) * self.spacing
        return rows + self.noise(dice, lanes, steps, use, values.shape[1], run)


class LatticeBeforeClip(Mutant):
    """Rounds first and clips then: what is sent lies off the lattice, by how much depends on the
    data."""

    def release(self, values, dice, lanes, steps, use, run=0):
        rows = clip_rows(snap(values, self.spacing), self.clip)
        return rows + self.noise(dice, lanes, steps, use, values.shape[1], run)


class SensitivityIsClip(Mutant):
    """Replacing a row moves it by 2 clip, not by clip."""

    @property
    def sensitivity(self):
        return self.clip


class BoundedNoise(Mutant):
    def noise(self, dice, lanes, steps, use, d, run=0):
        return np.clip(super().noise(dice, lanes, steps, use, d, run), -self.sigma, self.sigma)


class SameForAllSteps(Mutant):
    def noise(self, dice, lanes, steps, use, d, run=0):
        return super().noise(dice, lanes, 0, use, d, run)


class SameForAllPhases(Mutant):
    def noise(self, dice, lanes, steps, use, d, run=0):
        return super().noise(dice, lanes, steps, use, d, 0)


class SameForAllUses(Mutant):
    def noise(self, dice, lanes, steps, use, d, run=0):
        return super().noise(dice, lanes, steps, 0, d, run)


@dataclass(frozen=True)
class SameForAllPeers(Mutant):
    """One seed for all peers of a run."""

    peers: int = 3

    def noise(self, dice, lanes, steps, use, d, run=0):
        return super().noise(dice, lanes - lanes % self.peers, steps, use, d, run)


# Algorithms


@dataclass(frozen=True)
class ReadsTwice(Averaging):
    """Not a bug by itself: two reads in one step, each with its own ledger line."""

    def start(self, home):
        value = (home.value() + home.value()) / 2
        return Value(value, value)

    def guarantees(self):
        return (ExactGossip(about=("reads-twice",)),)


@dataclass(frozen=True)
class RawMessages(Averaging):
    """Sends what should have stayed at home: no noise, no ledger line."""

    def start(self, home):
        value = home.keep(lambda task, ids: task.value(ids))
        return Value(value, value)


@dataclass(frozen=True)
class RawFirstMessage(Averaging):
    """The first message is raw, later ones carry noise."""

    def start(self, home):
        value = home.keep(lambda task, ids: task.value(ids))
        return Value(value, value)

    def absorb(self, state, inbox, home):
        value = home.mask(inbox.mix(), home.sigma)
        return Value(value, value)


class Denoised(NamedTuple):
    value: np.ndarray
    noise: np.ndarray


@dataclass(frozen=True)
class TakesNoiseBack(Algorithm):
    """Subtracts its own noise after the first round, for accuracy."""

    linear: ClassVar[bool] = False

    def start(self, home):
        value = home.value()
        return Denoised(value, value - home.keep(lambda task, ids: task.value(ids)))

    def emit(self, state, edges):
        return edges.broadcast(state.value)

    def absorb(self, state, inbox, home):
        return Denoised(inbox.mix() - state.noise, np.zeros_like(state.noise))

    def estimate(self, state):
        return state.value

    def guarantees(self):
        return Averaging().guarantees()


@dataclass(frozen=True)
class SharedCopyNoise(Renoised):
    """One noise for all copies of a message: gossip:MUF-X1 does not cover it."""

    def _speak(self, value, home):
        taper = home.public.taper
        level = np.where(home.last, 0.0, home.sigma * taper[np.minimum(home.step, len(taper) - 1)])
        return Spoken(value, home.edges.expand(home.mask(value, level, where=~home.last)))


@dataclass(frozen=True)
class TaperToZero(Renoised):
    def prepare(self, graph, horizon):
        public = super().prepare(graph, horizon)
        return public._replace(taper=np.where(np.arange(horizon) < horizon // 2, public.taper, 0.0))

    def guarantees(self):
        return (RenoisedGossip(taper_of, about=("taper-to-zero",)),)


@dataclass(frozen=True)
class SilentWithoutNoise(WalkSGD):
    share: float = 0.0

    def absorb(self, state, inbox, home):
        token = inbox.only()
        may = state.spent < self.cap
        update = home.gradient(token, where=may)
        if self.share > 0:
            update = home.mask(update, self.share * home.sigma, where=~may)
        return Token(
            token - self.rate * update, state.spent + may, np.where(may, home.clock, state.latest)
        )

    def guarantees(self):
        return (RealizedWalk(rate=self.rate, about=("silent-without-noise",)),)


class Secret(NamedTuple):
    value: np.ndarray
    raw: np.ndarray


@dataclass(frozen=True)
class SendsPrivateField(Averaging):
    private: ClassVar[tuple[str, ...]] = ("raw",)

    def start(self, home):
        return Secret(home.value(), home.keep(lambda task, ids: task.value(ids)))

    def emit(self, state, edges):
        return edges.broadcast(state.value + 0.01 * state.raw)

    def absorb(self, state, inbox, home):
        return Secret(inbox.mix(), state.raw)


@dataclass(frozen=True)
class PeeksAtOthers(Averaging):
    def absorb(self, state, inbox, home):
        mixed = inbox.mix()
        value = 0.9 * mixed + 0.1 * mixed.mean(axis=0)
        return Value(value, value)


@dataclass(frozen=True)
class ClaimsToBeLinear(Averaging):
    def absorb(self, state, inbox, home):
        value = np.abs(inbox.mix())
        return Value(value, value)


@dataclass(frozen=True)
class SpeaksDifferentlyEachTime(Averaging):
    count: ClassVar[list[int]] = [0]

    def emit(self, state, edges):
        self.count[0] += 1
        return Message(state.value + 1e-3 * self.count[0], each=False)


# A second release behind the door: raw answers that were kept go out with the noisy ones


@dataclass(frozen=True)
class LeakyAveraging(Averaging):
    name = Averaging.name  # a bug in the algorithm itself

    def start(self, home):
        value = super().start(home).message + home.keep(lambda task, ids: task.value(ids))
        return Value(value, value)


@dataclass(frozen=True)
class LeakyGopa(Gopa):
    name = Gopa.name  # a bug in the algorithm itself

    def start(self, home):
        return Masked(super().start(home).value + home.keep(lambda task, ids: task.value(ids)))


@dataclass(frozen=True)
class LeakyGossipSGD(GossipSGD):
    name = GossipSGD.name  # a bug in the algorithm itself

    def _step(self, mixed, previous, home, arithmetic):
        state = super()._step(mixed, previous, home, arithmetic)
        raw = home.keep(lambda task, ids: task.gradient(ids, mixed.value))
        return state._replace(
            message=state.message - self.rate * np.where(home.last[:, None], 0.0, raw)
        )


@dataclass(frozen=True)
class LeakyWalkSGD(WalkSGD):
    name = WalkSGD.name  # a bug in the algorithm itself

    def absorb(self, state, inbox, home):
        token, after = inbox.only(), super().absorb(state, inbox, home)
        return after._replace(
            token=after.token - self.rate * home.keep(lambda task, ids: task.gradient(ids, token))
        )


LEAKY = {
    "averaging": LeakyAveraging,
    "gopa": LeakyGopa,
    "gossip-sgd": LeakyGossipSGD,
    "walk-sgd": LeakyWalkSGD,
}

# Ledgers and budgets


class ForgetsPeerZero(Ledger):
    def record(self, peer, step, clock, event):
        kept = peer != 0
        super().record(peer[kept], step[kept], clock[kept], event)


def forgetful(record):
    """`Ledger.record` without the lines of peer 1, and of peer 3."""

    def forgets(ledger, peer, step, clock, event):
        kept = ~np.isin(peer % ledger.peers, (1, 3))
        return record(ledger, peer[kept], step[kept], clock[kept], event)

    return forgets


class Lenient(Budget):
    def allows(self, ledger, peer, event):
        return True


def merged(run):
    """The run with one line per peer and kind of event, however often it released."""
    ledger = Ledger(peers=run.n)
    for kind, event in enumerate(run.ledger.events):
        peers = np.flatnonzero(run.ledger.counts()[:, kind])
        ledger.record(peers, np.zeros_like(peers), np.zeros_like(peers), event)
    return replace(run, ledger=ledger)
