"""Villages: participants on loopback and the processes that run them. Conditions are polled, with a
deadline; where a test has to meet a peer at a step, the peer is held there."""

import signal
import subprocess
import sys
import time

import numpy as np

import bruit as br
from bruit.adversary.attacks.views import starting_values
from bruit.files import owner_only
from bruit.peers.founding.demo import read_json
from bruit.peers.founding.founding import found
from bruit.peers.journal.journal import recorded_spend
from bruit.peers.wire.address_book import AddressBook, run_id
from bruit.peers.wire.identity import Identity
from bruit.runs.build import build
from bruit.runs.file import parse
from tests.e2e.forked import Forked

SEED = 5
DEADLINE = 300.0  # seconds; only a failure takes that long
LEARN = """\
graph = "{graph}"
steps = {steps}
seed = 3

[task]
kind = "mean"
dim = {dim}

[algorithm]
name = "{algorithm}"

[privacy]
sigma = 0.5
"""


def until(condition, what):
    """Wait until that holds; `what` was waited for, in words or as a function that finds them."""
    deadline = time.monotonic() + DEADLINE
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {DEADLINE:g} s: {what() if callable(what) else what}")
        time.sleep(0.02)
    return answer


class Village:
    """Sites and the processes that run them, in a rehearsal unless `seed` is None. Those that are not
    `forked` are started as an operator starts them, and are never held."""

    changed = ("tests.e2e.held_peer",)
    _forked = True

    def __init__(
        self,
        folder,
        graph,
        peers,
        steps,
        algorithm="gossip-sgd",
        timeout=60.0,
        lines="",
        seed=SEED,
        dim=2,
        forked=True,
    ):
        text = LEARN.format(graph=graph, steps=steps, algorithm=algorithm, dim=dim)
        self.settle(folder, text, peers, timeout, lines, seed)
        self._forked = forked

    def settle(self, folder, text, peers, timeout, lines="", seed=None):
        """A site for everybody."""
        self.text, self.seed, self.processes = text, seed, {}
        (folder / "x.toml").write_text(text)
        self.sites = found(
            str(folder / "x.toml"), peers, None, folder / "network", timeout=timeout, pace=0.05
        )
        for site in self.sites:
            site.write_text(site.read_text() + lines)

    def home(self, peer):
        return self.sites[peer].parent

    def hold(self, step, *peers):
        """From now on these, or all, stand still at that step."""
        for peer in peers or range(len(self.sites)):
            (self.home(peer) / "hold.txt").write_text(str(step))

    def let_go(self):
        """Nobody stands still any more."""
        for peer in range(len(self.sites)):
            (self.home(peer) / "hold.txt").unlink(missing_ok=True)

    def start(self, *peers):
        """A process for each; what its last one had told of itself is forgotten."""
        rehearse = [] if self.seed is None else ["--rehearse", str(self.seed)]
        for peer in peers or range(len(self.sites)):
            (self.home(peer) / "state" / "status.json").unlink(missing_ok=True)
            words, log = (
                ["peer", "run", str(self.sites[peer]), "--quiet", *rehearse],
                self._log(peer),
            )
            log.write_bytes(b"")
            if self._forked:
                self.processes[peer] = Forked(*words, log=log, changed=self.changed)
                continue
            with open(log, "wb", opener=owner_only) as file:
                self.processes[peer] = subprocess.Popen(
                    [sys.executable, "-m", "bruit", *words], stdout=file, stderr=subprocess.STDOUT
                )

    def _log(self, peer):
        return self.home(peer) / "log.txt"

    def status(self, peer):
        return read_json(self.home(peer) / "state" / "status.json")

    def wait_for(self, peer, condition, what):
        """Until the status of a peer that runs is such."""

        def seen():
            gone, now = self.processes[peer].poll() is not None, self.status(peer)
            if now and condition(now):
                return True
            assert not gone, f"peer {peer} ended before {what}: {self.log(peer)}"
            return False

        until(seen, lambda: f"{what} of peer {peer}: {self.log(peer)}")

    def wait_for_step(self, step, *peers):
        for peer in peers:
            self.wait_for(peer, lambda now: now["step"] >= step, f"step {step}")

    def log(self, peer):
        return self._log(peer).read_text(errors="replace")[-2000:]

    def signal(self, peer, number):
        self.processes[peer].send_signal(number)
        return self.processes[peer]

    def kill(self, peer):
        assert self.killed(peer), f"peer {peer} had ended: {self.log(peer)}"

    def killed(self, peer):
        """Kill it; whether it still ran."""
        return self.signal(peer, signal.SIGKILL).wait(DEADLINE) == -9

    def code(self, peer):
        """The exit code, when it has ended."""
        return self.processes[peer].wait(DEADLINE)

    def finish(self, *peers, codes=(0,)):
        """Wait for these; their reports and models. Code 1: somebody was missed who was not planned
        to be."""
        chosen = peers or range(len(self.sites))
        for peer in chosen:
            assert self.code(peer) in codes, self.log(peer)
        reports = [read_json(self.home(peer) / "state" / "report.json") for peer in chosen]
        models = [np.load(self.home(peer) / "state" / "model.npz")["model"] for peer in chosen]
        return reports, np.concatenate(models)

    def spends(self, peer):
        return recorded_spend(self.home(peer) / "state" / "journal.db")

    def releases(self, peer):
        """The lines of data; messages have lines of their own, for their dithers."""
        return [line for line in self.spends(peer) if '"gaussian"' in line.event]

    def bulk(self):
        """The same rehearsal in the simulator."""
        built = build(parse(self.text))
        return br.run(
            built.algorithm,
            built.graph,
            built.task,
            privacy=built.privacy,
            steps=built.steps,
            seed=self.seed,
            evaluate_every=0,
            rehearsal=True,
        )

    def end(self):
        """Nobody is left behind, whatever the test came to."""
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait(DEADLINE)


def attacker(busy, peer, of):
    """A listed peer's identity, whom it attacks, and the run's name."""
    home = busy.home(peer)
    book = AddressBook.read(home / "book.toml")
    return Identity.load(home), book.entry(of), run_id(book, (home / "experiment.toml").read_text())


def village_values(busy):
    """What everybody released at the start."""
    return starting_values(busy.bulk(), build(parse(busy.text)).task)
