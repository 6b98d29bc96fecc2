"""What do masks cost between real peers? Masked SGD among 16 hosts of one process, d = 1,000: CPU a
peer-round and bytes, with and without masks (silo:SILO-4).

Journals are synced to disk and lines are mutual TLS over loopback, as in the field. The first two
rows are rehearsals, whose masks are drawn from replayable dice. The last is the run itself, of 16
site files: dice of the operating system, keys agreed by X25519, masks of AES. The first rounds
(keys, handshakes) are taken off by a shorter run.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import bruit as br
from benchmarks.speed.masked_sums import PEERS, RECORDS, Unmasked, task
from benchmarks.timing import Answer, Goal, main
from bruit.algorithms.silos.masked_sgd import MaskedSGD
from bruit.peers.engine import Network
from bruit.peers.founding.founding import found
from bruit.peers.site.running import run_together
from bruit.peers.site.site import participant, read_site

DIM, FEW = 1_000, 2
TEXT = """\
graph = "complete:{peers}"
steps = {steps}
seed = 3

[task]
kind = "mean"
dim = {dim}

[algorithm]
name = "masked-sgd"

[privacy]
sigma = 2.0
"""


def lived(steps: int) -> tuple[float, int]:
    """CPU seconds of the peers of a network, all in this process, and bytes of payload they sent."""
    with tempfile.TemporaryDirectory(prefix="bruit-speed-") as folder:
        place = Path(folder) / "agreed.toml"
        place.write_text(TEXT.format(peers=PEERS, steps=steps, dim=DIM))
        sites = found(str(place), PEERS, None, Path(folder) / "network", timeout=120.0)
        chosen = [participant(read_site(site)) for site in sites]
        start = time.process_time()
        asyncio.run(run_together(chosen, [None] * len(chosen)))
        spent = time.process_time() - start
        for one in chosen:
            one.host.journal.close()
        if min(one.host.machine.count for one in chosen) < steps:
            raise SystemExit(f"not all peers made {steps} rounds")
        return spent, sum(one.host.speech.payload_bytes for one in chosen)


def measure(quick: bool = False) -> Answer:
    rounds = 6 if quick else 40
    answer = Answer(f"masks between real peers: {PEERS} peers, d = {DIM:,}", quick)
    data, noise = task(DIM), br.RecordSums(clip=0.5, sigma=5.0, divisor=float(RECORDS))

    def run(algorithm: MaskedSGD, steps: int) -> tuple[float, int]:
        """CPU seconds of this process, and bytes of payload that all peers sent."""
        start = time.process_time()
        done = br.run(
            algorithm,
            f"complete:{PEERS}",
            data,
            privacy=noise,
            steps=steps,
            engine=Network(timeout=120.0),
            evaluate_every=0,
        )
        return time.process_time() - start, done.trace.bytes

    cost, sent = {}, {}
    for name, algorithm in {
        "without masks": Unmasked(rate=1.0),
        "masked, one colluder": MaskedSGD(rate=1.0),
    }.items():
        few, many = run(algorithm, FEW), run(algorithm, FEW + rounds)
        cost[name] = (many[0] - few[0]) / PEERS / rounds * 1e3
        sent[name] = (many[1] - few[1]) / PEERS / rounds
        answer.add(name, cost[name], "CPU ms a peer-round")
        answer.add(f"{name}: sent", sent[name] / 1024, "KiB a peer-round")
    few, many = lived(FEW), lived(FEW + rounds)
    real, each = "masked, with keys of their own", PEERS * rounds
    cost[real], sent[real] = (many[0] - few[0]) / each * 1e3, (many[1] - few[1]) / each
    answer.add(real, cost[real], "CPU ms a peer-round")
    answer.add(f"{real}: sent", sent[real] / 1024, "KiB a peer-round")
    masked, bare = "masked, one colluder", "without masks"
    answer.goals += [
        Goal(f"CPU ms a peer-round, d = {DIM:,}", cost[masked], 8.0),
        Goal(f"the same, with keys of their own, d = {DIM:,}", cost[real], 8.0),
        Goal("bytes sent, times those without masks", sent[masked] / sent[bare], 1.05),
    ]
    return answer


if __name__ == "__main__":
    main(measure)
