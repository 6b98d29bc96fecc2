"""Record: a board read post by post against the rules of the protocol, with everything that broke one.

    open --> join* --> roster --> commit* --> (blame*) sealed --> reveal* --> mask* --> dropped --> rollback* --> result

The organizer's lists only say when a stage ended: what is in them follows from the posts before, and is checked. All
copies of a board give the same record, so provers act on it, the organizer closes stages by it, and verifiers judge by
it. Findings name the author where a signature proves one. (perso:GOPA-7, 9, 10)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bruit.errors import RemoteProtocolError
from bruit.verification.agreement import Agreement
from bruit.verification.board_file import OPEN, check_signature, opened_agreement
from bruit.verification.checks import mask_faults
from bruit.verification.coins import beacon_of, coin_hash
from bruit.verification.pair_secret import Shown, exchange, is_owned, is_shared
from bruit.verification.payloads import (
    Commit,
    Join,
    Mask,
    Rollback,
    Sum,
    read_coin,
    read_commit,
    read_join,
    read_list,
    read_mask,
    read_rollback,
    read_shown,
    read_sum,
)
from bruit.verification.posts import FIRST_HEAD, Post, next_head

BLAME = "blame "
PROVEN, UNEXPLAINED, LATE, REFUSED = "non-canceling pair", "unexplained pair", "late", "refused opening"
INNOCENT = (UNEXPLAINED, LATE, REFUSED)
"""Findings about peers that may be honest: a post was on its way when a list was closed, or would have exposed one."""
AFTER = {"commit": "roster", "blame": "roster", "reveal": "sealed", "mask": "coins", "rollback": "dropped"}
"""What the author of a post must have seen on the board: coins are revealed after, and because, all is sealed."""


@dataclass(frozen=True)
class Finding:
    """One broken rule: by whom (None when no signature tells), what kind, in words, and where on the board."""

    peer: int | None
    kind: str
    text: str
    position: int | None = None


class Record:
    """The state of one run. Feed it with `absorb`, in the order of the board."""

    def __init__(self, agreement: Agreement) -> None:
        self.agreement = agreement
        self.heads = [FIRST_HEAD]
        self.findings: list[Finding] = []
        self.said: dict[tuple[int, str], Post] = {}
        self.joins: dict[int, Join] = {}
        self.commits: dict[int, Commit] = {}
        self.mismatches: list[tuple[int, int]] = []  # pairs u < v that committed to exchanges that do not cancel
        self.blames: dict[tuple[int, int], Shown] = {}
        self.coins: dict[int, bytes] = {}
        self.masks: dict[int, Mask] = {}
        self.late_masks: set[int] = set()
        self.rollbacks: dict[int, Rollback] = {}
        self.roster: tuple[int, ...] | None = None
        self.sealed: tuple[int, ...] | None = None
        self.dropped: tuple[int, ...] | None = None
        self.result: Sum | None = None
        self._judged: dict[int, str] | None = None
        self._beacon: bytes | None = None
        self._closed: dict[str, int] = {}

    @property
    def length(self) -> int:
        return len(self.heads) - 1

    def absorb(self, post: Post) -> list[Finding]:
        """Take the next post of the board; what it broke is returned and remembered, and the post then ignored."""
        before, position = len(self.findings), self.length
        try:
            self._check_place(post)
            self.said[post.slot] = post
            self._take(post)
        except Broken as broken:
            self.findings.append(Finding(broken.peer, broken.kind, str(broken), position))
        except RemoteProtocolError as error:
            text = f"the {post.kind!r} of peer {post.author} is malformed: {error}"
            self.findings.append(Finding(post.author, "malformed", text, position))
        self.heads.append(next_head(self.heads[-1], post))
        return self.findings[before:]

    def _check_place(self, post: Post) -> None:
        try:
            check_signature(post, self.agreement)
            if self.length == 0:
                opened_agreement(post)
        except RemoteProtocolError as error:
            raise Broken(None, "signature", f"entry {self.length}: {error}") from None
        if self.length and post.kind == OPEN:
            raise Broken(post.author, "malformed", f"peer {post.author} opens the board again: its opening is the first"
                         " post, and no other is")  # fmt: skip
        if post.slot in self.said:
            old = self.said[post.slot]
            raise Broken(post.author, "late change" if old.payload != post.payload else "equivocation",
                         f"peer {post.author} posted {post.kind!r} twice: what was said first counts")  # fmt: skip
        if not 0 <= post.seen <= self.length or self.heads[post.seen] != post.head:
            raise Broken(None, "history", f"peer {post.author} wrote its {post.kind!r} on a board that was different"
                         f" before entry {post.seen}: the past was changed, or shown in two versions")  # fmt: skip

    def _take(self, post: Post) -> None:
        stage = AFTER.get(post.kind.split(" ")[0], "")
        if post.seen <= self._closed.get(stage, -1):
            raise Broken(post.author, "early", f"peer {post.author} wrote its {post.kind!r} before it had seen the end"
                         f" of the stage before, {stage!r}")  # fmt: skip
        if post.kind.startswith(BLAME):
            self._take_blame(post)
            return
        takers: dict[str, Callable[[Post], None]] = {
            OPEN: lambda _: None, "join": self._take_join, "roster": self._take_roster, "commit": self._take_commit,
            "sealed": self._take_sealed, "reveal": self._take_reveal, "mask": self._take_mask,
            "dropped": self._take_dropped, "rollback": self._take_rollback, "result": self._take_result,
        }  # fmt: skip
        if post.kind not in takers:
            raise RemoteProtocolError("there is no such kind of post")
        if post.kind in ("roster", "sealed", "dropped", "result") and post.author != self.agreement.organizer:
            raise RemoteProtocolError("only the organizer closes lists")
        takers[post.kind](post)
        if post.kind in ("roster", "sealed", "dropped"):
            self._closed[post.kind] = self.length
        elif post.kind == "reveal" and self.beacon() is not None:
            self._closed.setdefault("coins", self.length)

    def _take_join(self, post: Post) -> None:
        _in_time(post, self.roster is None, "the list of participants was closed")
        found = read_join(post.payload)
        if not is_owned(self.agreement.run, post.author, found.owned, found.key):
            raise Broken(post.author, "foreign key", f"peer {post.author} joins with a key whose secret it does not"
                         " know")  # fmt: skip
        self.joins[post.author] = found

    def _take_roster(self, post: Post) -> None:
        self._check_list(post, tuple(sorted(self.joins)), "all peers that joined")
        self.roster = tuple(sorted(self.joins))

    def _take_commit(self, post: Post) -> None:
        _in_time(post, self.sealed is None, "the list of commitments was closed")
        found = read_commit(post.payload, self.agreement)
        if self.roster is None or post.author not in self.roster:
            raise RemoteProtocolError("its author is not on the list of participants")
        if tuple(found.pairs) != self.partners(post.author, self.roster):
            raise RemoteProtocolError("it must commit to the exchanges with all its neighbors on the list, in order")
        self.commits[post.author] = found
        for other, mine in found.pairs.items():
            if other in self.commits:
                theirs = self.commits[other].pairs[post.author]
                if any(-a != b for a, b in zip(mine, theirs, strict=True)):
                    self.mismatches.append((min(post.author, other), max(post.author, other)))

    def _take_blame(self, post: Post) -> None:
        _in_time(post, self.sealed is None, "the list of commitments was closed")
        word = post.kind.removeprefix(BLAME)
        other = int(word) if word.isdecimal() and len(word) < 9 else -1
        if post.author not in self.commits or other not in self.commits[post.author].pairs:
            raise RemoteProtocolError("it blames somebody with whom its author has no exchange")
        shown = read_shown(post.payload)
        if not is_shared(self.agreement.run, shown, self.joins[post.author].key, self.joins[other].key):
            raise Broken(post.author, "false blame", f"peer {post.author} blames peer {other} without being able to"
                         " show their secret")  # fmt: skip
        self.blames[post.author, other] = shown

    def _take_sealed(self, post: Post) -> None:
        cheaters = self.pair_cheaters()
        kept = tuple(sorted(set(self.commits) - set(cheaters)))
        self._check_list(post, kept, "all peers whose commitments cancel")
        self.sealed = kept
        for peer, (kind, text) in sorted(cheaters.items()):
            self.findings.append(Finding(peer, kind, text, self.length))

    def _take_reveal(self, post: Post) -> None:
        if self.sealed is None or post.author not in self.sealed:
            raise RemoteProtocolError("its author is not on the closed list of commitments")
        coin = read_coin(post.payload)
        if coin_hash(self.agreement.run, post.author, coin) != self.joins[post.author].coin:
            raise Broken(post.author, "late change", f"peer {post.author} revealed another coin than the one it had"
                         " hidden")  # fmt: skip
        self.coins[post.author] = coin

    def _take_mask(self, post: Post) -> None:
        if self.dropped is not None:
            self.late_masks.add(post.author)
        _in_time(post, self.dropped is None, "the list of dropped peers was closed")
        if self.beacon() is None or self.sealed is None or post.author not in self.sealed:
            raise RemoteProtocolError("masked values come after all coins, from peers whose commitments are sealed")
        self.masks[post.author] = read_mask(post.payload, self.agreement)
        self._judged = None

    def _take_dropped(self, post: Post) -> None:
        if self.sealed is None or self.beacon() is None:
            raise RemoteProtocolError("the list of dropped peers comes after all coins were revealed")
        faults = self.mask_faults()
        gone = tuple(u for u in self.sealed if u not in self.masks or u in faults)
        self._check_list(post, gone, "exactly the peers without a valid masked value")
        self.dropped = gone
        for peer, text in sorted(faults.items()):
            self.findings.append(Finding(peer, "wrong mask", text, self.length))

    def _take_rollback(self, post: Post) -> None:
        wanted = self.to_open(post.author)
        found = read_rollback(post.payload, self.agreement)
        if not wanted or tuple(found.pairs) != wanted:
            raise RemoteProtocolError(f"it must open exactly its exchanges with dropped peers, {list(wanted)}")
        for other, pair in found.pairs.items():
            if pair.commitments() != self.commits[post.author].pairs[other]:
                raise Broken(post.author, "wrong opening", f"peer {post.author} opens its exchange with peer {other} to"
                             " something it had not committed to")  # fmt: skip
        self.rollbacks[post.author] = found

    def _take_result(self, post: Post) -> None:
        total = self.total()
        if total is None:
            raise RemoteProtocolError(f"the result comes after the last opening; missing: {self.missing_rollbacks()}")
        if read_sum(post.payload) != total:
            raise Broken(post.author, "wrong result", f"the organizer, peer {post.author}, states another sum than the"
                         " posts give")  # fmt: skip
        self.result = total

    def _check_list(self, post: Post, wanted: tuple[int, ...], words: str) -> None:
        found = read_list(post.payload)
        if found != wanted:
            off = sorted(set(found) ^ set(wanted))
            raise Broken(post.author, "wrong list", f"the organizer, peer {post.author}, listed {list(found)} in its"
                         f" {post.kind!r}, which is not {words}; it is wrong about {off}")  # fmt: skip

    def partners(self, peer: int, among: tuple[int, ...]) -> tuple[int, ...]:
        """Neighbors of a peer on a list."""
        listed = set(among)
        return tuple(v for v in self.agreement.neighbors[peer] if v in listed)

    def pair_cheaters(self) -> dict[int, tuple[str, str]]:
        """Who committed to something else than the secret with its neighbor gives; both, if nobody showed it in time.

        Each with the kind of finding and its words; of two ends that showed nothing one may be honest."""
        found = {peer: (PROVEN, f"peer {peer} blamed somebody falsely") for peer in self._false_blames()}
        for u, v in self.mismatches:
            shown = self.blames.get((u, v)) or self.blames.get((v, u))
            for me, other in ((u, v), (v, u)):
                if shown is None:
                    text = f"the exchange of peers {u} and {v} does not cancel, and neither showed their secret"
                    found.setdefault(me, (UNEXPLAINED, text))
                elif exchange(self.agreement, shown.shared, me, other).commitments() != self.commits[me].pairs[other]:
                    text = f"peer {me} committed to another exchange than the one agreed on with peer {other}"
                    found[me] = PROVEN, text
        return found

    def _false_blames(self) -> set[int]:
        return {found.peer for found in self.findings if found.kind == "false blame" and found.peer is not None}

    def beacon(self) -> bytes | None:
        """The public randomness, once every sealed peer has revealed its coin."""
        if self._beacon is None and self.sealed is not None and not set(self.sealed) - set(self.coins):
            self._beacon = beacon_of(self.agreement.run, {u: self.coins[u] for u in self.sealed})
        return self._beacon

    def mask_faults(self) -> dict[int, str]:
        """Peers whose masked value does not verify, and why: one batch for all of them."""
        if self._judged is None:
            self._judged = mask_faults(self)
        return self._judged

    def to_open(self, peer: int) -> tuple[int, ...]:
        """Dropped peers with whom this one, online, exchanged noise."""
        if self.sealed is None or self.dropped is None or peer not in self.sealed or peer in self.dropped:
            return ()
        return self.partners(peer, self.dropped)

    def may_open(self, peer: int) -> bool:
        """Whether opening its exchanges exposes nobody: neither a dropped peer whose masked value is on the board, nor
        this one, by leaving it fewer closed exchanges than agreed, nor anybody in a mean of too few."""
        told, online = self.agreement, self.online()
        exposed = set(self.to_open(peer)) & self.late_masks
        return not exposed and len(online) >= told.online and len(self.partners(peer, online)) >= told.partners

    def online(self) -> tuple[int, ...]:
        gone = set(self.dropped or ())
        return tuple(u for u in self.sealed or () if u not in gone)

    def missing_rollbacks(self) -> list[int]:
        return [u for u in self.online() if self.to_open(u) and u not in self.rollbacks]

    def total(self) -> Sum | None:
        """The sum over the peers online, once every exchange with dropped ones is opened."""
        if self.dropped is None or self.missing_rollbacks() or not self.online():
            return None
        opened = [pair.noise for u in self.online() if u in self.rollbacks for pair in self.rollbacks[u].pairs.values()]
        columns = range(self.agreement.width)
        total = (sum(self.masks[u].masked[k] for u in self.online()) - sum(noise[k] for noise in opened)
                 for k in columns)  # fmt: skip
        return Sum(tuple(total), self.online())


class Broken(RemoteProtocolError):
    """A rule of the protocol was broken, by somebody or by nobody that a signature names."""

    def __init__(self, peer: int | None, kind: str, text: str) -> None:
        super().__init__(text)
        self.peer, self.kind = peer, kind


def _in_time(post: Post, open_still: bool, closed: str) -> None:
    if not open_still:
        raise Broken(post.author, LATE, f"the {post.kind!r} of peer {post.author} came after {closed}")

