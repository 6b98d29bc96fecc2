"""Record: a board read post by post against the rules of the protocol, with everything that broke
one.

    open --> join* --> roster --> commit* --> (blame*) sealed --> reveal* --> proof* --> dropped --> agree*
         --> mask*, rollback* --> result

The organizer's lists only say when a stage ended: what is in them follows from the posts before,
and is checked. All copies of a board give the same record, so provers act on it, the organizer
closes stages by it, and verifiers judge by it. Findings name the author where a signature proves
one. (perso:GOPA-7, 9, 10)

Nothing is opened before `agree`: with it everybody who will be in the mean signs the head of the
board after the last list. A peer opens its masked value, and its exchanges with those who left,
only when all of them have signed its own history. Whoever is shown another one has signed another
head, and signs one only: so no peer's masked value and the noise that hides it can be had from two
versions of a board.
"""

from __future__ import annotations

from bruit.errors import RemoteProtocolError
from bruit.statistics.average.board.agreement import AverageAgreement
from bruit.statistics.average.board.board_file import check_signature, opened_agreement
from bruit.statistics.average.board.checks import (
    fault_of,
    proof_equations,
    proof_faults,
)
from bruit.statistics.average.board.coins import beacon_of
from bruit.statistics.average.board.findings import PROVEN, UNEXPLAINED, BoardFinding, RuleBroken
from bruit.statistics.average.board.judging import judge
from bruit.statistics.average.board.kinds import OPEN, check_kind
from bruit.statistics.average.board.pair_secret import Shown, exchange
from bruit.statistics.average.board.payloads import (
    Commit,
    Join,
    MaskedOpening,
    Proof,
    Rollback,
    Sum,
    read_proof,
)
from bruit.statistics.average.board.posts import FIRST_HEAD, Post, next_head
from bruit.statistics.average.proofs.equations import all_hold


class Record:
    """The state of one run. Feed it with `absorb`, in the order of the board."""

    def __init__(self, agreement: AverageAgreement) -> None:
        self.agreement = agreement
        self.heads = [FIRST_HEAD]
        self.findings: list[BoardFinding] = []
        self.said: dict[tuple[int, str], Post] = {}
        self.joins: dict[int, Join] = {}
        self.commits: dict[int, Commit] = {}
        self.mismatches: list[
            tuple[int, int]
        ] = []  # pairs u < v that committed to exchanges that do not cancel
        self.blames: dict[tuple[int, int], Shown] = {}
        self.coins: dict[int, bytes] = {}
        self.proofs: dict[int, Proof] = {}
        self.agreed: set[int] = set()
        self.masks: dict[int, MaskedOpening] = {}
        self.rollbacks: dict[int, Rollback] = {}
        self.roster: tuple[int, ...] | None = None
        self.sealed: tuple[int, ...] | None = None
        self.dropped: tuple[int, ...] | None = None
        self.result: Sum | None = None
        self._proof_faults: dict[int, str] | None = None
        self._beacon: bytes | None = None
        self.closed: dict[str, int] = {}  # by stage: after which entry it ended

    @property
    def length(self) -> int:
        return len(self.heads) - 1

    def absorb(self, post: Post) -> list[BoardFinding]:
        """Take the next post of the board; what it broke is returned and remembered, and the post
        then ignored."""
        before, position = len(self.findings), self.length
        try:
            self._check_place(post)
            self.said[post.slot] = post
            judge(self, post)()
        except RuleBroken as broken:
            self.findings.append(BoardFinding(broken.peer, broken.kind, str(broken), position))
        except RemoteProtocolError as error:
            text = f"the {post.kind!r} of peer {post.author} is malformed: {error}"
            self.findings.append(BoardFinding(post.author, "malformed", text, position))
        self.heads.append(next_head(self.heads[-1], post))
        return self.findings[before:]

    def admit(self, post: Post) -> None:
        """The door: refuse what would break a rule, and change nothing. An honest organizer stores
        and spreads only what it admits, so a copy that is served something else knows what to think
        of its organizer."""
        check_kind(post, self.agreement)
        if self.result is not None:
            raise RemoteProtocolError(
                f"the {post.kind!r} of peer {post.author} came after the result: the board is"
                " closed"
            )
        self._check_place(post)
        judge(self, post)

    def check_proof(self, post: Post) -> None:
        """Of an admitted proof, what takes time: for the organizer's door. Who only reads checks
        all of them at once, when the list of dropped peers is closed."""
        proof = read_proof(post.payload, self.agreement)
        if not all_hold(proof_equations(self, post.author, proof)):
            raise RuleBroken(post.author, "wrong proof", fault_of(post.author))

    def _check_place(self, post: Post) -> None:
        try:
            check_signature(post, self.agreement)
            if self.length == 0:
                opened_agreement(post)
        except RemoteProtocolError as error:
            raise RuleBroken(None, "signature", f"entry {self.length}: {error}") from None
        if self.length and post.kind == OPEN:
            raise RuleBroken(
                post.author,
                "malformed",
                f"peer {post.author} opens the board again: its opening is the first"
                " post, and no other is",
            )
        if post.slot in self.said:
            old = self.said[post.slot]
            raise RuleBroken(
                post.author,
                "late change" if old.payload != post.payload else "equivocation",
                f"peer {post.author} posted {post.kind!r} twice: what was said first counts",
            )
        if not 0 <= post.seen <= self.length or self.heads[post.seen] != post.head:
            raise RuleBroken(
                None,
                "history",
                f"peer {post.author} wrote its {post.kind!r} on a board that was different"
                f" before entry {post.seen}: the past was changed, or shown in two versions",
            )

    def partners(self, peer: int, among: tuple[int, ...]) -> tuple[int, ...]:
        """Neighbors of a peer on a list."""
        listed = set(among)
        return tuple(v for v in self.agreement.neighbors[peer] if v in listed)

    def pair_cheaters(self) -> dict[int, tuple[str, str]]:
        """Who committed to something else than the secret with its neighbor gives; both, if nobody
        showed it in time.

        Each with the kind of finding and its words; of two ends that showed nothing one may be
        honest."""
        found = {
            peer: (PROVEN, f"peer {peer} blamed somebody falsely") for peer in self._false_blames()
        }
        for u, v in self.mismatches:
            shown = self.blames.get((u, v)) or self.blames.get((v, u))
            for me, other in ((u, v), (v, u)):
                if shown is None:
                    text = f"the exchange of peers {u} and {v} does not cancel, and neither showed their secret"
                    found.setdefault(me, (UNEXPLAINED, text))
                elif (
                    exchange(self.agreement, shown.shared, me, other).commitments()
                    != self.commits[me].pairs[other]
                ):
                    text = f"peer {me} committed to another exchange than the one agreed on with peer {other}"
                    found[me] = PROVEN, text
        return found

    def _false_blames(self) -> set[int]:
        return {
            found.peer
            for found in self.findings
            if found.kind == "false blame" and found.peer is not None
        }

    def beacon(self) -> bytes | None:
        """The public randomness, once every sealed peer has revealed its coin."""
        if (
            self._beacon is None
            and self.sealed is not None
            and not set(self.sealed) - set(self.coins)
        ):
            self._beacon = beacon_of(self.agreement.run, {u: self.coins[u] for u in self.sealed})
        return self._beacon

    def proof_faults(self) -> dict[int, str]:
        """Peers whose proof does not verify, and why: one batch for all of them."""
        if self._proof_faults is None:
            self._proof_faults = proof_faults(self)
        return self._proof_faults

    def forget_proof_faults(self) -> None:
        """A proof has come: all are verified again when somebody asks."""
        self._proof_faults = None

    def online(self) -> tuple[int, ...]:
        """Who is left when the last list is closed: all of them will be in the mean, or there is
        none."""
        if self.sealed is None or self.dropped is None:
            return ()
        gone = set(self.dropped)
        return tuple(u for u in self.sealed if u not in gone)

    def is_agreed(self) -> bool:
        """Whether everybody who is left has signed this history: only then is anything opened."""
        online = self.online()
        return bool(online) and not set(online) - self.agreed

    def may_agree(self, peer: int) -> bool:
        """Whether what this peer would open exposes nobody: enough peers are left, and enough
        closed exchanges."""
        agreement, online = self.agreement, self.online()
        return (
            len(online) >= agreement.online
            and len(self.partners(peer, online)) >= agreement.partners
        )

    def to_open(self, peer: int) -> tuple[int, ...]:
        """Dropped peers with whom this one, online, exchanged noise."""
        return self.partners(peer, self.dropped or ()) if peer in self.online() else ()

    def missing_masks(self) -> list[int]:
        return [u for u in self.online() if u not in self.masks]

    def missing_rollbacks(self) -> list[int]:
        return [u for u in self.online() if self.to_open(u) and u not in self.rollbacks]

    def total(self) -> Sum | None:
        """The sum over the peers online, once all is opened."""
        if not self.online() or self.missing_masks() or self.missing_rollbacks():
            return None
        opened = [
            pair.noise
            for u in self.online()
            if u in self.rollbacks
            for pair in self.rollbacks[u].pairs.values()
        ]
        columns = range(self.agreement.width)
        total = (
            sum(self.masks[u].masked[k] for u in self.online()) - sum(noise[k] for noise in opened)
            for k in columns
        )
        return Sum(tuple(total), self.online())
