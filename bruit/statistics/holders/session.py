"""Two holders, one answer: the whole protocol over a line, from rows to an estimate (perso:LDP-10,
LDP-11)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from bruit.accounts.account import unrecorded
from bruit.statistics.holders.channel import Channel, run
from bruit.statistics.holders.holder import MOST_CLAIMED, Holder, Role, Spend
from bruit.statistics.holders.machine import converse
from bruit.statistics.holders.question import MOST_ROWS, HolderRows, TablesQuestion
from bruit.statistics.local.estimates import Estimate


@dataclass(frozen=True, kw_only=True)
class Answer:
    """raw may leave the range of the statistic; value, low and high are cut to it. exact_epsilon:
    what a row paid."""

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
    role: Role,
    question: TablesQuestion,
    rows: HolderRows,
    channel: Channel,
    confidence: float = 0.95,
    *,
    spend: Spend,
    tell: Callable[[int, int], None] = lambda done, total: None,
    most_rows: int = MOST_CLAIMED,
) -> Answer:
    """One side of the conversation; both sides get the same answer. spend: called with the question
    before anything about the rows leaves, as `Spending(...).spend`. tell: batches done, and all of
    them. most_rows: rows times rounds that the other holder may claim to hold."""
    holder = Holder(role, question, rows, spend, most_rows=most_rows)
    begin = time.monotonic()
    run(holder, channel, lambda: tell(*holder.progress))
    return answer_of(
        holder, confidence, (channel.sent_bytes, channel.received_bytes), time.monotonic() - begin
    )


def rehearse(
    question: TablesQuestion, first: HolderRows, second: HolderRows, confidence: float = 0.95
) -> Answer:
    """Both sides in this process: the real protocol with all its cryptography, without a line.
    Whoever runs it has all rows already: nothing is written down."""
    garbler, evaluator = (
        Holder("garbler", question, first, unrecorded, most_rows=MOST_ROWS),
        Holder("evaluator", question, second, unrecorded, most_rows=MOST_ROWS),
    )
    begin = time.monotonic()
    sent = converse(garbler, evaluator)
    return answer_of(garbler, confidence, (sent, sent), time.monotonic() - begin)


def answer_of(
    holder: Holder, confidence: float, traffic: tuple[int, int], seconds: float
) -> Answer:
    """What a finished conversation says."""
    question = holder.question
    found: Estimate = question.estimate(holder.bits, confidence)
    least, most = question.bit.values
    value = min(max(found.value, least), most)
    sent, received = traffic
    return Answer(
        value=value,
        raw=found.value,
        error=found.error,
        low=found.low,
        high=found.high,
        confidence=confidence,
        exact_epsilon=question.exact_epsilon,
        pairs=holder.bits.size,
        crossing=holder.crossing,
        sent_bytes=sent,
        received_bytes=received,
        seconds=seconds,
    )
