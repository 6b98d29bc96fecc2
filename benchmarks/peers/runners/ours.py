"""Gossip SGD of this package. Without noise: nobody else in the table adds any."""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

import bruit as br
from benchmarks.peers.problem import network


def main(file: str) -> None:
    given = dict(np.load(file))
    hidden, rounds = int(given["hidden"]), int(given["rounds"])
    with tempfile.TemporaryDirectory() as folder:
        held = Path(folder) / "held.npz"
        np.savez(held, X=given["rows"], y=given["labels"], owner=given["owner"])
        how = {"split": "owner", "test": 0.0, "standardize": "none"}
        if hidden:
            task = br.tasks.Torch.load(str(held), f"mlp:{hidden}", dtype="float32", **how)
        else:
            task = br.tasks.Softmax.load(str(held), rows="none", **how)
    run = br.run(
        br.GossipSGD(float(given["rate"])),
        network(len(given["weights"])),
        task,
        steps=rounds,
        evaluate_every=0,
    )
    scores = np.stack([scored(model, given["test_rows"], hidden) for model in run.estimates])
    right = scores.argmax(axis=2) == given["test_labels"]
    print(json.dumps({"accuracy": float(right.mean())}))


def scored(model, rows, hidden):
    """What a flat model says of rows."""
    inputs = rows.shape[1]
    if not hidden:
        return np.column_stack([rows, np.ones(len(rows))]) @ model.reshape(-1, inputs + 1).T
    ends = np.cumsum([hidden * inputs, hidden, 10 * hidden])
    first, bias, second, offset = np.split(model, ends)
    entered = np.tanh(rows @ first.reshape(hidden, inputs).T + bias)
    return entered @ second.reshape(10, hidden).T + offset


if __name__ == "__main__":
    main(sys.argv[1])
