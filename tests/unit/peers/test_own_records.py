"""Own records: one file per participant, which answers for its owner only."""

import numpy as np
import pytest

from bruit.errors import ConfigError, LocalProtocolError
from bruit.peers.site.own_records import UNSCORED, read_share, write_share
from bruit.runs.build import build
from bruit.runs.file import parse
from bruit.tasks import Mean

LEARNING = """\
graph = "ring:4"
steps = 2

[task]
kind = "{kind}"
data = "{data}"
l2 = 0.1

[algorithm]
name = "gossip-sgd"
"""


def test_a_share_of_a_mean_is_one_row(tmp_path):
    task = Mean(np.arange(8.0).reshape(4, 2))
    write_share(task, "mean", 2, tmp_path / "records.npz")
    own, digest = read_share(tmp_path / "records.npz", 2, 4)
    assert own.peers == 4
    assert own.dim == 2
    assert len(digest) == 64
    assert np.array_equal(own.value(np.array([2])), [[4.0, 5.0]])


@pytest.mark.parametrize(
    ("kind", "data"), [("logistic", "breast_cancer"), ("ridge", "diabetes"), ("softmax", "iris")]
)
def test_a_share_answers_as_the_whole_task_does(tmp_path, kind, data):
    task = build(parse(LEARNING.format(kind=kind, data=data))).task
    x = np.random.default_rng(0).normal(size=(1, task.dim))
    for peer in (0, 3):
        write_share(task, kind, peer, tmp_path / "records.npz")
        own, _ = read_share(tmp_path / "records.npz", peer, 4, kind)
        me = np.array([peer])
        assert np.allclose(own.gradient(me, x), task.gradient(me, x), atol=1e-12)
        assert np.allclose(own.prox(me, x, 0.5), task.prox(me, x, 0.5), atol=1e-8)
        draws = np.random.default_rng(1).uniform(size=(1, 3))
        assert np.allclose(
            own.gradient_sampled(me, x, draws), task.gradient_sampled(me, x, draws), atol=1e-12
        )
        assert own.evaluate(x) == pytest.approx(task.evaluate(x))
        assert own.metric == task.metric
        with np.load(tmp_path / "records.npz") as stored:
            assert (
                len(stored["targets"]) == task.records.sizes[peer]
            )  # its own records and nobody else's


@pytest.mark.parametrize("kind", ["mean", "histogram"])
def test_nobody_scores_a_mean(tmp_path, kind):
    """The distance to one's own value was reported as the error of the mean: nobody knows the true
    one."""
    write_share(Mean(np.eye(3)[:, :2]), kind, 2, tmp_path / "records.npz")
    own, _ = read_share(tmp_path / "records.npz", 2, 3, kind)
    assert own.evaluate(np.ones((1, 2))) == {}
    assert own.references() == {}
    assert own.scored_on == "nothing: no peer knows the true answer"


@pytest.mark.parametrize(("test", "words"), [(0.2, "public records"), (0.0, UNSCORED)])
def test_a_score_says_what_it_was_measured_on(tmp_path, test, words):
    task = build(
        parse(
            LEARNING.format(kind="logistic", data="breast_cancer").replace(
                "data =", f'test = {test}\nstandardize = "none"\ndata ='
            )
        )
    ).task
    write_share(task, "logistic", 0, tmp_path / "records.npz")
    own, _ = read_share(tmp_path / "records.npz", 0, 4)
    assert own.scored_on == words
    assert ("accuracy" in own.evaluate(np.zeros((1, task.dim)))) == (
        test > 0
    )  # never a score on private rows


def test_what_is_computed_from_shown_points_reads_no_record(tmp_path):
    task = Mean(np.arange(6.0).reshape(3, 2))
    write_share(task, "mean", 1, tmp_path / "records.npz")
    own, _ = read_share(tmp_path / "records.npz", 1, 3)
    x, y = np.ones((1, 2)), np.array([[3.0, 5.0]])
    assert np.array_equal(own.pair_value(x, y, 0.0), task.pair_value(x, y, 0.0))
    assert np.array_equal(own.pair_gradient(x, x, y, 0.0), task.pair_gradient(x, x, y, 0.0))


def test_nobody_answers_for_another(tmp_path):
    write_share(Mean(np.ones((3, 2))), "mean", 1, tmp_path / "records.npz")
    own, _ = read_share(tmp_path / "records.npz", 1, 3)
    for ask in (
        lambda: own.value(np.array([0])),
        lambda: own.gradient(np.array([1, 2]), np.zeros((2, 2))),
        lambda: own.prox(np.array([2]), np.zeros((1, 2)), 1.0),
    ):
        with pytest.raises(LocalProtocolError, match="peer 1 was asked for the records of peer"):
            ask()


def test_missing_broken_and_foreign_files(tmp_path):
    path = tmp_path / "records.npz"
    with pytest.raises(
        ConfigError, match="are missing; every participant keeps its own file there"
    ):
        read_share(path, 0, 3)
    path.write_bytes(b"PK\x03\x04 no zip")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_share(path, 0, 3)
    path.write_bytes(b"")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_share(path, 0, 3)
    np.savez(path, values=np.ones((1, 2)))
    with pytest.raises(ConfigError, match="cannot be read: 'kind"):
        read_share(path, 0, 3)
    np.savez(path, kind=np.str_("mean"), values=np.array([[np.nan, 0.0]]))
    with pytest.raises(ConfigError, match="every peer needs finite numbers"):
        read_share(path, 0, 3)
    np.savez(path, kind=np.str_("poetry"), values=np.ones((1, 2)))
    with pytest.raises(ConfigError, match="known: boosted, histogram, logistic, mean, pairwise"):
        read_share(path, 0, 3)


def test_records_of_another_kind_than_was_agreed_on(tmp_path):
    write_share(Mean(np.ones((3, 2))), "mean", 1, tmp_path / "records.npz")
    with pytest.raises(ConfigError, match="for a task of kind 'mean', but 'ridge' was agreed on"):
        read_share(tmp_path / "records.npz", 1, 3, "ridge")


def test_records_hold_no_pickles(tmp_path):
    path = tmp_path / "records.npz"
    np.savez(path, kind=np.array({"a": 1}, dtype=object))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_share(path, 0, 3)
