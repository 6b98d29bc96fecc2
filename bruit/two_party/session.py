"""Two holders, one answer: the whole protocol over a line, from rows to an estimate (perso:LDP-10, LDP-11)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from bruit.local_dp.estimates import Estimate
from bruit.privacy.spent_file import unrecorded
from bruit.two_party.channel import Channel, run
from bruit.two_party.holder import Holder, Role, Spend
from bruit.two_party.machine import converse
from bruit.two_party.question import Question, Rows


@dataclass(frozen=True)
class Answer:
    """raw may leave the range of the statistic; value, low and high are cut to it. exact_epsilon: what a row paid."""

    value: float
    raw: float
    error: float
    low: float
    high: float
    confidence: float
    exact_epsilon: float
    pairs: int
    crossing: int
    sent_bytes: int
    received_bytes: int
    seconds: float


def ask(
    role: Role, question: Question, rows: Rows, channel: Channel, confidence: float = 0.95, *, spend: Spend,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Answer:
    """One side of the conversation; both sides get the same answer. spend: called with the question before anything
    about the rows leaves, as `Spending(...).spend`. tell: batches done, and all of them."""
    holder = Holder(role, question, rows, spend)
    begin = time.monotonic()
    run(holder, channel, lambda: tell(*holder.progress))
    return answer_of(holder, confidence, (channel.sent_bytes, channel.received_bytes), time.monotonic() - begin)


def rehearse(question: Question, first: Rows, second: Rows, confidence: float = 0.95) -> Answer:
    """Both sides in this process: the real protocol with all its cryptography, without a line. Whoever runs it has all
    rows already: nothing is written down."""
    garbler, evaluator = (Holder("garbler", question, first, unrecorded),
                          Holder("evaluator", question, second, unrecorded))  # fmt: skip
    begin = time.monotonic()
    said = converse(garbler, evaluator)
    return answer_of(garbler, confidence, (said, said), time.monotonic() - begin)


def answer_of(holder: Holder, confidence: float, traffic: tuple[int, int], seconds: float) -> Answer:
    """What a finished conversation says."""
    question = holder.question
    found: Estimate = question.estimate(holder.bits, confidence)
    least, most = question.bit.comparison.values
    value = min(max(found.value, least), most)
    return Answer(value, found.value, found.error, found.low, found.high, confidence, question.exact_epsilon,
                  holder.bits.size, holder.crossing, *traffic, seconds)
