"""Assemblies: real peers on ballots, and what their journals tell of all that was ever said.

Journals are read after the end: their inputs hold every message that came, the keys of all starts,
and the words that were masked.
"""

from collections import defaultdict

import numpy as np

from bruit.algorithms.schedules.ballots.rows import PromiseRow
from bruit.peers.founding.demo import read_json
from bruit.peers.journal.journal import Journal
from bruit.peers.recalling import TIME
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.codec import decode
from tests.e2e.villages import Village
from tests.e2e.watched_peer import all_inputs

TEXT = """\
graph = "complete:{peers}"
steps = {steps}
seed = 3

[task]
kind = "mean"
dim = 3

[algorithm]
name = "masked-sgd"
dropouts = {dropouts}
spare = {spare}
colluders = 1

[privacy]
sigma = 2.0
"""


class Assembly(Village):
    """The sites of some peers, and the processes that run them with dice and keys of their own."""

    changed = (*Village.changed, "tests.e2e.watched_peer")

    def __init__(self, folder, peers=4, steps=20, dropouts=1, spare=10, timeout=4.0, text=TEXT):
        text = text.format(peers=peers, steps=steps, dropouts=dropouts, spare=spare)
        self.settle(folder, text, peers, timeout)
        self.peers, self.kills = peers, 0

    def furthest(self):
        """How many rounds are over for whoever has come furthest."""
        return max(self.status(peer).get("step", 0) for peer in range(self.peers))

    def kill(self, peer):
        self.kills += self.killed(peer)

    def ended(self, *peers):
        """Exit codes and reports."""
        chosen = peers or range(self.peers)
        codes = [self.code(peer) for peer in chosen]
        return codes, [read_json(self.home(peer) / "state" / "report.json") for peer in chosen]


class Told:
    """What the journals of some peers hold."""

    def __init__(self, assembly, peers):
        self.keys = defaultdict(list)  # by peer: the public keys of its starts
        self.made = defaultdict(dict)  # by peer and ballot: rows of words in its own journal
        self.heard = defaultdict(set)  # by peer and ballot: rows of words that others heard of it
        self.promised = defaultdict(set)  # by peer: keys that it showed to others
        self.lines = {}
        for peer in peers:
            self._read(participant(read_site(assembly.sites[peer])).host, peer)

    def _read(self, host, me):
        journal: Journal = host.journal
        self.lines[me] = [line for line in journal.spent() if '"masked"' in line.event]
        for one in all_inputs(journal):
            if one.kind == "key":
                self.keys[me].append(one.payload[TIME.size :])
            elif one.kind in ("words", "message"):
                own = one.kind == "words"
                sender = me if own else one.sender
                data = one.payload if own else one.payload[TIME.size :]
                frame = decode(data, host._voice(sender), host.limits)
                row = frame.envelope(host._due(frame.kind)).row
                if isinstance(row, PromiseRow):
                    self.promised[sender].add(row.key.tobytes())
                if frame.kind == "speak":
                    said = (row.words.tobytes(), row.binding.tobytes())
                    kept = self.made[me] if own else self.heard
                    if own:
                        assert frame.number not in kept
                        kept[frame.number] = said
                    else:
                        self.heard[sender, frame.number].add(said)
        journal.close()

    def check(self, reports, route="complete"):
        """Nothing was said twice in two ways, no mask has two messages, all is charged. On a route
        others hear sums of words."""
        bindings = []
        for report in reports:
            me = report["peer"]
            assert len(set(self.keys[me])) == len(self.keys[me])  # every start has its own
            assert self.promised[me] <= set(self.keys[me])
            assert len(self.made[me]) == report["charges"] == len(self.lines[me])
            assert report["charges"] <= report["charges_planned"]
            clocks = [line.clock for line in self.lines[me]]
            assert sorted(clocks) == sorted(self.made[me])  # a line for each ballot with words
            bound = [binding for _, binding in self.made[me].values()]
            assert len(set(bound)) == len(bound)  # one attempt, one H: no mask in two messages
            bindings += bound
        for (sender, ballot), said in self.heard.items():
            if sender in self.made and route == "complete":
                assert said == {self.made[sender][ballot]}
        assert len({report["chain"] for report in reports}) == 1
        assert len({str(report["rounds"]) for report in reports}) == 1


def models(assembly, peers):
    return [
        np.load(assembly.home(peer) / "state" / "model.npz")["model"].tolist() for peer in peers
    ]
