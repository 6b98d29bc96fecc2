"""A plan for silos: what each protocol would give and cost, side by side and in words (silo:SILO-7)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bruit.algorithms.behind_door.masked_shares import FINEST_MASKED
from bruit.arrays import Array
from bruit.how_many import how_many
from bruit.planning.silos.question import SilosQuestion
from bruit.planning.silos.trial import Tried
from bruit.privacy.as_a_whole import as_a_whole
from bruit.privacy.events import record_event
from bruit.privacy.toolbox.pld import compose_epsilon

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, kw_only=True)
class SiloOption:
    """One protocol with its own best settings.

    noise: deviation of what is added to the sum of all records, on a coordinate. attempts: releases
    that are charged, spare ones among them. accuracies: expected accuracy on every made-up problem
    (problems,), of `alone` the mean over silos; own: of `alone`, for each silo (problems, n). Noise
    and batch of `alone` are those of the silo in the middle.
    """

    protocol: str
    noise_multiplier: float
    clip: float
    rate: float
    steps: int
    attempts: int
    sample_rate: float
    batch: float
    noise: float
    trust: str
    accuracies: Array
    own: Array | None = None

    @property
    def error(self) -> float:
        """Deviation of the mean gradient on a coordinate, from noise alone."""
        return self.noise / self.batch

    @property
    def accuracy(self) -> float:
        return float(self.accuracies.mean())

    def to_dict(self, dim: int) -> dict[str, Any]:
        """Plain data."""
        return {
            "protocol": self.protocol,
            "noise_multiplier": self.noise_multiplier,
            "clip": self.clip,
            "sigma": self.noise_multiplier * self.clip,
            "noise_of_the_sum": self.noise,
            "steps": self.steps,
            "attempts": self.attempts,
            "sample_rate": self.sample_rate,
            "rate": self.rate,
            "batch": self.batch,
            "error_per_coordinate": self.error,
            "error": self.error * math.sqrt(dim),
            "error_in_clips": self.error / self.clip,
            "accuracy": self.accuracy,
            "deviation": float(self.accuracies.std(ddof=1)),
            "trust": self.trust,
        } | ({} if self.own is None else {"accuracy_by_silo": self.own.mean(axis=0).tolist()})


@dataclass(frozen=True, kw_only=True)
class SilosPlan:
    """All protocols from best to worst, what is known without data or without noise, and what it
    means. noiseless: the best settings without noise; alone: those of every silo by itself."""

    question: SilosQuestion
    options: tuple[SiloOption, ...]
    blind: float
    without_noise: float
    best: float
    noiseless: Tried
    alone: tuple[Tried, ...]

    def option(self, protocol: str) -> SiloOption:
        return next(one for one in self.options if one.protocol == protocol)

    def epsilons(self) -> dict[str, float]:
        """Of one record in the masked run: promised against a coalition; what outsiders see; if all
        masks were opened one day; and what is left for everything a silo holds (silo:SILO-6)."""
        asked, masked = self.question, self.option("masked")
        n, a = asked.silos, asked.colluders

        def cost(z: float) -> float:
            event = record_event(z, masked.sample_rate, asked.adjacency, rounding_of(asked))
            return compose_epsilon([(event, masked.attempts)], asked.delta)

        z = masked.noise_multiplier
        event = record_event(z, masked.sample_rate, asked.adjacency)
        return {
            "coalition": asked.epsilon,
            "outsiders": min(asked.epsilon, cost(z * math.sqrt(n / (n - a)))),
            "masks_opened": cost(z / math.sqrt(n - a)),
            "silo_as_a_whole": as_a_whole(
                [(event, masked.attempts)], max(asked.records), asked.delta
            ),
        }

    def gains(self) -> tuple[Array, Array]:
        """How much more accurate the masked model is than each silo's own private one, on the same
        problems: mean and standard error  # (n,), (n,)."""
        own = self.option("alone").own
        assert own is not None
        paired = self.option("masked").accuracies[:, None] - own
        return paired.mean(axis=0), paired.std(axis=0, ddof=1) / math.sqrt(len(paired))

    def sentences(self) -> tuple[str, ...]:
        """The plan in words, honest ones."""
        masked, asked = self.option("masked"), self.question
        curator, local = self.option("curator"), self.option("local")
        gains, errors = self.gains()
        loses = [u for u in range(asked.silos) if gains[u] < -2 * errors[u]]
        said = [self._worth(gains, errors)]
        if loses:
            said.append(f"silos {_named(loses)} do better alone")
        said.append(
            f"noise made together is worth {100 * (masked.accuracy - local.accuracy):.1f} points over "
            f"local noise, and a trusted curator would be worth "
            f"{100 * (curator.accuracy - masked.accuracy):.1f} more; without noise "
            f"{self.without_noise:.3f}, the best possible {self.best:.3f}"
        )
        said.append(
            "this supposes that all silos' records are alike; where they differ, one's own model "
            "without privacy, which never leaves the house, may be better for one's own records: "
            "compare, it is free"
        )
        if asked.adjacency == "add-remove":
            said.append(
                "a record may come or go, so numbers of records are private: those given here must "
                "be declared beforehand, not counted"
            )
        return (*said, *self._when_silos_leave())

    def _worth(self, gains: Array, errors: Array) -> str:
        """Whether it pays to join, and for whom."""
        masked, silos = self.option("masked"), self.question.silos
        pays = [u for u in range(silos) if gains[u] > 2 * errors[u]]
        if masked.accuracy < self.blind + 0.02:
            return (
                f"hardly of use: {masked.accuracy:.3f} on made-up problems, where the larger class "
                f"has {self.blind:.3f} without any data; more records, fewer columns or a larger "
                f"epsilon would help, or columns that all tell the same"
            )
        if len(pays) == silos:
            return (
                f"joining pays for every silo: {100 * gains.min():.1f} to {100 * gains.max():.1f} "
                f"points over its own private model"
            )
        if pays:
            return (
                f"joining pays for silos {_named(pays)} (up to {100 * gains.max():.1f} points over "
                f"their own private models), not clearly for the others"
            )
        return "not worth it: no silo is clearly better off than with its own private model"

    def _when_silos_leave(self) -> list[str]:
        """What dropouts cost: spare attempts, a larger error, perhaps no agreement on the model."""
        masked, asked = self.option("masked"), self.question
        n, a, gone = asked.silos, asked.colluders, asked.dropouts
        if not gone:
            return []
        left = sorted(asked.records)[: n - gone]
        most = masked.noise_multiplier * masked.clip * math.sqrt((n - gone) / (n - gone - a))
        error = most / masked.clip / (masked.sample_rate * sum(left))
        spares = masked.attempts - masked.steps
        said = [
            f"{how_many(spares, 'spare attempt')} for peers that fall silent "
            f"{'is' if spares == 1 else 'are'} charged; with {gone} gone for good (the largest) the "
            f"mean gradient errs by {error:.3g} clips on a coordinate instead of {masked.error / masked.clip:.3g}"
        ]
        if not 2 * (n - gone) > n + a:
            said.append(
                f"with {gone} of {n} gone, {how_many(a, 'liar')} could make the others disagree on "
                f"the model (never on privacy): 2 (n - D) > n + a fails"
            )
        return said

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `bruit plan --json` prints it."""
        asked = self.question
        gains, errors = self.gains()
        return {
            "level": "record",
            "adjacency": asked.adjacency,
            "epsilon": asked.epsilon,
            "delta": asked.delta,
            "silos": asked.silos,
            "records": list(asked.records),
            "dim": asked.dim,
            "colluders": asked.colluders,
            "dropouts": asked.dropouts,
            "options": [one.to_dict(asked.dim) for one in self.options],
            "without_data": self.blind,
            "without_noise": self.without_noise,
            "best_possible": self.best,
            "epsilons_of_masked": self.epsilons(),
            "gain_by_silo": gains.tolist(),
            "gain_error_by_silo": errors.tolist(),
            "sentences": list(self.sentences()),
            "spec": "silo:SILO-7",
        }


def _named(silos: list[int]) -> str:
    return ", ".join(map(str, silos))


def rounding_of(question: SilosQuestion) -> float:
    """R of one release (fp:FP-0) with the grain of a masked run, or less: dim (grain / sigma)^2 / 4."""
    return question.dim * FINEST_MASKED**2 / 4
