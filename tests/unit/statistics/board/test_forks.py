"""An organizer that shows different boards to different peers: what it gets nobody to open
(perso:GOPA-7)."""

import copy

import numpy as np
import pytest

from bruit.statistics.average.board import BoardFile, Organizer, Record, verify
from tests.unit.statistics.board.small_board import Small


class Forker:
    """Peer 0, the organizer, with two boards. Honest peers read and write the board they are shown;
    it carries posts from one to the other where they fit, hides what it likes, and is peer 0 on
    both.

    hidden(board, post): whether a post is kept off that board."""

    def __init__(self, small, shown, hidden, fork_after="reveal"):
        self.small, self.shown, self.hidden, self.fork_after = small, shown, hidden, fork_after
        self.boards = [Record(small.agreement), Record(small.agreement)]
        self.posts = [[], []]
        self.organizers = [Organizer(small.agreement, small.signs[0]) for _ in range(2)]
        self.selves = [small.provers[0], small.provers[0]]
        self.forked = False
        self.opened, self.masked = set(), set()  # (who, with whom), and whose masked value left it

    def put(self, place, post):
        record = self.boards[place]
        if post.slot in record.said or not (
            post.seen <= record.length and record.heads[post.seen] == post.head
        ):
            return False
        if self.forked and self.hidden(place, post):
            return False
        if copy.deepcopy(record).absorb(
            post
        ):  # it would convict somebody, or was not due: kept for later
            return False
        record.absorb(post)
        self.posts[place].append(post)
        return True

    def learn(self, post):
        if post.author and post.kind == "mask":
            self.masked.add(post.author)
        if post.author and post.kind == "rollback":
            board = self.boards[self.shown[post.author]]
            self.opened |= {(post.author, other) for other in board.to_open(post.author)}

    def run(self, turns=40):
        for place in range(2):
            self.put(place, self.organizers[0].open())
        said = []
        for _ in range(turns):
            before = [record.length for record in self.boards]
            for prover in self.small.provers[1:]:
                for post in prover.next(self.boards[self.shown[prover.me]]):
                    if post not in said:
                        said.append(post)
                        self.learn(post)
            for place in range(2):
                said += self.selves[place].next(self.boards[place])
                for post in said:
                    self.put(place, post)
            self.forked = self.forked or any(post.kind == self.fork_after for post in self.posts[0])
            if self.forked and self.selves[0] is self.selves[1]:
                self.selves[1] = copy.deepcopy(self.selves[0])
                self.selves[1]._sign = self.selves[0]._sign
            if before == [record.length for record in self.boards]:
                for place in range(2):
                    for post in self.organizers[place].next(self.boards[place], True):
                        self.put(place, post)
                if before == [record.length for record in self.boards]:
                    break
        return self

    def hiding(self, peer):
        """Honest peers whose exchange with this one stays closed."""
        honest = range(1, self.small.agreement.peers)
        return {
            u
            for u in honest
            if u != peer and (u, peer) not in self.opened and (peer, u) not in self.opened
        }


def planned(n, dropouts):
    stay = n - dropouts
    return Small(n=n, partners=stay - 1, online=max(2, stay))


def without_peer_3(place, post):
    """On board 1 peer 3 is gone before it has proven, or shown, anything."""
    return place == 1 and post.author == 3 and post.kind != "reveal"


def test_a_fork_does_not_strip_a_peer_of_its_noise():
    """One dropout is planned: peer 3 is shown a board on which all are left, and the others one on
    which it is gone."""
    forker = Forker(planned(4, 1), (0, 1, 1, 0), without_peer_3).run()
    assert forker.boards[1].dropped == (3,)
    assert forker.boards[0].dropped == ()
    assert 3 not in forker.masked
    assert forker.boards[0].result is None


def test_the_board_that_all_agreed_to_still_gives_its_mean_and_its_copy_convicts(tmp_path):
    """The others are three, as planned: they find their mean; the copy of peer 3 shows what it was
    told."""
    forker = Forker(planned(4, 1), (0, 1, 1, 0), without_peer_3).run()
    assert forker.boards[1].result is not None
    for name, posts in zip(("shown", "kept"), forker.posts, strict=True):
        with BoardFile(tmp_path / f"{name}.db", durable=False) as board:
            for post in posts:
                board.append(post)
    assert verify(tmp_path / "kept.db").accepted
    report = verify(tmp_path / "kept.db", [tmp_path / "shown.db"])
    assert not report.accepted
    assert report.caught == (0,)
    assert not verify(tmp_path / "shown.db").accepted


def test_without_dropouts_a_fork_opens_nothing_at_all():
    forker = Forker(planned(4, 0), (0, 1, 1, 0), without_peer_3).run()
    assert (forker.masked, forker.opened) == (set(), set())
    assert [record.result for record in forker.boards] == [None, None]


def test_without_a_fork_all_is_as_it_was():
    forker = Forker(
        planned(4, 1), (0, 0, 0, 0), lambda place, post: False, fork_after="never"
    ).run()
    assert forker.masked == {1, 2, 3}
    assert forker.boards[0].result is not None


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 40))]
)
def test_whatever_an_organizer_hides_enough_exchanges_stay_closed(seed):
    """Boards, hidden posts and the place where they part are drawn: whoever opened its masked value
    is still hidden by as many honest peers as the budget counts on."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 6))
    dropouts = int(rng.integers(1, n - 2))
    shown = (0, *(int(rng.random() < 0.7) for _ in range(n - 1)))
    gone = {(1, u) for u in range(1, n) if rng.random() < (0.1 if shown[u] else 0.9)}
    gone |= {(0, u) for u in range(1, n) if rng.random() < 0.1}
    late = ("commit", "proof", "proof", "agree", "mask")[int(rng.integers(5))]
    fork_after = ("roster", "sealed", "reveal", "reveal")[int(rng.integers(4))]
    order = ("join", "commit", "reveal", "proof", "agree", "mask", "rollback")

    def hidden(place, post):
        return (place, post.author) in gone and post.kind in order[order.index(late) :]

    small = planned(n, dropouts)
    forker = Forker(small, shown, hidden, fork_after).run()
    for peer in forker.masked:
        assert len(forker.hiding(peer)) >= small.agreement.online - 2
