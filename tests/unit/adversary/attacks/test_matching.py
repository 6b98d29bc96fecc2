"""Gradient matching on torch models, and what happens without torch."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from bruit.adversary.attacks.inversion import invert_layer, psnr
from bruit.errors import ConfigError
from papers.baselines.matching import (
    Matching,
    convnet,
    distance,
    gradient_of,
    invert,
    label_of,
)

pytestmark = pytest.mark.slow

X = np.array([0.2, -1.0, 3.0])


def layer(weights, bias):
    model = torch.nn.Linear(weights.shape[1], weights.shape[0]).double()
    with torch.no_grad():
        model.weight.copy_(torch.as_tensor(weights))
        model.bias.copy_(torch.as_tensor(bias))
    return model


def small_layer():
    return layer(np.array([[0.1, 0.0, 0.2], [-0.3, 0.5, 0.0]]), np.array([0.0, 0.1]))


def test_distances_example():
    """gossip:ATK-2: the layer and record of ATK-1, a zero guess and the right one."""
    model = small_layer()
    observed = gradient_of(model, X[None], 1)
    np.testing.assert_allclose(observed[-2:], [0.746493983, -0.746493983], atol=1e-9)
    assert distance(model, observed, np.zeros(3), 1, "squared") == pytest.approx(
        11.337041, rel=1e-7
    )
    assert distance(model, observed, np.zeros(3), 1, "cosine") == pytest.approx(
        0.699035367, rel=1e-8
    )
    assert distance(model, observed, X, 1, "squared") == pytest.approx(0.0, abs=1e-20)
    assert distance(model, observed, X, 1, "cosine") == pytest.approx(0.0, abs=1e-14)
    assert label_of(model, observed) == 1


@pytest.mark.parametrize("objective", ["squared", "cosine"])
def test_a_softmax_layer_is_matched_as_well_as_inverted(objective):
    """gossip:ATK-2, acceptance: the closed-form solution of ATK-1 with PSNR >= 30 dB, the label not
    given."""
    rng = np.random.default_rng(0)
    weights, truth = rng.normal(size=(5, 64)) * 0.1, rng.uniform(size=64)
    model = layer(weights, rng.normal(size=5) * 0.1)
    observed = gradient_of(model, truth[None], 3)
    exact, _ = invert_layer(observed[:-5].reshape(1, 5, 64), observed[-5:].reshape(1, 5))
    np.testing.assert_allclose(exact[0], truth, atol=1e-9)
    found = invert(model, observed, (64,), how=Matching(objective=objective, steps=400))
    assert found.label == 3
    assert psnr(exact[0], found.inputs) >= 30.0


def test_sizes_follow_from_the_shape():
    """gossip:EXP-11: flattened 4096 for 32 x 32, 3136 for 28 x 28; never written down."""
    for side, flat in ((32, 4096), (28, 3136), (8, 256)):
        parts = [tuple(part.shape) for part in convnet((1, side, side), 10).parameters()]
        assert parts[0] == (32, 1, 5, 5)
        assert parts[2] == (64, 32, 5, 5)
        assert parts[4] == (1024, flat)
        assert parts[6] == (10, 1024)
    assert tuple(next(convnet((3, 8, 12), 4, (5,), 7, 3).parameters()).shape) == (5, 3, 3, 3)


def test_a_seed_gives_a_network_and_disturbs_nobody():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, two, other = (convnet((1, 4, 4), 2, (3,), 4, 3, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not torch.equal(next(one.parameters()), next(other.parameters()))


@pytest.mark.slow
def test_a_digit_comes_out_of_a_convolutional_network():
    """gossip:ATK-2 on a real image: cosine objective with total variation, the label read off the
    last bias."""
    from sklearn.datasets import load_digits

    data = load_digits()
    model = convnet((1, 8, 8), 10, hidden=1024)
    for k in (0, 5):
        truth = data.images[k][None] / 16.0
        observed = gradient_of(model, truth[None], int(data.target[k]))
        found = invert(model, observed, (1, 8, 8), how=Matching(total_variation=1e-3, steps=300))
        assert found.label == data.target[k]
        assert found.distance < distance(model, observed, np.full((1, 8, 8), 0.3), found.label)
        assert psnr(truth.ravel(), found.inputs.ravel()) > 20.0


def test_bad_searches_are_refused():
    model = small_layer()
    with pytest.raises(ConfigError, match="9 numbers, the model 8 parameters"):
        invert(model, np.ones(9), (3,))
    with pytest.raises(ConfigError, match="no finite numbers"):
        invert(model, np.full(8, np.nan), (3,))
    with pytest.raises(ConfigError, match="the observed gradient is zero"):
        invert(model, np.zeros(8), (3,))
    bare = torch.nn.Linear(3, 2, bias=False)
    with pytest.raises(ConfigError, match="no bias, so the label cannot be read off"):
        invert(bare, np.ones(6), (3,))
    with pytest.raises(ConfigError, match="no parameters"):
        gradient_of(torch.nn.Flatten(), np.zeros((1, 3)), 0)
    with pytest.raises(ConfigError, match="at least 4 x 4 pixels"):
        convnet((1, 3, 8), 10)
    with pytest.raises(ConfigError, match="an odd kernel"):
        convnet((1, 8, 8), 10, kernel=4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"objective": "l1"}, "'cosine' or 'squared' distance, found 'l1'"),
        ({"steps": 0}, "at least 1 step"),
        ({"restarts": 0}, "1 start"),
        ({"rate": 0.0}, "positive rate"),
        ({"total_variation": -1.0}, "variation"),
        ({"bounds": (1.0, 0.0)}, r"must be \(low, high\)"),
    ],
)
def test_bad_settings_are_refused(wrong, message):
    with pytest.raises(ConfigError, match=message):
        Matching(**wrong)


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ConfigError, match=r"needs torch, which is not installed; .*bruit\[torch\]"):
        convnet((1, 8, 8), 10)


def test_importing_the_attacks_loads_no_torch():
    names = "descent, gradients, inversion, own_words, picture"
    code = (
        f"import sys; from bruit.adversary.attacks import {names}; "
        "print('torch' in sys.modules, 'numba' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "False"]
