"""What may stand on a board: the kinds of posts, who may write each of them, and how long it may
be.

    every author writes a kind once; one blame for each neighbor; lists and the result are the organizer's

All of it follows from the agreement, so everybody knows beforehand how large a board can become,
and whatever is of another kind, of another author or longer is refused before its signature is
looked at, stored nowhere and told nobody.
"""

from __future__ import annotations

from bruit.errors import RemoteProtocolError
from bruit.statistics.average.board.agreement import AverageAgreement
from bruit.statistics.average.board.posts import Post
from bruit.statistics.average.proofs.bit_proof import proof_bytes

OPEN = "open"
BLAME = "blame "
LISTS = ("roster", "sealed", "dropped")
ORGANIZERS = (OPEN, *LISTS, "result")
EVERYBODYS = ("join", "commit", "reveal", "proof", "agree", "mask", "rollback")
POINT = SCALAR = 48  # letters: base 64 in quotes, with a comma
MASKED = 24  # letters of an integer below 2**62 in size, of either sign
TOTAL = 40  # letters of a sum
PEER = 10  # letters of a number of a peer
NAMES = 128  # letters for the names of fields
AROUND = 512  # bytes of a post beside its payload: signature, run, head, numbers


def check_kind(post: Post, agreement: AverageAgreement) -> None:
    """Refuse a post that has no place on the board of this agreement, whatever else it says."""
    most = longest_payload(agreement, post.author, post.kind)
    if len(post.payload) > most or not post.payload.isascii():
        raise RemoteProtocolError(
            f"the {post.kind!r} of peer {post.author} has {len(post.payload)} letters; by the"
            f" agreement it has at most {most}, plain ones"
        )


def longest_payload(agreement: AverageAgreement, author: int, kind: str) -> int:
    """Letters of the longest payload of that kind that this author may write; there is room for
    spaces."""
    if not 0 <= author < agreement.peers:
        raise RemoteProtocolError(f"there is no peer {author} in this run of {agreement.peers}")
    if kind == OPEN and author == agreement.organizer:
        return len(agreement.to_json())
    if kind in ORGANIZERS and author != agreement.organizer:
        raise RemoteProtocolError(
            f"peer {author} wrote {kind!r}: only the organizer opens, closes lists and adds up"
        )
    if kind.startswith(BLAME):
        if kind.removeprefix(BLAME) not in {str(v) for v in agreement.neighbors[author]}:
            raise RemoteProtocolError(
                f"peer {author} wrote {kind[:20]!r}: it exchanges no noise with such a peer"
            )
        return 2 * (3 * SCALAR + NAMES)
    sizes = _sizes(agreement, len(agreement.neighbors[author]))
    if kind not in sizes:
        raise RemoteProtocolError(
            f"peer {author} wrote {kind[:20]!r}: there is no such kind of post; there are:"
            f" {', '.join((*EVERYBODYS, BLAME + 'N', *ORGANIZERS))}"
        )
    return 2 * (sizes[kind] + NAMES)


def longest_post(agreement: AverageAgreement) -> int:
    """Bytes of the longest post of all, as it is sent."""
    widest = max(range(agreement.peers), key=lambda u: len(agreement.neighbors[u]))
    letters = [longest_payload(agreement, widest, kind) for kind in EVERYBODYS]
    letters += [longest_payload(agreement, agreement.organizer, kind) for kind in ORGANIZERS]
    return AROUND + 2 * max(letters)  # every quote in a payload is written with a stroke before it


def most_posts(agreement: AverageAgreement) -> int:
    """Posts on the longest board."""
    return len(ORGANIZERS) + len(EVERYBODYS) * agreement.peers + 2 * len(agreement.edges)


def _sizes(agreement: AverageAgreement, degree: int) -> dict[str, int]:
    width, listed = agreement.width, PEER * agreement.peers
    opened = width * (MASKED + SCALAR)
    return {
        "join": POINT + 3 * SCALAR,
        "commit": POINT * (1 + width) + degree * (PEER + 6 + width * POINT),
        "reveal": SCALAR,
        "proof": width * POINT + 4 * (proof_bytes(agreement.length) // 3 + 1),
        "agree": listed,
        "mask": opened,
        "rollback": degree * (opened + PEER + 40),
        **dict.fromkeys(LISTS, listed),
        "result": width * TOTAL + listed,
    }
