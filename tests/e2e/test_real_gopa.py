"""Canceling noise between real processes: one is killed with -9 and comes back, or does not (perso:GOPA-1,
GOPA-7)."""

import numpy as np
import pytest

from bruit.peers.recalling import TIME
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.codec import decode
from bruit.privacy.toolbox.pld import compose_epsilon
from tests.e2e.assemblies import Assembly, models
from tests.e2e.watched_peer import all_inputs

pytestmark = pytest.mark.slow

TEXT = """\
graph = "ring:{peers}"
steps = {steps}
seed = 3

[task]
kind = "mean"
dim = 3

[algorithm]
name = "gopa"
ratio = 1000.0

[privacy]
clip = 9.0
sigma = 0.02
"""


@pytest.fixture
def assembly(tmp_path):
    made = []

    def make(text=TEXT, **terms):
        made.append(Assembly(tmp_path, text=text, **terms))
        return made[-1]

    yield make
    for one in made:
        one.end()


class Journals:
    """What the journals hold: keys, first words made and heard, releases, values."""

    def __init__(self, assembly, peers):
        self.keys, self.made, self.heard, self.values, self.lines = {}, {}, {}, {}, {}
        for me in peers:
            one = participant(read_site(assembly.sites[me]))
            host, self.values[me] = one.host, one.task.value(np.array([me]))[0]
            self.lines[me] = [line for line in host.journal.spent() if "gaussian" in line.event]
            inputs = all_inputs(host.journal)
            self.keys[me] = [known.payload for known in inputs if known.kind == "key"]
            for known in inputs:
                if known.kind not in ("words", "message"):
                    continue
                own = known.kind == "words"
                data = known.payload if own else known.payload[TIME.size :]
                sender = me if own else known.sender
                frame = decode(data, host._voice(sender), host.limits)
                if frame.kind != "pact" and frame.number == 0:
                    row = frame.envelope(host._due(frame.kind)).row.tobytes()
                    (self.made if own else self.heard).setdefault(sender, []).append(row)
            host.journal.close()

    def check(self):
        """One masked value each, the same to all, behind one charged release."""
        for me, made in self.made.items():
            assert len(made) == 1
            assert set(self.heard.get(me, made)) == set(made)
            assert len(self.lines[me]) == 1
            assert np.abs(np.frombuffer(made[0]) - self.values[me]).max() > 1.0


def test_killed_after_it_spoke_and_started_again(assembly):
    tried = assembly(peers=4, steps=60, timeout=60.0)
    tried.hold(10)
    tried.start()
    tried.wait_for_step(10, 2)
    tried.kill(2)
    tried.let_go()
    tried.start(2)
    codes, reports = tried.ended()
    assert codes == [0] * 4, [tried.log(peer) for peer in range(4)]
    assert tried.kills == 1
    told = Journals(tried, range(4))
    told.check()
    assert len(set(told.keys[2])) == 2  # every start has its own
    assert [report["releases"] for report in reports] == [1] * 4
    assert [report["noise_shared_with"] for report in reports] == [[1, 3], [0, 2], [1, 3], [0, 2]]
    due = np.mean(list(told.values.values()), axis=0)
    assert np.abs(np.array(models(tried, range(4))) - due).max() < 0.1


def test_killed_and_gone(assembly):
    """What it leaves behind is told, and what the others say they spent holds without it."""
    text = TEXT.replace("sigma = 0.02", "sigma = 20.0")
    tried = assembly(peers=4, steps=60, timeout=5.0, text=text)
    tried.hold(2)
    tried.start()
    tried.wait_for_step(2, 2)
    tried.kill(2)
    tried.let_go()
    codes, reports = tried.ended(0, 1, 3)
    assert codes == [0, 1, 1], [tried.log(peer) for peer in (0, 1, 3)]
    for report in reports[1:]:
        assert any("missed peer-2" in problem for problem in report["problems"])
        assert any("noise shared with peer-2" in problem for problem in report["problems"])
    one = participant(read_site(tried.sites[0]))
    alone = compose_epsilon([(one.privacy.event_of(3), 1)], 1e-6)
    one.host.journal.close()
    assert alone < 10
    assert [report["epsilon"] for report in reports] == pytest.approx([alone] * 3, rel=1e-6)
    Journals(tried, (0, 1, 3)).check()
