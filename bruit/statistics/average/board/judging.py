"""What each kind of post does to the record, if it breaks no rule (perso:GOPA-7, 9, 10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bruit.errors import RemoteProtocolError
from bruit.statistics.average.board.checks import (
    sum_equations,
)
from bruit.statistics.average.board.coins import coin_hash
from bruit.statistics.average.board.findings import LATE, BoardFinding, RuleBroken
from bruit.statistics.average.board.kinds import BLAME, LISTS, OPEN, check_kind
from bruit.statistics.average.board.pair_secret import is_owned, is_shared
from bruit.statistics.average.board.payloads import (
    read_coin,
    read_commit,
    read_join,
    read_list,
    read_mask,
    read_proof,
    read_rollback,
    read_shown,
    read_sum,
)
from bruit.statistics.average.board.posts import Post
from bruit.statistics.average.proofs.equations import all_hold

if TYPE_CHECKING:
    from bruit.statistics.average.board.record import Record

AFTER = {
    "commit": "roster",
    "blame": "roster",
    "reveal": "sealed",
    "proof": "coins",
    "agree": "dropped",
    "mask": "agreed",
    "rollback": "agreed",
}
"""What the author of a post must have seen on the board: coins are revealed after, and because, all
is sealed."""
Change = Callable[[], None]
"""What a post that broke no rule does to the record."""


def judge(record: Record, post: Post) -> Change:
    """What the post does, if it breaks no rule."""
    check_kind(post, record.agreement)
    kind = post.kind.split(" ")[0]
    stage = AFTER.get(kind, "")
    if post.seen <= record.closed.get(stage, -1):
        raise RuleBroken(
            post.author,
            "early",
            f"peer {post.author} wrote its {post.kind!r} before it had seen the end"
            f" of the stage before, {stage!r}",
        )
    judges: dict[str, Callable[[Record, Post], Change]] = {
        OPEN: lambda record, post: _nothing,
        "join": _judge_join,
        "roster": _judge_roster,
        "commit": _judge_commit,
        BLAME.strip(): _judge_blame,
        "sealed": _judge_sealed,
        "reveal": _judge_reveal,
        "proof": _judge_proof,
        "dropped": _judge_dropped,
        "agree": _judge_agree,
        "mask": _judge_mask,
        "rollback": _judge_rollback,
        "result": _judge_result,
    }
    change = judges[kind](record, post)

    def apply() -> None:
        change()
        if kind in LISTS:
            record.closed[kind] = record.length
        elif kind == "reveal" and record.beacon() is not None:
            record.closed.setdefault("coins", record.length)
        elif kind == "agree" and record.is_agreed():
            record.closed.setdefault("agreed", record.length)

    return apply


def _judge_join(record: Record, post: Post) -> Change:
    _in_time(post, record.roster is None, "the list of participants was closed")
    found = read_join(post.payload)
    if not is_owned(record.agreement.run, post.author, found.owned, found.key):
        raise RuleBroken(
            post.author,
            "foreign key",
            f"peer {post.author} joins with a key whose secret it does not know",
        )
    return lambda: record.joins.update({post.author: found})


def _judge_roster(record: Record, post: Post) -> Change:
    kept = tuple(sorted(record.joins))
    _check_list(post, kept, "all peers that joined")

    def apply() -> None:
        record.roster = kept

    return apply


def _judge_commit(record: Record, post: Post) -> Change:
    _in_time(post, record.sealed is None, "the list of commitments was closed")
    found = read_commit(post.payload, record.agreement)
    if record.roster is None or post.author not in record.roster:
        raise RemoteProtocolError("its author is not on the list of participants")
    if tuple(found.pairs) != record.partners(post.author, record.roster):
        raise RemoteProtocolError(
            "it must commit to the exchanges with all its neighbors on the list, in order"
        )

    def apply() -> None:
        record.commits[post.author] = found
        for other, mine in found.pairs.items():
            if other in record.commits:
                theirs = record.commits[other].pairs[post.author]
                if any(-a != b for a, b in zip(mine, theirs, strict=True)):
                    record.mismatches.append((min(post.author, other), max(post.author, other)))

    return apply


def _judge_blame(record: Record, post: Post) -> Change:
    _in_time(post, record.sealed is None, "the list of commitments was closed")
    other = int(post.kind.removeprefix(BLAME))
    if post.author not in record.commits or other not in record.commits[post.author].pairs:
        raise RemoteProtocolError("it blames somebody with whom its author has no exchange")
    if (min(post.author, other), max(post.author, other)) not in record.mismatches:
        raise RemoteProtocolError("it blames somebody with whom its author agrees")
    shown = read_shown(post.payload)
    if not is_shared(
        record.agreement.run, shown, record.joins[post.author].key, record.joins[other].key
    ):
        raise RuleBroken(
            post.author,
            "false blame",
            f"peer {post.author} blames peer {other} without being able to show their secret",
        )
    return lambda: record.blames.update({(post.author, other): shown})


def _judge_sealed(record: Record, post: Post) -> Change:
    if record.roster is None:
        raise RemoteProtocolError("the list of commitments comes after the list of participants")
    cheaters = record.pair_cheaters()
    kept = tuple(sorted(set(record.commits) - set(cheaters)))
    _check_list(post, kept, "all peers whose commitments cancel")

    def apply() -> None:
        record.sealed = kept
        for peer, (kind, text) in sorted(cheaters.items()):
            record.findings.append(BoardFinding(peer, kind, text, record.length))

    return apply


def _judge_reveal(record: Record, post: Post) -> Change:
    if record.sealed is None or post.author not in record.sealed:
        raise RemoteProtocolError("its author is not on the closed list of commitments")
    coin = read_coin(post.payload)
    if coin_hash(record.agreement.run, post.author, coin) != record.joins[post.author].coin:
        raise RuleBroken(
            post.author,
            "late change",
            f"peer {post.author} revealed another coin than the one it had hidden",
        )
    return lambda: record.coins.update({post.author: coin})


def _judge_proof(record: Record, post: Post) -> Change:
    _in_time(post, record.dropped is None, "the list of dropped peers was closed")
    if record.beacon() is None or record.sealed is None or post.author not in record.sealed:
        raise RemoteProtocolError(
            "proofs come after all coins, from peers whose commitments are sealed"
        )
    found = read_proof(post.payload, record.agreement)

    def apply() -> None:
        record.proofs[post.author] = found
        record.forget_proof_faults()

    return apply


def _judge_dropped(record: Record, post: Post) -> Change:
    if record.sealed is None or record.beacon() is None:
        raise RemoteProtocolError("the list of dropped peers comes after all coins were revealed")
    faults = record.proof_faults()
    gone = tuple(u for u in record.sealed if u not in record.proofs or u in faults)
    _check_list(post, gone, "exactly the peers without a valid proof")

    def apply() -> None:
        record.dropped = gone
        for peer, text in sorted(faults.items()):
            record.findings.append(BoardFinding(peer, "wrong proof", text, record.length))

    return apply


def _judge_agree(record: Record, post: Post) -> Change:
    if post.author not in record.online():
        raise RemoteProtocolError(
            "only the peers that are left agree, after the list of dropped ones was closed"
        )
    if read_list(post.payload) != record.online():
        raise RuleBroken(
            post.author,
            "wrong list",
            f"peer {post.author} agrees to another list than {record.online()}",
        )
    return lambda: record.agreed.add(post.author)


def _judge_mask(record: Record, post: Post) -> Change:
    if not record.is_agreed() or post.author not in record.online():
        raise RemoteProtocolError(
            "masked values come after everybody who is left has agreed, from one of them"
        )
    found = read_mask(post.payload, record.agreement)
    if not all_hold(sum_equations(record, post.author, found)):
        raise RuleBroken(
            post.author,
            "wrong mask",
            f"the masked value of peer {post.author} is not the sum of what it committed to",
        )
    return lambda: record.masks.update({post.author: found})


def _judge_rollback(record: Record, post: Post) -> Change:
    wanted = record.to_open(post.author) if record.is_agreed() else ()
    found = read_rollback(post.payload, record.agreement)
    if not wanted or tuple(found.pairs) != wanted:
        raise RemoteProtocolError(
            f"it must open exactly its exchanges with dropped peers, {list(wanted)}"
        )
    for other, pair in found.pairs.items():
        if pair.commitments() != record.commits[post.author].pairs[other]:
            raise RuleBroken(
                post.author,
                "wrong opening",
                f"peer {post.author} opens its exchange with peer {other} to"
                " something it had not committed to",
            )
    return lambda: record.rollbacks.update({post.author: found})


def _judge_result(record: Record, post: Post) -> Change:
    total = record.total()
    if total is None:
        raise RemoteProtocolError(
            "the result comes after the last opening; missing:"
            f" {sorted({*record.missing_masks(), *record.missing_rollbacks()})}"
        )
    if read_sum(post.payload) != total:
        raise RuleBroken(
            post.author,
            "wrong result",
            f"the organizer, peer {post.author}, states another sum than the posts give",
        )

    def apply() -> None:
        record.result = total

    return apply


def _in_time(post: Post, open_still: bool, closed: str) -> None:
    if not open_still:
        raise RuleBroken(
            post.author, LATE, f"the {post.kind!r} of peer {post.author} came after {closed}"
        )


def _check_list(post: Post, wanted: tuple[int, ...], words: str) -> None:
    found = read_list(post.payload)
    if found != wanted:
        off = sorted(set(found) ^ set(wanted))
        raise RuleBroken(
            post.author,
            "wrong list",
            f"the organizer, peer {post.author}, listed {list(found)} in its"
            f" {post.kind!r}, which is not {words}; it is wrong about {off}",
        )


def _nothing() -> None:
    pass
