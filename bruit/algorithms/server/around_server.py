"""What algorithms around a server share: who is a member, who is drawn, what the server said, who
speaks to whom.

The server is one of the peers and speaks in rounds 1, 3, ...; in rounds 2, 4, ... the members
answer it. The others have nothing to say to each other.
"""

from typing import NamedTuple

import numpy as np

from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.turns import Turns
from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence


class Public(NamedTuple):
    members: Ints  # the server and its neighbors, in order
    iterations: int = 0  # models that the server makes


def public_of(
    name: str, graph: Graph | GraphSequence, server: int, participants: int | None
) -> Public:
    """The server and its neighbors in a fixed graph, as many as are to be drawn or more."""
    if not isinstance(graph, Graph):
        raise ConfigError(f"{name} needs one fixed graph around its server, such as star:9")
    if not 0 <= server < graph.n:
        raise ConfigError(f"the server is peer {server}, but the graph has peers 0..{graph.n - 1}")
    members = np.union1d(graph.neighbors(server), [server]).astype(np.int64)
    if participants is not None and participants > len(members):
        found = f"the server {server} of {graph.name} and its neighbors are {len(members)} peers"
        raise ConfigError(f"{participants} participants cannot be drawn: {found}")
    return Public(members)


def turns_of(participants: int | None, members: int, steps: int) -> Turns:
    """Members answer once an iteration of two rounds, but for one that nobody hears; all of them,
    or those drawn."""
    if participants is None or participants >= members:
        return Turns()
    return Turns(draws=(steps // 2, participants / members, members))


def check_whole(home: Home) -> None:
    """Refuses to go on from the middle of an iteration: the answers to the server's last word were
    never made."""
    if home.before % 2:
        raise ConfigError(
            f"the earlier phase stopped after {home.before} rounds, between the server's word and"
            " the answers to it; an iteration takes two rounds: stop after an even number of them"
        )


def speaking(home: Home) -> Bools:
    """Whether the server spoke in this round."""
    return np.asarray(home.clock % 2 == 1)


def takes_part(home: Home, participants: int | None) -> Bools:
    """Whether each lane is among the participants of this iteration: the members with the least
    draws are."""
    members = home.public.members
    if participants is None:
        return np.isin(home.ids, members)
    luck = home.common(len(members))[
        0
    ]  # in rounds, all lanes of a batch stand at the same position
    return np.isin(home.ids, members[np.argpartition(luck, participants - 1)[:participants]])


def server_model(model: Array, inbox: Inbox, home: Home, server: int) -> tuple[Array, Bools]:
    """The server's model at each lane, and whether the lane has it from this round; messages may
    hold more numbers."""
    lanes = np.repeat(np.arange(len(home.ids)), np.diff(inbox.links.start))
    words = np.flatnonzero(inbox.senders == server)
    found, known = model.copy(), home.ids == server
    found[lanes[words]] = inbox.copies()[words, : model.shape[1]]
    known[lanes[words]] = True
    return found, known


def spoken(from_server: Array, to_server: Array, edges: Edges, server: int) -> Message:
    """One row per message copy: the server's words to all, the members' to the server, zeros
    between others."""
    speakers = np.repeat(np.arange(len(edges.ids)), np.diff(edges.start))
    out, back = edges.ids[speakers] == server, edges.peers == server
    rows = np.where(out[:, None], from_server[speakers], to_server[speakers])
    rows[~(out | back)] = 0.0
    return Message(rows, each=True)
