"""The counts of reliability would notice what they look for, and stay on this machine."""

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.reliability import frames, kills
from benchmarks.reliability.__main__ import QUESTIONS
from benchmarks.reliability.village import Note
from bruit.algorithms.schedules.machine import Envelope
from bruit.errors import RemoteProtocolError
from bruit.peers.wire.codec import Conversation, Frame, decode, encode


class Told:
    """A village in which these frames were received by peer 1, and these rounds are in the journal
    of peer 0."""

    def __init__(self, notes, clocks):
        self._notes, self._clocks = notes, clocks

    def notes(self, peer):
        return self._notes if peer == 1 else []

    def releases(self, peer):
        return self._clocks


def note(sequence, number, digest=b"a"):
    return Note(0, sequence, number, 1, digest)


@pytest.mark.parametrize(
    ("notes", "clocks", "found"),
    [
        ([note(1, 0), note(2, 1)], [0, 1], (0, 0, 0, 0)),
        ([note(1, 0), note(1, 0)], [0, 1], (1, 0, 0, 0)),  # the same bytes again cost nothing
        ([note(1, 0), note(1, 0, b"b")], [0], (1, 1, 0, 0)),
        ([note(1, 0), note(2, 1)], [0], (0, 0, 1, 0)),  # round 1 left without a line
        ([note(1, 0)], [0, 0], (0, 0, 0, 1)),
    ],
)
def test_what_left_a_killed_peer_is_compared_with_its_journal(notes, clocks, found):
    books = kills.Books()
    books.begin()
    books.compare(Told(notes, clocks), 0)
    assert (books.resent, books.differing, books.unrecorded, books.twice) == found


def test_hostile_frames_are_of_many_kinds_and_the_codec_refuses_most():
    voice, dice = Conversation("ab" * 32, "gossip-sgd", 1), random.Random(5)
    honest = encode(Frame.of(voice, 1, Envelope("round", 0, np.zeros((1, 2)))))
    made = {frames.hostile(honest, dice) for _ in range(1000)}
    assert len(made) > 500
    refused = 0
    for data in made:
        try:
            decode(data, voice)
        except RemoteProtocolError:
            refused += 1
    assert refused > len(made) / 2


def test_an_unknown_question_is_refused_with_the_names_of_all():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.reliability", "fires"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert all(name in done.stderr for name in QUESTIONS)


def test_the_table_in_the_docs_is_what_was_counted():
    """Row by row, as it was printed, and every goal was met."""
    root = Path(__file__).parents[2]
    counts = json.loads((root / "benchmarks/reliability/counted.json").read_text())
    page = (root / "docs/explanation/threat-models.md").read_text().partition("## Counted")[2]
    rows = [line for line in page.splitlines() if line.startswith("| ")][1:]
    assert rows == [
        f"| {one['question']} | {one['what']} | {one['found']:,.6g} | {one['goal']} |"
        for one in counts
    ]
    assert all(one["held"] for one in counts)
