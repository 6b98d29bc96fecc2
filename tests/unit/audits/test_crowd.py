"""A crowd is many runs at once: each copy is the run that `bruit.run` would make with the same draws."""

import numpy as np
import pytest

from bruit.algorithms.averaging import Averaging
from bruit.algorithms.chebyshev import Chebyshev
from bruit.algorithms.federated_admm import FederatedADMM
from bruit.algorithms.gossip_sgd import GossipSGD
from bruit.algorithms.home import TaskDoor
from bruit.algorithms.pair_averaging import PairAveraging
from bruit.algorithms.renoised import Renoised
from bruit.algorithms.schedules import Wakes
from bruit.algorithms.walk_admm import WalkADMM
from bruit.algorithms.walk_sgd import WalkSGD
from bruit.audits.crowd import Crowd
from bruit.audits.scores import is_affine, learned_score, likelihood_score
from bruit.audits.trials import Neighbors, Views, paired_views
from bruit.engines.forms import view_forms
from bruit.errors import ConfigError
from bruit.experiment import run
from bruit.graphs import graph
from bruit.mechanisms import Gaussian
from bruit.privacy.ledger import Ledger
from bruit.privacy.network.rows import user_loss
from bruit.randomness import Replay

NOISE = Gaussian(clip=1.0, sigma=0.5)
ALGORITHMS = [
    (Averaging(), "grid:2x3", 4), (Averaging(), "butterfly:8", 3), (Chebyshev(), "ring:5", 4),
    (Renoised(tau=0.4), "ring:5", 3), (GossipSGD(mixing=2), "ring:5", 5), (PairAveraging(), "ring:5", 4),
    (WalkSGD(cap=2), "complete:4", 12), (WalkADMM(l2=0.1), "complete:4", 9), (FederatedADMM(), "star:4", 6),
    (FederatedADMM(participants=2, l1=0.01), "star:4", 6),
]  # fmt: skip
NAMES = [f"{algorithm.name()}-{where}" for algorithm, where, _ in ALGORITHMS]


@pytest.mark.parametrize(("algorithm", "where", "steps"), ALGORITHMS, ids=NAMES)
@pytest.mark.parametrize("observers", [(0,), (0, 2)])
def test_first_copy_is_the_run_itself(algorithm, where, steps, observers):
    """Lanes of copy 0 are the peers, so its draws and messages are those of the plain engine."""
    space = graph(where)
    data = Neighbors.opposite(space.n, 1, 1.0, dim=2)
    plain = run(algorithm, space, data, privacy=NOISE, steps=steps, seed=4, watch=observers, evaluate_every=0)
    door = TaskDoor(data, NOISE, plain.dice(data), Ledger(6 * space.n), public=Replay(4))
    crowd = Crowd(algorithm, space, door, steps, observers, 6, 0, plain.trace)
    seen = crowd.views()[0]
    heard = [message.row[0] for message in plain.view(set(observers)).foreign]
    assert len(seen) >= len(heard) > 0
    np.testing.assert_allclose(seen[len(seen) - len(heard) :], np.stack(heard), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("algorithm", "where", "steps"), ALGORITHMS[:6], ids=NAMES[:6])
def test_views_are_the_linear_forms(algorithm, where, steps):
    """Without noise to speak of, Y_right - Y_left is A (s_R - s_L), own rows included (gossip:LG-1)."""
    space, observers = graph(where), (0, 2)
    data = Neighbors.opposite(space.n, 1, 1.0)
    quiet = Gaussian(clip=1.0, sigma=1e-9)
    trace = run(algorithm, space, data, privacy=quiet, steps=steps, seed=4, evaluate_every=0).trace
    forms, _ = view_forms(algorithm, space, steps, observers, 4, trace)
    views = next(paired_views(algorithm, space, quiet, data, observers, steps, 3, 4, trace))
    shift = (views.right - views.left)[0]
    assert len(shift) == len(forms.A)
    np.testing.assert_allclose(shift, 2.0 * forms.A[:, forms.owner == 1].sum(axis=1), atol=1e-6)


def test_copies_are_independent_and_sides_alternate():
    space, noise = graph("path:3"), Gaussian(clip=1.0, sigma=0.5, arithmetic="ideal")
    data = Neighbors.opposite(3, 2, 1.0)
    views = list(paired_views(Averaging(), space, noise, data, (1,), 1, 5000, 1))
    left, right = (np.concatenate(sides) for sides in zip(*views, strict=True))
    assert left.shape == (5000, 3)  # own value, and one message of each neighbor
    assert left[:, 2].mean() == pytest.approx(-1.0, abs=0.05)
    assert right[:, 2].mean() == pytest.approx(1.0, abs=0.05)
    assert np.abs(np.corrcoef(np.concatenate((left, right), axis=1).T) - np.eye(6)).max() < 0.08  # 5.6 sd
    assert len(np.unique(left)) == left.size


def test_chunks_change_nothing(monkeypatch):
    space, data = graph("ring:5"), Neighbors.opposite(5, 2, 1.0)
    whole = list(paired_views(Renoised(), space, NOISE, data, (0,), 3, 9, 1))
    monkeypatch.setattr("bruit.audits.trials.NUMBERS", 60)
    parts = list(paired_views(Renoised(), space, NOISE, data, (0,), 3, 9, 1))
    assert len(parts) == 3
    assert len(whole) == 1
    np.testing.assert_array_equal(np.concatenate([part.left for part in parts]), whole[0].left)
    np.testing.assert_array_equal(np.concatenate([part.right for part in parts]), whole[0].right)


def test_neighbors_are_linear_losses():
    data, ids = Neighbors.opposite(3, 1, 2.0, dim=2), np.array([1, 4, 7, 10])
    np.testing.assert_array_equal(data.value(ids)[:, 0], [-2, 2, -2, 2])
    x = np.ones((4, 2))
    np.testing.assert_array_equal(data.gradient(ids, x), data.value(ids))
    np.testing.assert_array_equal(data.prox(ids, x, 0.5), x - 0.5 * data.value(ids))
    assert data.constants().lipschitz == 2.0


def test_likelihood_score_separates_as_the_theorem_says():
    """mean gap / sd of <w, Y> is sqrt(loss) * 2 clip / sigma (gossip:LG-1)."""
    space, data = graph("torus:4x4"), Neighbors.opposite(16, 5, 1.0)
    score = likelihood_score(Averaging(), space, 2, (0,), 5, np.ones(1))
    views = next(paired_views(Averaging(), space, Gaussian(clip=1.0, sigma=2.0), data, (0,), 2, 10_000))
    left, right = score.of(views)
    forms, _ = view_forms(Averaging(), space, 2, (0,))
    loss = user_loss(forms.A, forms.B, np.flatnonzero(forms.owner == 5))
    assert loss == pytest.approx(2 / 3)
    measured = (right.mean() - left.mean()) / np.sqrt((left.var() + right.var()) / 2)
    assert measured == pytest.approx(np.sqrt(loss), rel=0.08)  # 4.5 sd


def test_learned_score_finds_noise_that_cancels():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2, 400, 1))
    sides = [np.concatenate((x + noise[k], noise[k], rng.normal(size=(400, 3))), axis=1) for k, x in ((0, -1), (1, 1))]
    score = learned_score(Views(sides[0][:200], sides[1][:200]))
    left, right = score.of(Views(sides[0][200:], sides[1][200:]))
    assert right.min() > left.max()


def test_affine_views_are_recognized():
    space = graph("complete:4")
    for algorithm, affine in ((WalkADMM(), True), (WalkADMM(l1=0.3), False), (WalkADMM(bound=0.1), False)):
        trace = run(algorithm, space, Neighbors.opposite(4, 1, 1.0), privacy=NOISE, steps=12, evaluate_every=0).trace
        assert is_affine(algorithm, space, 12, (0,), trace) is affine


@pytest.mark.parametrize(("call", "words"), [
    (lambda: Neighbors.opposite(3, 7, 1.0), "there is no peer 7 to audit: the peers are 0..2"),
    (lambda: Neighbors(np.zeros((2, 1)), np.zeros((3, 1))), "one shape"),
    (lambda: next(paired_views(Averaging(), graph("ring:5"), NOISE, Neighbors.opposite(5, 1, 1.0), (0,), 1, 2**24)),
     "at most 1677720"),
    (lambda: Crowd(PairAveraging(), graph("ring:5"), TaskDoor(Neighbors.opposite(5, 1, 1.0), NOISE, Replay(0),
                                                              Ledger(5)), 1, (0,), 1).views(), "follows pairs"),
])  # fmt: skip
def test_bad_input(call, words):
    with pytest.raises(ConfigError, match=words):
        call()


def test_wakes_are_refused_by_name():
    class Waking(Averaging):
        schedule = Wakes()

    door = TaskDoor(Neighbors.opposite(5, 1, 1.0), NOISE, Replay(0), Ledger(5))
    with pytest.raises(ConfigError, match="follows wakes"):
        Crowd(Waking(), graph("ring:5"), door, 1, (0,), 1).views()
