"""MNIST and Fashion-MNIST as the published 60,000 pictures to learn from and 10,000 to judge by,
dealt to peers at random."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bruit.arrays import Array
from bruit.tasks.data.catalog import folders
from bruit.tasks.records import Records, Sample

FILES = {"mnist": "mnist/mnist.npz", "fashion": "fashion_mnist/fashion_mnist.npz"}
CLASSES = 10


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """Pictures (r, 28, 28) of bytes and what they show, to learn from and to judge by."""

    train: Array
    labels: Array
    test: Array
    answers: Array

    def first(self, count: int) -> Pictures:
        """A few of each."""
        return Pictures(
            train=self.train[:count],
            labels=self.labels[:count],
            test=self.test[:count],
            answers=self.answers[:count],
        )


def pictures(name: str) -> Pictures:
    """One of the two sets; ends the program with a sentence where it is not there."""
    file = next((path for one in folders() if (path := one / FILES[name]).is_file()), None)
    if file is None:
        raise SystemExit(f"skipped: no {FILES[name]}; set BRUIT_DATA to the folder that holds it")
    with np.load(file) as found:
        return Pictures(
            train=found["x_train"],
            labels=found["y_train"].astype(np.float64),
            test=found["x_test"],
            answers=found["y_test"].astype(np.float64),
        )


def dealt(rows: Array, labels: Array, test: Array, answers: Array, peers: int) -> Records:
    """The rows to so many peers at random, always in the same way; the others judge."""
    owners = np.random.default_rng(16).permutation(len(rows)) % peers
    records = Records.of(rows, labels, owners, classes=CLASSES)
    return replace(records, held_out=Sample(test, answers))
