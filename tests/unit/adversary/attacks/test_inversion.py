"""Records from the gradients of linear layers, how good they are, and pictures of them."""

import struct
import zlib

import numpy as np
import pytest
from torch import nn

import bruit as br
from bruit.adversary.attacks.gradients import Gradients, from_run
from bruit.adversary.attacks.inversion import (
    SUCCESS,
    SYNTHETIC_SUCCESS,
    Inverted,
    invert,
    invert_layer,
    psnr,
    relative_error,
    score,
    softmax_labels,
    true_records,
)
from bruit.adversary.attacks.picture import FRAME, grid, save_grid, write_png
from bruit.errors import ConfigError
from bruit.tasks import Logistic, Mean, Records, Ridge, Softmax, Torch

X = np.array([0.2, -1.0, 3.0])
W = np.array([[0.1, 0.0, 0.2], [-0.3, 0.5, 0.0]])
B = np.array([0.0, 0.1])


def at(task, models):
    """The true gradients of all peers, as an attack would hand them over."""
    n = task.peers
    values = task.gradient(np.arange(n), models)
    return Gradients(
        peers=np.arange(n),
        values=values,
        estimable=np.ones(n, bool),
        variance=np.ones(n),
        resolution=np.ones(n),
        residual=0.0,
        method="ols",
    )


def test_layer_example():
    """gossip:ATK-1: bias gradient, weight gradient and input of a two-class softmax layer."""
    task = Softmax(
        Records.of(np.stack([X, X]), np.array([0.0, 1.0]), np.array([0, 1]), intercept=True)
    )
    layer = task.gradient(np.array([1]), np.column_stack([W, B]).reshape(1, -1)).reshape(1, 2, 4)
    np.testing.assert_allclose(layer[0, :, 3], [0.746493983, -0.746493983], atol=1e-9)
    np.testing.assert_allclose(layer[0, 0, :3], [0.149298797, -0.746493983, 2.23948195], atol=1e-8)
    found, invertible = invert_layer(layer[:, :, :3], layer[:, :, 3])
    np.testing.assert_allclose(found[0], X, atol=1e-12)
    assert invertible.all()
    assert softmax_labels(layer[:, :, 3]).tolist() == [1]


@pytest.mark.parametrize("rows", ["none", "unit"])
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_softmax_records_come_out_whatever_the_rows_and_the_model(rows, l2):
    rng = np.random.default_rng(0)
    features, labels = rng.uniform(size=(6, 5)), np.array([0, 1, 2, 2, 1, 0.0])
    task = Softmax(Records.of(features, labels, np.arange(6), rows, True), l2)
    start = rng.normal(size=task.dim)
    found = invert(task, at(task, np.tile(start, (6, 1))), start)
    np.testing.assert_allclose(found.inputs, features, atol=1e-9)
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_allclose(found.purity, 1.0)
    scores = score(task, found)
    assert (scores.psnr > 100).all()
    assert scores.label_right.all()
    assert (scores.relative_error < 1e-8).all()


@pytest.mark.parametrize("rows", ["none", "unit"])
def test_logistic_and_ridge_give_inputs_and_answers(rows):
    rng = np.random.default_rng(1)
    features, signs, numbers = (
        rng.normal(size=(4, 3)),
        np.array([1.0, -1.0, 1.0, -1.0]),
        rng.normal(size=4),
    )
    for kind, targets in ((Logistic, signs), (Ridge, numbers)):
        task = kind(Records.of(features, targets, np.arange(4), rows, True))
        start = rng.normal(size=task.dim)
        found = invert(task, at(task, np.tile(start, (4, 1))), start)
        np.testing.assert_allclose(found.inputs, features, atol=1e-9)
        np.testing.assert_allclose(found.labels, targets, atol=1e-9)
        assert score(task, found).label_right.all()


def test_several_records_give_their_mixture():
    """gossip:ATK-1, limits: sum_i c_ki x_i / sum_i c_ki with k the largest bias gradient; purity
    tells."""
    rng = np.random.default_rng(2)
    features, labels = rng.normal(size=(6, 4)), np.array([0, 1, 1, 2, 2, 2.0])
    task = Softmax(Records.of(features, labels, np.array([0, 0, 0, 1, 1, 1]), intercept=True))
    found = invert(task, at(task, np.zeros((2, task.dim))))
    # Slopes of a zero model are 1/3 - e_y: biases of peer 0 are (0, -1/3, 1/3), each of its records
    # weighs in.
    one = -np.array([1, -2, -2]) / 3 @ features[:3]
    two = np.array([1, 1, 1]) / 3 @ features[:3]
    assert np.allclose(found.inputs[0], one, atol=1e-9) or np.allclose(
        found.inputs[0], two, atol=1e-9
    )
    assert found.purity[0] < 0.9
    # All of one class: equal slopes, so the quotient is the mean and the rank is one.
    np.testing.assert_allclose(found.inputs[1], features[3:].mean(axis=0), atol=1e-9)
    assert found.purity[1] == pytest.approx(1.0)
    assert score(task, found).records.tolist() == [3, 3]


def test_zero_bias_gradients_cannot_be_inverted():
    """gossip:ATK-1, limits: a fitted record leaves nothing, and says so."""
    inputs, invertible = invert_layer(np.zeros((2, 3, 4)), np.array([[0.0, 0, 0], [0, -1, 0]]))
    assert invertible.tolist() == [False, True]
    assert np.isnan(inputs[0]).all()
    nothing = Inverted(
        peers=np.array([0]),
        inputs=inputs[:1],
        labels=np.array([np.nan]),
        purity=np.zeros(1),
        invertible=invertible[:1],
        estimable=invertible[1:],
    )
    task = Softmax(
        Records.of(np.ones((2, 4)), np.array([0.0, 1.0]), np.array([0, 1]), intercept=True)
    )
    scores = score(task, nothing)
    assert scores.psnr[0] == -np.inf
    assert scores.relative_error[0] == np.inf
    assert not scores.label_right[0]


def test_metrics():
    """gossip:REC-8: PSNR and relative error; the constant 1/2 on uniform images is worth 10 log10
    12 dB."""
    assert psnr(np.zeros(4), np.full(4, 0.1)) == pytest.approx(20.0)
    assert psnr(np.zeros(4), np.full(4, 1.6), peak=16.0) == pytest.approx(20.0)
    assert psnr(np.ones(3), np.ones(3)) == np.inf
    assert relative_error(np.array([3.0, 4.0]), np.array([3.0, 3.0])) == pytest.approx(0.2)
    assert relative_error(np.zeros(2), np.zeros(2)) == 0.0
    uniform = (np.arange(100000) + 0.5) / 100000
    assert psnr(uniform, np.full(100000, 0.5)) == pytest.approx(10.7918125, abs=1e-6)
    assert SUCCESS < 10.7918125 < SYNTHETIC_SUCCESS


def test_true_records_are_the_raw_ones():
    features = np.random.default_rng(3).uniform(size=(5, 3))
    owners = np.array([0, 1, 1, 1, 0])
    task = Softmax(Records.of(features, np.array([0.0, 1, 0, 1, 1]), owners, "unit", True))
    inputs, targets = true_records(task, 1)
    np.testing.assert_allclose(inputs, features[1:4], atol=1e-12)
    assert targets.tolist() == [1, 0, 1]


def test_models_without_inversion_are_refused():
    mean = Mean(np.ones((3, 2)))
    with pytest.raises(ConfigError, match="Mean has no closed-form gradient inversion"):
        invert(mean, at(mean, np.zeros((3, 2))))
    bare = Softmax(Records.of(np.ones((2, 3)), np.array([0.0, 1.0]), np.array([0, 1])))
    with pytest.raises(ConfigError, match="no intercept"):
        invert(bare, at(bare, np.zeros((2, bare.dim))))
    task = Softmax(
        Records.of(np.ones((2, 3)), np.array([0.0, 1.0]), np.array([0, 1]), intercept=True)
    )
    with pytest.raises(ConfigError, match="gradients have 6 numbers, models of this task 8"):
        invert(task, at(bare, np.zeros((2, bare.dim))))
    with pytest.raises(ConfigError, match=r"bias gradients \(2,\); give \(k, c, p\)"):
        invert_layer(np.zeros((2, 3)), np.zeros(2))
    found = invert(task, at(task, np.zeros((2, task.dim))))
    with pytest.raises(ConfigError, match="peak of the inputs must be positive"):
        score(task, found, peak=0.0)
    with pytest.raises(ConfigError, match="records of Mean"):
        score(mean, found)


def read_png(path):
    """Width, height, color type and pixels of a PNG without filters, every checksum verified."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place, chunks = 8, {}
    while place < len(data):
        length, kind = struct.unpack(">I4s", data[place : place + 8])
        body = data[place + 8 : place + 8 + length]
        assert struct.unpack(">I", data[place + 8 + length : place + 12 + length])[0] == zlib.crc32(
            kind + body
        )
        chunks[kind], place = body, place + 12 + length
    width, height, _, color = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    return width, height, color, lines[:, 1:]


def test_a_grid_is_a_picture_of_both(tmp_path):
    truth = np.array([[0.0, 1.0, 0.5, 0.0], [1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    found = truth.copy()
    found[1] = np.nan
    found[2] = 7.0
    width, height, color, pixels = read_png(save_grid(tmp_path / "both.png", truth, found, (2, 2)))
    assert (width, height, color) == (3 * 9 + 1, 2 * 9 + 1, 0)
    assert pixels[1, 1] == 0
    assert pixels[1, 8] == 255
    assert pixels[8, 1] == 128
    assert (pixels[10:18, 10:18] == FRAME).all()  # nothing was found
    assert (pixels[10:18, 19:27] == 255).all()  # clipped to the peak
    assert (pixels[0] == FRAME).all()


def test_color_and_bands(tmp_path):
    images = np.random.default_rng(0).uniform(size=(5, 12))
    pixels = grid([images], (2, 2, 3), zoom=1, columns=2)
    assert pixels.shape == (3 * 3 + 1 + 2, 2 * 3 + 1, 3)
    np.testing.assert_array_equal(pixels[1:3, 1:3], np.rint(images[0].reshape(2, 2, 3) * 255))
    width, height, color, lines = read_png(write_png(tmp_path / "color.png", pixels))
    assert (width, height, color) == (7, 12, 2)
    np.testing.assert_array_equal(lines.reshape(pixels.shape), pixels)


def test_bad_pictures_are_refused(tmp_path):
    with pytest.raises(
        ConfigError, match=r"images are \(2, 5\); 2 images of shape \(2, 2\) need \(2, 4\)"
    ):
        grid([np.zeros((2, 5))], (2, 2))
    with pytest.raises(ConfigError, match="shape of an image"):
        grid([np.zeros((2, 4))], (4,))
    with pytest.raises(ConfigError, match="at least one image"):
        grid([np.zeros((0, 4))], (2, 2))
    with pytest.raises(ConfigError, match="positive peak"):
        grid([np.zeros((1, 4))], (2, 2), peak=0.0)
    with pytest.raises(ConfigError, match="found \\(2, 2, 2\\)"):
        write_png(tmp_path / "x.png", np.zeros((2, 2, 2), np.uint8))
    with pytest.raises(ConfigError, match="there is no folder"):
        write_png(tmp_path / "nowhere" / "x.png", np.zeros((2, 2), np.uint8))


def network(module, rows, labels, **more):
    owners = np.arange(len(rows))
    return Torch(module, records=Records.of(rows, labels, owners, classes=("0", "1", "2")), **more)


def test_records_of_a_network_follow_from_its_first_layer():
    """One record a peer: inputs and classes come back, whatever comes after the first layer."""
    chance = np.random.default_rng(1)
    rows, labels = chance.normal(size=(4, 5)), np.array([0.0, 2.0, 1.0, 2.0])
    task = network("mlp:8,6", rows, labels, l2=0.1)
    found = invert(task, at(task, np.tile(task.start(), (4, 1))))
    np.testing.assert_allclose(found.inputs, rows, atol=1e-9)
    assert found.labels.tolist() == labels.tolist()
    np.testing.assert_allclose(found.purity, 1.0)
    assert score(task, found, peak=3.0).label_right.all()


def test_a_run_of_a_network_is_inverted():
    """gossip-sgd begins at the network's own weights, which all know, and not at zero."""
    rows = np.random.default_rng(2).normal(size=(4, 5))
    task = network("mlp:6", rows, np.array([0.0, 2.0, 1.0, 2.0]))
    run = br.run(br.GossipSGD(rate=0.01), "complete:4", task, steps=1, watch=[0])
    found = invert(task, from_run(run, task, 0))
    np.testing.assert_allclose(found.inputs, rows[1:], atol=1e-6)


def test_networks_that_do_not_take_the_record_first_are_refused():
    rows, labels = np.ones((3, 16)), np.arange(3.0)
    for module in (
        "cnn:small",
        nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 3)),
        nn.Sequential(nn.Tanh(), nn.Linear(16, 3)),
        nn.Sequential(nn.Linear(16, 3, bias=False)),
    ):
        task = network(module, rows, labels)
        with pytest.raises(ConfigError, match="takes the record itself"):
            invert(task, at(task, np.tile(task.start(), (3, 1))))
