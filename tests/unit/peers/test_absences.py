"""Absences are counted exactly, and kept in memory that does not grow with the length of a run."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bruit.algorithms.schedules.machine import Missed, Skipped
from bruit.errors import LocalProtocolError
from bruit.peers import recalling
from bruit.peers.absences import Absences
from bruit.peers.journal.receipts import Receipts
from bruit.peers.journal.snapshots import freeze, thaw
from bruit.peers.spans import KEPT, Spans


def numbers(spans: Spans) -> set[int]:
    return {number for first, last in spans.named for number in range(first, last + 1)}


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=80))
def test_spans_hold_what_a_set_holds(steps: list[tuple[bool, int]]) -> None:
    spans, known = Spans(), set[int]()
    for adds, number in steps:
        if adds:
            spans.add(number)
            known.add(number)
        else:
            assert spans.remove(number) == (number in known)
            known.discard(number)
    assert numbers(spans) == known
    assert len(spans) == len(known)
    ends = [end for span in spans.named for end in span]
    assert ends == sorted(ends)
    assert all(
        b - a > 1 for a, b in zip(ends[1::2], ends[2::2], strict=False)
    )  # none can be joined


def test_of_too_many_spans_the_oldest_are_counted() -> None:
    spans, count = Spans(), 3 * KEPT
    for number in range(0, 2 * count, 2):
        spans.add(number)
    assert (len(spans), len(spans.named), spans.earlier) == (count, KEPT, 2 * KEPT)
    assert spans.up_to == 4 * KEPT - 2 < spans.named[0][0]
    assert spans.remove(0)  # made up for, long after
    assert spans.remove(spans.named[-1][0])
    assert len(spans) == count - 2


def flickering(exchanges: int) -> Absences:
    """Two neighbors: one is there by chance, one is gone; and a clock that calls in vain."""
    drawn, absences = random.Random(1), Absences()
    for number in range(exchanges):
        if drawn.random() < 0.5:
            absences.note_missed(Missed(1, number), again=False)
            if drawn.random() < 0.5:
                absences.note_missed(Missed(1, number, late=True), again=False)
        absences.note_missed(Missed(2, number), again=False)
        absences.note_skipped(Skipped(number, (2,)))
    return absences


def test_a_snapshot_is_as_large_after_a_hundred_thousand_exchanges_as_after_a_thousand() -> None:
    few, many = flickering(2_000), flickering(60_000)
    sizes = [len(freeze({"of": one.of, "for": one.skipped_for})) for one in (few, many)]
    assert sizes[1] < 1.3 * sizes[0] < 10_000  # longer numbers; before, a record for each exchange
    assert many.of[2].without.named == [[0, 59_999]]
    assert many.missed - many.late == sum(len(one.without) for one in many.of.values())
    assert many.missed == 60_000 + len(many.of[1].without) + len(many.of[1].made_up)
    back = thaw(freeze({"of": many.of}))
    assert back["of"] == many.of


def test_what_others_have_seen_is_not_kept_for_who_is_away() -> None:
    """One neighbor confirms everything, one nothing: marks of the second do not pile up."""
    receipts, heard = Receipts(), {1: 0, 2: 0}
    journal = SimpleNamespace(confirmed=heard.__getitem__)
    for lines in range(1, 1001):
        receipts.posted(1, lines)
        receipts.posted(2, lines)
        if lines % 10 == 0:
            heard[1] = lines
            assert receipts.seen_lines(journal) == lines  # type: ignore[arg-type]
            assert sum(map(len, receipts.marks.values())) == 0
    heard[2] = 7
    assert receipts.seen_lines(journal) == 1000  # type: ignore[arg-type]


def test_a_snapshot_of_another_version_is_refused_with_a_sentence() -> None:
    host = SimpleNamespace(journal=SimpleNamespace(path="journal.db"))
    memory = {"host": dict.fromkeys([*recalling.REMEMBERED, "meetings"])}
    with pytest.raises(LocalProtocolError, match="written by another version of bruit"):
        recalling._resume(host, memory)  # type: ignore[arg-type]
