"""Gossip SGD of this package among real processes, one a peer: `bruit network demo`.

Besides the rounds this pays for keys, mutual TLS, journals, accounts, signed reports, and for what
the demonstration learns in one place, to compare.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.peers.problem import DEGREE, SEED
from benchmarks.peers.runners.ours import scored

AGREED = """\
graph = "{graph}"
steps = {steps}

[task]
{kind}
data = "{data}"
split = "owner"
test = 0.0
standardize = "none"

[algorithm]
name = "gossip-sgd"
rate = {rate}
"""


def main(file: str) -> None:
    given = dict(np.load(file))
    peers = len(given["weights"])
    graph = f"regular:{peers},degree={DEGREE},seed={SEED}"
    with tempfile.TemporaryDirectory() as folder:
        held, agreed, home = (Path(folder) / name for name in ("held.npz", "agreed.toml", "net"))
        np.savez(held, X=given["rows"], y=given["labels"], owner=given["owner"])
        kind = 'kind = "softmax"\nrows = "none"'
        how = {"graph": graph, "kind": kind, "data": held}
        agreed.write_text(AGREED.format(steps=given["rounds"], rate=given["rate"], **how))
        command = [sys.executable, "-m", "bruit", "network", "demo", "--peers", str(peers)]
        command += ["--experiment", str(agreed), "--graph", graph, "--out", str(home), "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        models = [np.load(home / f"peer-{k}/state/model.npz")["model"] for k in range(peers)]
    scores = np.stack([scored(one.ravel(), given["test_rows"], 0) for one in models])
    right = scores.argmax(axis=2) == given["test_labels"]
    print(json.dumps({"accuracy": float(right.mean())}))


if __name__ == "__main__":
    main(sys.argv[1])
