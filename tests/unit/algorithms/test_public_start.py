"""Runs that start from a public model: told where it comes from, in every engine, or refused with a
sentence."""

import json
import re

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import catalog
from bruit.peers.engine import Network
from bruit.testing import small_task

TASK, SOURCE = small_task(5), "the mean of a census of 1990"
START = br.PublicModel([1.0, 2.0, 3.0], SOURCE)
NOISE = br.Gaussian(clip=2.0, sigma=0.5)
TAKERS = {"fed-avg", "gossip-admm", "gossip-sgd", "personalized", "walk-sgd"}  # these at least


def run(algorithm, steps=4, **options):
    return br.run(algorithm, "complete:5", TASK, steps=steps, evaluate_every=0, **options)


@pytest.mark.parametrize("name", catalog())
def test_a_start_is_followed_or_refused(name):
    algorithm = catalog()[name]()
    try:
        run(algorithm, start=START)
    except br.ConfigError as error:
        assert name not in TAKERS
        assert re.search(r"leave (it|start) out", str(error))  # noqa: PT017
        return
    assert np.allclose(run(algorithm, 0, start=START).estimates, [1.0, 2.0, 3.0])
    bulk, events = (
        run(algorithm, start=START, engine=engine) for engine in (br.Bulk(), br.Events())
    )
    assert np.allclose(bulk.estimates, events.estimates)
    assert not np.allclose(bulk.estimates, run(algorithm).estimates)
    zero = br.PublicModel(np.zeros(3), "nothing at all")
    assert np.array_equal(run(algorithm, start=zero).estimates, run(algorithm).estimates)


def test_one_round_by_hand():
    """x_i <- mean over j of (s_j - 0.5 (s_j - c_j)), with a row of its own for every peer."""
    rows = np.arange(15.0).reshape(5, 3)
    found = run(br.GossipSGD(rate=0.5), 1, start=br.PublicModel(rows, SOURCE)).estimates
    values = TASK.value(np.arange(5))
    assert np.allclose(found, (0.5 * rows + 0.5 * values).mean(axis=0))


@pytest.mark.slow
def test_real_sockets_start_there_too():
    network = run(br.GossipSGD(), 2, start=START, engine=Network(), privacy=NOISE)
    assert np.allclose(
        network.estimates, run(br.GossipSGD(), 2, start=START, privacy=NOISE).estimates
    )


def test_the_guarantee_and_the_folder_say_so(tmp_path):
    done = run(br.GossipSGD(), start=START, privacy=NOISE)
    for question in (done.epsilon(), done.epsilon(of=1, seen_by=0)):
        assert f"nothing in it comes from their records: {SOURCE}" in question.why()
    assert (
        done.epsilon() == run(br.GossipSGD(), privacy=NOISE).epsilon()
    )  # a public model costs nothing
    folder = done.save(tmp_path / "one.run")
    assert json.loads((folder / "manifest.json").read_text())["start"]["source"] == SOURCE
    again = br.load(folder)
    assert np.array_equal(again.start.rows, START.rows)
    assert again.public_digest() == done.public_digest()
    assert SOURCE in again.epsilon().why()
    assert br.replay(again, TASK).difference == 0.0
    assert br.load(run(br.GossipSGD()).save(tmp_path / "two.run")).start is None


def test_another_start_has_other_noise():
    """Shared noise would cancel between the two runs."""
    far = br.PublicModel([1.0, 2.0, 3.5], SOURCE)
    digests = {
        one.public_digest()
        for one in (
            run(br.GossipSGD()),
            run(br.GossipSGD(), start=START),
            run(br.GossipSGD(), start=far),
        )
    }
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ([1.0, 2.0, 3.0], r"say where the model to start from comes from: start=br.PublicModel"),
        (
            br.PublicModel([1.0, 2.0], SOURCE),
            r"one row of 3 numbers for all peers, or 5 such rows; found .* shape \(2,\)",
        ),
        (br.PublicModel(np.zeros((4, 3)), SOURCE), r"shape \(4, 3\)"),
        (br.PublicModel([1.0, np.nan, 3.0], SOURCE), "finite numbers"),
        (br.PublicModel(["a", "b", "c"], SOURCE), "made of numbers"),
    ],
)
def test_refusals(start, words):
    with pytest.raises(br.ConfigError, match=words):
        run(br.GossipSGD(), start=start)


def test_a_source_is_needed():
    with pytest.raises(br.ConfigError, match="says where it comes from"):
        br.PublicModel([1.0], " ")


def test_one_beginning_only():
    first = run(br.GossipSGD())
    with pytest.raises(br.ConfigError, match="goes on from the state of an earlier one"):
        run(br.GossipSGD(), after=first, start=START)
    with pytest.raises(br.ConfigError, match="goes on from the model of an earlier one"):
        run(br.GossipSGD(), after=first, carry="model", start=START)
    assert run(br.GossipSGD(), 0, after=first, carry="nothing", start=START).estimates[
        0
    ].tolist() == [1.0, 2.0, 3.0]


def test_large_models_are_refused_where_they_leave_the_grid():
    with pytest.raises(br.ConfigError, match="begins with a number of size 1e"):
        run(br.GossipSGD(), privacy=NOISE, start=br.PublicModel([1e9, 0.0, 0.0], SOURCE))


def test_tokens_and_repetitions_start_there_too():
    tokens = br.several_tokens(
        br.WalkSGD(), "complete:5", TASK, tokens=2, steps=3, start=START, evaluate_every=0
    )
    assert all(one.start is START for one in tokens)
    many = br.repeat(
        br.GossipSGD(), "complete:5", TASK, seeds=[1, 2], steps=0, start=START, engine=br.Bulk()
    )
    assert all(np.allclose(one.estimates, [1.0, 2.0, 3.0]) for one in many)


def test_rows_that_are_written_over_later_change_nothing(tmp_path):
    """The folder held whatever the array had become, and the replay differed."""
    rows = np.array([1.0, 2.0, 3.0])
    done = run(br.GossipSGD(), start=br.PublicModel(rows, SOURCE), privacy=NOISE)
    rows[:] = 9.0
    again = br.load(done.save(tmp_path / "one.run"))
    assert np.array_equal(again.start.rows, [1.0, 2.0, 3.0])
    assert br.replay(again, TASK).difference < 1e-9
