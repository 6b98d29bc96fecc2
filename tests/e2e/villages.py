"""Villages: participants on loopback and the processes that run them. Conditions are polled, with a deadline."""

import signal
import time

import numpy as np

import bruit as br
from bruit.attacks.views import starting_values
from bruit.build import build
from bruit.config import parse
from bruit.network.address_book import AddressBook, run_id
from bruit.network.identity import Identity
from bruit.network.journal import recorded_spend
from bruit.sites.demo import read_json, start
from bruit.sites.founding import found

SEED, DEADLINE = 5, 120.0
LEARN = """\
graph = "{graph}"
steps = {steps}
seed = 3

[task]
kind = "mean"
dim = 2

[algorithm]
name = "{algorithm}"

[privacy]
sigma = 0.5
"""


def until(condition, what):
    deadline = time.monotonic() + DEADLINE
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"not within {DEADLINE:g} s: {what}"
        time.sleep(0.02)
    return answer


class Village:
    """Sites and the processes that run them."""

    def __init__(self, folder, graph, peers, steps, algorithm="gossip-sgd", timeout=60.0, lines=""):
        self.text = LEARN.format(graph=graph, steps=steps, algorithm=algorithm)
        (folder / "x.toml").write_text(self.text)
        self.sites = found(str(folder / "x.toml"), peers, None, folder / "network", timeout=timeout, pace=0.05)
        for site in self.sites:
            site.write_text(site.read_text() + lines)
        self.processes = {}

    def start(self, *peers):
        for peer in peers or range(len(self.sites)):
            (self.processes[peer],) = start([self.sites[peer]], rehearse=SEED)

    def status(self, peer):
        return read_json(self.sites[peer].parent / "state" / "status.json")

    def wait_for_step(self, peer, step):
        until(lambda: self.status(peer).get("step", 0) >= step, f"step {step} of peer {peer}: {self.log(peer)}")

    def log(self, peer):
        return (self.sites[peer].parent / "log.txt").read_text(errors="replace")[-2000:]

    def signal(self, peer, number):
        self.processes[peer].send_signal(number)
        return self.processes[peer]

    def kill(self, peer):
        assert self.signal(peer, signal.SIGKILL).wait(DEADLINE) == -9

    def finish(self, *peers, codes=(0,)):
        """Wait for these; their reports and models. Code 1: somebody was missed who was not planned to be."""
        chosen = peers or range(len(self.sites))
        for peer in chosen:
            until(lambda peer=peer: self.processes[peer].poll() is not None, f"the end of peer {peer}")
            assert self.processes[peer].returncode in codes, self.log(peer)
        reports = [read_json(self.sites[peer].parent / "state" / "report.json") for peer in chosen]
        models = [np.load(self.sites[peer].parent / "state" / "model.npz")["model"] for peer in chosen]
        return reports, np.concatenate(models)

    def spends(self, peer):
        return recorded_spend(self.sites[peer].parent / "state" / "journal.db")

    def releases(self, peer):
        """The lines of data; messages have lines of their own, for their dithers."""
        return [line for line in self.spends(peer) if '"gaussian"' in line.event]

    def bulk(self):
        """The same rehearsal in the simulator."""
        built = build(parse(self.text))
        return br.run(built.algorithm, built.graph, built.task, privacy=built.privacy, steps=built.steps, seed=SEED,
                      evaluate_every=0, rehearsal=True)  # fmt: skip


def attacker(busy, peer, of):
    """A listed peer's identity, whom it attacks, and the run's name."""
    home = busy.sites[peer].parent
    book = AddressBook.read(home / "book.toml")
    return Identity.load(home), book.entry(of), run_id(book, (home / "experiment.toml").read_text())


def village_values(busy):
    """What everybody released at the start."""
    return starting_values(busy.bulk(), build(parse(busy.text)).task)
