"""What attackers said themselves, worked out again from what they heard.

A view holds what was received. What a peer sent is a function of its own records, its own dice and
what it received: the algorithm is run once more, as a batch of one, on the attacker's own side
only. No other peer's data is touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bruit.adversary.attacks.door_again import door_again
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Inbox, Links, join
from bruit.algorithms.task_door import TaskDoor
from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.tasks.task import Task
from bruit.trace import View

if TYPE_CHECKING:
    from bruit.runs.result import Run


def own_messages(run: Run, task: Task, view: View, graphs: tuple[Graph, ...]) -> Array:
    """What each observer of the view sent in every exchange, in increasing order of observers."""
    heard = {
        (message.clock, message.receiver, message.sender): message.row for message in view.messages
    }
    messages = [
        _messages_of(run, task, observer, graphs, heard) for observer in sorted(view.observers)
    ]
    return np.stack(messages, axis=1)  # (exchanges, attackers, d)


def _messages_of(
    run: Run, task: Task, me: int, graphs: tuple[Graph, ...], heard: dict[tuple[int, int, int], Any]
) -> Array:
    algorithm, public = run.algorithm, run.public
    door = door_again(TaskDoor, run, task)
    ids, messages = np.array([me]), []

    def home(t: int, links: Links) -> Home:
        last = t == run.steps
        count = np.array([t])
        return Home(
            door,
            ids,
            count,
            count,
            np.array([last]),
            links.edges.none() if last else links.edges,
            public,
        )

    links = Links.of_peer(graphs[0], me)
    state = algorithm.start(home(0, links))
    for t, graph in enumerate(graphs):
        own = algorithm.emit(algorithm.blank(state), links.edges).rows
        messages.append(np.asarray(own)[0])
        around = np.sort(np.append(links.senders, me)).tolist()
        missing = [w for w in around if w != me and (t, me, w) not in heard]
        if missing:
            raise ConfigError(
                f"the view holds no message of peer {missing[0]} to attacker {me} in exchange {t}; "
                "attack the run this view was taken from, with all its steps"
            )
        rows = join([own if w == me else heard[t, me, w] for w in around])
        inbox = Inbox(links, rows, False, own)
        links = Links.of_peer(graphs[t + 1] if t + 1 < len(graphs) else graph, me)
        state = algorithm.absorb(state, inbox, home(t + 1, links))
    if not np.allclose(algorithm.estimate(state)[0], run.estimates[me], rtol=1e-6, atol=1e-9):
        raise ConfigError(
            "the task given is not the one of this run: their data or preparation differ"
        )
    return np.stack(messages)  # (exchanges, d)
