"""Whole rounds in any order of messages, dropouts at any moment, on given graphs and on graphs
drawn in the run."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bruit.errors import ConfigError
from bruit.graphs import complete, k_out
from bruit.privacy.theorems.gopa import gopa_guarantee
from bruit.randomness import Replay
from bruit.statistics.average.canceling.terms import Terms
from papers.baselines.canceling.board import Board
from papers.baselines.canceling.messages import (
    Confirm,
    Failed,
    Key,
    Masked,
    Opened,
    payload_bytes,
)
from papers.baselines.canceling.participant import Participant
from papers.baselines.canceling.picks import picked
from papers.baselines.canceling.rehearsal import BOARD, rehearse

WIDTH, DICE = 2, Replay(5)


def terms_of(n, **changes):
    return Terms(
        **{
            "number": 3,
            "peers": n,
            "width": WIDTH,
            "clip": 2.0,
            "own_sigma": 0.5,
            "pair_sigma": 20.0,
            "degree": n - 1,
            "partners": 0,
            **changes,
        }
    )


def values_of(n):
    return np.random.default_rng(1).uniform(-1, 1, (n, WIDTH))


def on_graph(graph, terms):
    return {
        u: Participant(
            u, graph.neighbors(u).tolist(), values_of(graph.n)[u], terms, 10.0, dice=DICE
        )
        for u in range(graph.n)
    }


def on_picks(n, k, terms):
    """Everybody draws its own k neighbors."""
    return {
        u: Participant(
            u,
            picked(u, k, n, terms.number, DICE),
            values_of(n)[u],
            terms,
            10.0,
            dice=DICE,
            open=True,
        )
        for u in range(n)
    }


def noisy_sum(terms, peers):
    """x + own noise of these peers, in words, by hand."""
    field, total = terms.field, np.zeros(WIDTH, np.uint64)
    for u in peers:
        own = DICE.normal("noise", np.array([u]), terms.number, 0, WIDTH)[0]
        total = total + field.encode(values_of(terms.peers)[u]) + field.noise(own, terms.own_sigma)
    return total


def never_both(board, found):
    """perso:GOPA-7, rule: nobody's accepted masked value and its exchanges are both public."""
    shown = set(board.masked)
    assert not shown & {other for _, other in board.opened}
    for record in found.records:
        if isinstance(record.message, Opened):
            assert not {other for other, _ in record.message.keys} & shown, record.sender


def check(found, board, terms, gone):
    """The sum is that of the noisy values of who stayed, to the bit, or noise is counted as
    left."""
    never_both(board, found)
    assert found.refused == ()
    outcome = found.outcome
    if isinstance(outcome, Failed):
        assert len(gone) >= terms.peers - 1
        return
    assert set(outcome.online) | set(outcome.dropped) <= set(range(terms.peers))
    stay = len(outcome.online)
    assert outcome.variance == pytest.approx(0.25 / stay + outcome.residual * 400 / stay**2)
    if outcome.residual == 0:
        assert np.array_equal(outcome.total, noisy_sum(terms, outcome.online))
        assert outcome.mean == pytest.approx(terms.field.decode(outcome.total) / stay)


DELAYS = st.lists(st.floats(0.01, 9.0), min_size=1, max_size=40)
LEAVING = st.dictionaries(st.integers(0, 6), st.integers(0, 14), max_size=4)


@settings(max_examples=30, deadline=None)
@given(DELAYS, LEAVING)
def test_any_order_and_dropouts_at_any_moment(delays, leaving):
    terms = terms_of(7)
    board = Board(terms, 20.0)
    check(
        rehearse(on_graph(k_out(7, 2, seed=1), terms), board, delays, leaving, repeat=3),
        board,
        terms,
        leaving,
    )


@settings(max_examples=20, deadline=None)
@given(DELAYS, LEAVING)
def test_the_same_on_a_graph_that_is_drawn_in_the_run(delays, leaving):
    terms = terms_of(7)
    board = Board(terms, 20.0)
    check(rehearse(on_picks(7, 2, terms), board, delays, leaving, repeat=3), board, terms, leaving)


def test_nobody_leaves_and_messages_are_fast_enough():
    terms = terms_of(5)
    for delays in ([0.01], [1.8, 0.01, 0.5], [0.1, 1.7]):
        found = rehearse(on_graph(complete(5), terms), Board(terms, 20.0), delays, repeat=3).outcome
        assert found.online == tuple(range(5))
        assert found.residual == 0
        assert np.array_equal(found.total, noisy_sum(terms, range(5)))


def test_the_graph_of_the_run_is_that_of_all_picks():
    """perso:GOPA-2: an edge if either picked the other; both ends agree on a seed, and the sum is
    exact."""
    n, k = 30, 3
    terms = terms_of(n)
    board = Board(terms, 20.0)
    found = rehearse(on_picks(n, k, terms), board)
    wanted = {tuple(sorted((u, v))) for u in range(n) for v in picked(u, k, n, terms.number, DICE)}
    graph = board.graph()
    assert {tuple(ends) for ends in graph.edges().tolist()} == wanted
    assert graph.degrees.min() >= k
    assert np.array_equal(found.outcome.total, noisy_sum(terms, range(n)))
    exact = gopa_guarantee(graph, terms.own_sigma, terms.pair_sigma, 4, [0, 1])
    assert 1 / n < exact.loss < 1.2 / (n - 2)


def test_picks_are_uniform_distinct_and_never_oneself():
    """Degree of a k-out graph: 2 k - k^2 / (n - 1) on average (perso:GOPA-2)."""
    n, k = 12, 3
    counts = np.zeros(n)
    for number in range(600):
        chosen = picked(4, k, n, number, Replay(1))
        assert len(set(chosen)) == k
        counts[list(chosen)] += 1
    assert counts[4] == 0
    others = np.delete(counts, 4)
    wanted = 600 * k / (n - 1)
    assert (
        (others - wanted) ** 2 / wanted
    ).sum() < 40  # chi-square of 10 degrees of freedom: 3e-5 beyond
    assert (
        len({picked(4, k, n, 0) for _ in range(8)}) > 1
    )  # without given dice nobody can know them: 165 choices


def test_colluders_that_pick_one_victim_cost_it_nothing():
    """Peers 1..5 all pick peer 0: its own picks among the honest still hide it."""
    n, terms = 12, terms_of(12)
    people = on_picks(n, 3, terms)
    people |= {
        u: Participant(u, [0], values_of(n)[u], terms, 10.0, dice=DICE, open=True)
        for u in range(1, 6)
    }
    people[0] = Participant(0, [8, 9, 10], values_of(n)[0], terms, 10.0, dice=DICE, open=True)
    board = Board(terms, 20.0)
    found = rehearse(people, board)
    assert set(range(1, 6)) <= set(board.partners[0])
    assert {8, 9, 10} <= set(board.partners[0])
    assert np.array_equal(found.outcome.total, noisy_sum(terms, range(n)))
    exact = gopa_guarantee(board.graph(), 0.5, 20.0, 0, range(1, 6))
    assert exact.loss < 1.1 / 7
    alone = gopa_guarantee(board.graph(), 0.5, 20.0, 0, range(1, n))
    assert alone.loss == pytest.approx(1.0)
    assert any("only its own noise protects it" in note for note in alone.notes)


class Liar(Participant):
    """Picks peer 0 and then confirms another seed."""

    def receive(self, now, sender, message):
        said = super().receive(now, sender, message)
        for effect in said:
            if isinstance(getattr(effect, "message", None), Confirm):
                object.__setattr__(effect.message, "tag", bytes(32))
        return said


def test_a_hostile_picker_is_named_and_the_others_finish():
    n, terms = 6, terms_of(6)
    people = on_picks(n, 2, terms)
    people[5] = Liar(5, [0], values_of(n)[5], terms, 10.0, dice=DICE, open=True)
    board = Board(terms, 20.0)
    found = rehearse(people, board)
    assert any("peer 5 agreed on another seed" in words for _, words in found.refused)
    assert board.partners[5] == ()
    assert np.array_equal(found.outcome.total, noisy_sum(terms, range(n)))


def test_who_leaves_after_the_roster_is_rolled_back():
    """It answered every exchange and fell silent before publishing."""
    terms, graph = terms_of(5), complete(5)
    for moment in range(4, 16):
        board = Board(terms, 20.0)
        found = rehearse(on_graph(graph, terms), board, [0.1], {2: moment})
        check(found, board, terms, {2: moment})
        assert found.outcome.residual == 0
        if found.outcome.dropped == (2,):
            break
    assert found.outcome.dropped == (2,)
    assert len(board.opened) == 4
    left = Board(terms, 20.0, rollback=False)
    kept = rehearse(on_graph(graph, terms), left, [0.1], {2: moment}).outcome
    assert kept.residual == 4
    assert kept.variance == pytest.approx(0.25 / 4 + 4 * 400 / 16)
    assert not left.opened


def test_every_message_is_on_record_with_its_size():
    """One key, one confirmation a neighbor, a list and a row of words: nothing else travels."""
    terms = terms_of(4)
    found = rehearse(on_graph(complete(4), terms), Board(terms, 20.0))
    sent = [record.message for record in found.records if record.sender == 0]
    assert sum(isinstance(message, Key) for message in sent) == 3
    assert sum(isinstance(message, Masked) for message in sent) == 1
    assert found.sent_bytes(0) == 3 * 32 + 3 * 32 + 3 * 4 + 8 * WIDTH
    assert found.sent_bytes(BOARD) == 4 * 4 * (
        4 + 3
    )  # four lists; the empty list of dropped peers has no bytes
    assert payload_bytes(Opened(((1, bytes(16)), (2, bytes(16))))) == 40
    assert min(found.seconds.values()) >= 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: rehearse({}, Board(terms_of(3)), []), "at least one"),
        (lambda: rehearse({}, Board(terms_of(3)), [-1.0]), "numbers >= 0"),
        (lambda: picked(0, 0, 5, 0), "between 1 and 4"),
        (lambda: picked(0, 5, 5, 0), "between 1 and 4"),
        (lambda: picked(7, 2, 5, 0), "0..4, found 7"),
    ],
)
def test_bad_input(wrong, words):
    with pytest.raises(ConfigError, match=words):
        wrong()


def test_a_board_that_falls_silent_ends_the_round():
    terms = terms_of(3)
    found = rehearse(on_graph(complete(3), terms), Board(terms), leaving={BOARD: 1})
    assert "fell silent" in found.outcome.reason
