"""Real pictures out of decentralized gradient descent: CIFAR-10 and MNIST as in gossip:EXP-8 to
EXP-11, with faces too.

The data folder is ../shared/data or $BRUIT_DATA; without it these tests are skipped, and the
synthetic and bundled images of test_descent_reconstruction.py stand in.
"""

import numpy as np
import pytest

import bruit as br
from bruit.adversary.attacks.gradients import from_run
from bruit.adversary.attacks.inversion import (
    SUCCESS,
    SYNTHETIC_SUCCESS,
    invert,
    psnr,
    score,
    true_records,
)
from bruit.adversary.attacks.picture import save_grid
from bruit.errors import ConfigError
from bruit.graphs import florentine
from bruit.tasks import Records, Softmax
from papers.catalog import images
from papers.catalog.images import FULL_RANK, RATES

pytestmark = pytest.mark.slow


def arrays(file):
    """The arrays of a set of the data folder."""
    try:
        return images.arrays(file)
    except ConfigError as error:
        pytest.skip(str(error))


def cifar(peers, seed):
    arrays("cifar10_small/cifar10_small.npz")
    return images.cifar(peers, seed)


def families(rate):
    arrays("cifar10_small/cifar10_small.npz")
    return images.among_families(rate)


@pytest.mark.parametrize("seed", [0, 1])
def test_cifar_on_a_line_of_31(seed):
    """gossip:EXP-8: at rate 1e-5 at least 28 of 30 above 20 dB (the source: informative up to
    distance 28), at 1e-3 at most 10; here all 30, and 4 to 7."""
    cifar(31, seed)
    reached = {rate: images.line(rate, seed) for rate in (1e-5, 1e-3)}
    assert (reached[1e-5] > SYNTHETIC_SUCCESS).sum() >= 28
    assert reached[1e-5][27] > SYNTHETIC_SUCCESS  # the peer at distance 28
    assert (reached[1e-3] > SYNTHETIC_SUCCESS).sum() <= 10


def test_cifar_on_the_florentine_families():
    """gossip:EXP-9: the ten attackers of full rank reach 13 of 14 at 20 dB; most of the others'
    victims are beyond."""
    labels = florentine(kind="laplacian", plus=0).labels
    counts = dict(zip(labels, (families(1e-5) > SYNTHETIC_SUCCESS).sum(axis=1), strict=True))
    assert all(counts[name] >= 13 for name in FULL_RANK)
    assert all(counts[name] < 13 for name in labels if name not in FULL_RANK)
    assert (
        families(1e-5) > SUCCESS
    ).mean() > 0.9  # the source: most reconstruct most others at 10 dB


def test_learning_rates_on_cifar():
    """gossip:EXP-10: the successes of all 15 attackers decrease from 1e-5 to 1e-2, at 20 dB and at
    the source's 10 dB; the reference for synthetic images is 177, 156, 69, 40 of 210."""
    for threshold in (SYNTHETIC_SUCCESS, SUCCESS):
        totals = [int((families(rate) > threshold).sum()) for rate in RATES]
        assert totals == sorted(set(totals), reverse=True)
    totals = [int((families(rate) > SYNTHETIC_SUCCESS).sum()) for rate in RATES]
    assert np.abs(np.array(totals) - (177, 156, 69, 40)).max() <= 15


def test_faces_and_their_picture(tmp_path):
    """Olivetti faces on a ring: a face four peers away is seen, and drawn beside the true one."""
    data = arrays("olivetti_faces/olivetti_faces.npz")
    faces = data["images"][:80:10].reshape(8, -1) / 255.0
    task = Softmax(Records.of(faces, np.arange(8.0), np.arange(8), intercept=True))
    run = br.run(br.GossipSGD(1e-6), "ring:8", task, steps=5, watch=[0], evaluate_every=0)
    found = invert(task, from_run(run, task, 0))
    assert (score(task, found).psnr > 30.0).all()
    truth = np.stack([true_records(task, peer)[0][0] for peer in found.peers.tolist()])
    assert (
        save_grid(tmp_path / "faces.png", truth, found.inputs, (64, 64)).read_bytes()[:4]
        == b"\x89PNG"
    )


def test_cifar_through_a_convolutional_network():
    """gossip:EXP-11: gradient matching on color images. The source's 10 dB is what the image of one
    color already has, so 2 dB more than that are asked of both, and 20 dB of the better one. Both
    bounds were set after 20.9 and 15.2 dB had been measured: they hold the result, they did not
    predict it."""
    from papers.baselines.matching import Matching, convnet, gradient_of
    from papers.baselines.matching import invert as match

    data = arrays("cifar10_small/cifar10_small.npz")
    network, reached = convnet((3, 32, 32), 10, hidden=64), []
    for k in (0, 1):
        truth = data["x_train"][k].transpose(2, 0, 1) / 255.0
        found = match(
            network,
            gradient_of(network, truth[None], int(data["y_train"][k])),
            (3, 32, 32),
            how=Matching(total_variation=1e-3, steps=150),
        )
        assert found.label == data["y_train"][k]
        reached.append(psnr(truth.ravel(), found.inputs.ravel()))
        assert reached[-1] > psnr(truth.ravel(), np.full(truth.size, truth.mean())) + 2.0
    assert max(reached) > 20.0
