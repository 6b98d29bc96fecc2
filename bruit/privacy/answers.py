"""What theorems answer about one protocol, which answer costs each peer least, and the statement made of
several."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from bruit.arrays import Ints
from bruit.privacy.charge import Charge, charged_locally, rescaled
from bruit.privacy.events import Event
from bruit.privacy.guarantee import REAL, Guarantee, Hypothesis, Status, weakest
from bruit.privacy.theorem import Facts, Theorem

Progress = Callable[[int, int], None]
Watching = tuple[int, ...] | Literal["each"] | None
"""Whose view: some peers together, each peer by itself (all pairs at once), or everybody (None)."""

LOCAL, LOCAL_SPEC = "local DP: composition of the ledger's lines", "gossip:DP-8"


def door_hypothesis(facts: Facts) -> Hypothesis:
    """Whether data left through the door only: checked while the run went on, or assumed, and
    why."""
    text = "every release went through the door and its ledger line"
    return Hypothesis(
        f"{text} ({facts.unwatched})" if facts.unwatched else text, checked=not facts.unwatched
    )


@dataclass(frozen=True, eq=False)
class TheoremAnswer:
    """What one theorem, or local DP (None), says about some views of one protocol."""

    facts: Facts
    charge: Charge
    theorem: Theorem | None
    hypotheses: tuple[Hypothesis, ...]
    why: tuple[str, ...] = ()  # no theorem speaks

    @property
    def title(self) -> str:
        return LOCAL if self.theorem is None else self.theorem.title

    @property
    def spec(self) -> str:
        return LOCAL_SPEC if self.theorem is None else self.theorem.spec

    @property
    def status(self) -> Status:
        own_status: Status = "proven" if self.theorem is None else self.theorem.status
        return "ideal" if own_status == "proven" and self.facts.ideal else own_status

    def notes(self, observers: tuple[int, ...] | None) -> tuple[str, ...]:
        remarks = (
            ()
            if self.theorem is None or observers is None
            else self.theorem.notes(self.facts, observers)
        )
        return (*self.why, *remarks)

    def seen(self, observers: tuple[int, ...] | None) -> str:
        if self.theorem is None or observers is None:
            return f"all {int(self.facts.releases().sum())} releases of all peers, as if they were published"
        return self.theorem.seen(self.facts, observers)

    def advice(self, observers: tuple[int, ...] | None) -> tuple[str, ...]:
        if self.theorem is None or observers is None:
            return ("release less often",)
        return self.theorem.advice(self.facts, observers)

    def group(self, members: tuple[int, ...], observers: tuple[int, ...] | None) -> Charge:
        """One row for all members at once: the least of what the theorem knows of groups, of what
        the members' own charges add up to, and of all their releases (independent, so that squared
        mu add up)."""
        local = charged_locally(self.facts).of(members)
        counts = None if local.counts is None else local.counts.sum(axis=0, keepdims=True)
        amount = float(local.rounded().sum())
        released = replace(
            local, loss=local.loss.sum(keepdims=True), counts=counts, rounding=amount
        )
        if (
            counts is not None
            or self.theorem is None
            or observers is None
            or self.charge.counts is not None
        ):
            return released
        known = self.theorem.joint(self.facts, members, observers)
        certain = self.theorem.status == "proven"
        losses = [self.charge.group(members).loss[0], released.loss[0] if certain else math.inf]
        if known is not None:
            losses.append(
                float(rescaled(np.array(known), self.theorem.unit(self.facts), local.unit))
            )
        return replace(
            released,
            loss=np.array([min(losses)]),
            rounding=max(amount, float(self.charge.rounded().max())),
        )


@dataclass(frozen=True, eq=False)
class ProtocolAnswers:
    """The answers about one protocol, and the least of them, entry by entry."""

    answers: tuple[TheoremAnswer, ...]
    charge: Charge
    which: (
        Ints | None
    )  # as the charge's loss: the answer each entry came from; None: all from the first

    def by(self, entry: tuple[int, ...]) -> TheoremAnswer:
        return self.answers[0 if self.which is None else int(self.which[entry])]


def local_answer(facts: Facts, watching: Watching, why: tuple[str, ...] = ()) -> TheoremAnswer:
    """Local DP, which holds of every view; `why` no theorem says more."""
    charge = charged_locally(facts)
    if watching == "each":
        pairs = np.repeat(charge.loss[:, None], facts.n, axis=1)
        np.fill_diagonal(pairs, np.nan)
        charge = replace(charge, loss=pairs)
    real = (REAL,) if facts.ideal else ()
    return TheoremAnswer(
        facts,
        charge,
        None,
        (door_hypothesis(facts), *facts.declared, *real),
        why,
    )


def theorem_charge(
    facts: Facts,
    theorem: Theorem,
    watching: tuple[int, ...] | Literal["each"],
    delta: float,
    progress: Progress | None,
) -> Charge:
    """What the theorem says the view costs, using up at most delta for events. A proven loss of
    a peer is never above that of all its releases, seen by everybody (gossip:DP-8)."""
    local = charged_locally(facts)
    if watching == "each":
        counted = theorem.events(facts, (0,), delta) if theorem.alike else None
        if counted is not None:
            pairs = np.zeros((facts.n, facts.n))
            np.fill_diagonal(pairs, np.nan)
            return Charge(pairs, local.unit, *counted)
        losses = theorem.matrix(facts, progress)
    else:
        counted = theorem.events(facts, watching, delta)
        if counted is not None:
            return Charge(np.zeros(facts.n), local.unit, *counted)
        losses = theorem.losses(facts, watching)
    losses = rescaled(losses, theorem.unit(facts), local.unit)
    if theorem.status == "proven" and local.counts is None:
        losses = np.minimum(
            losses, local.loss if losses.ndim == 1 else local.loss[:, None], out=losses
        )
    charge = replace(local, loss=losses, events=(), counts=None, rounding=0.0)
    if theorem.status != "proven" or facts.ideal:
        return charge
    charge = replace(charge, rounding=theorem.rounding(facts))
    if local.counts is not None:
        return charge
    known = np.broadcast_to(local.loss if losses.ndim == 1 else local.loss[:, None], losses.shape)
    least = replace(charge, loss=known, rounding=local.rounding).rounded()
    return replace(charge, rounding=np.where(losses >= known, least, charge.rounded()))


def least_costly(
    answers: tuple[TheoremAnswer, ...], delta: float, asked: Sequence[int] | None = None
) -> ProtocolAnswers:
    """For every peer the answer that costs it least; the first one among equals.

    Where noise is not Gaussian epsilons are compared, of those peers only that are asked about:
    they cost time."""
    best = answers[0].charge
    if len(answers) == 1:
        return ProtocolAnswers(answers, best, None)
    rounding = np.max([answer.charge.rounded() for answer in answers], axis=0)
    which: Ints = np.zeros(best.loss.shape, np.int64)
    if all(answer.charge.counts is None for answer in answers):
        loss = best.loss
        for k, answer in enumerate(answers[1:], 1):
            lower = answer.charge.loss < loss
            loss, which = np.where(lower, answer.charge.loss, loss), np.where(lower, k, which)
        return ProtocolAnswers(answers, replace(best, loss=loss, rounding=rounding), which)
    chosen = list(range(len(best.loss)) if asked is None else asked)
    which[chosen] = np.argmin(
        [answer.charge.of(chosen).epsilons(delta) for answer in answers], axis=0
    )
    rows, events, counts = np.zeros_like(best.loss), list[Event](), []
    for k, answer in enumerate(answers):
        rows[which == k] = answer.charge.loss[which == k]
        if answer.charge.counts is not None:
            events += answer.charge.events
            counts.append(np.where((which == k)[:, None], answer.charge.counts, 0))
    return ProtocolAnswers(
        answers,
        Charge(rows, best.unit, tuple(events), np.concatenate(counts, axis=1), rounding),
        which,
    )


def charge_of_all(phases: Sequence[ProtocolAnswers]) -> Charge:
    """All protocols together."""
    charge = phases[0].charge
    for phase in phases[1:]:
        charge = charge.plus(phase.charge)
    return charge


def observers_in_words(observers: tuple[int, ...] | None) -> str:
    if observers is None:
        return "everybody"
    return (
        f"peer {observers[0]}"
        if len(observers) == 1
        else f"peers {', '.join(map(str, observers))} together"
    )


def composed_title(answers: Sequence[TheoremAnswer]) -> tuple[str, str]:
    """The theorem that is cited and its code: that of the one protocol, or composition of several
    (gossip:DP-5)."""
    if len(answers) == 1:
        return answers[0].title, answers[0].spec
    titles = "; then ".join(f"{answer.title} ({answer.spec})" for answer in answers)
    return f"composition of {titles}", "gossip:DP-5"


def statement(
    facts: Facts,
    answers: Sequence[TheoremAnswer],
    charge: Charge,
    observers: tuple[int, ...] | None,
    of: str,
    more: tuple[str, ...] = (),
) -> Guarantee:
    """The statement about the one row of the charge, by these answers, one for each
    protocol."""
    theorem, spec = composed_title(answers)
    plain = charge.counts is None and 0 < charge.unit < math.inf
    return Guarantee(
        theorem=theorem,
        spec=spec,
        status=weakest(answer.status for answer in answers),
        level=facts.level,
        of=of,
        against=observers_in_words(observers),
        hypotheses=tuple(dict.fromkeys(h for answer in answers for h in answer.hypotheses)),
        profile=charge.profile(0),
        loss=float(charge.in_local_units()[0]),
        noise_multiplier=charge.unit if plain else 0.0,
        notes=(*(note for answer in answers for note in answer.notes(observers)), *more),
        seen="; then ".join(answer.seen(observers) for answer in answers),
        advice=tuple(
            dict.fromkeys(text for answer in answers for text in answer.advice(observers))
        ),
        noise=facts.noise,
        adjacency=facts.adjacency,
    )
