"""Closed forms for peers with one record against the specification, against Newton, and at the ends
of the range."""

from math import inf

import numpy as np
import pytest

from bruit.errors import ConfigError
from bruit.tasks import Logistic, Records, Ridge
from bruit.tasks import proximal as module
from bruit.tasks.newton import minimize
from bruit.tasks.proximal import huber_prox, logistic_prox

ONE = np.ones(1)
RECORD = np.array([[0.6, 0.8]])


def test_worked_numbers():
    # walk:ADMM-10
    found = logistic_prox(RECORD, ONE, np.array([[0.2, -0.4]]), 0.5 * ONE, inf)
    assert found[0] == pytest.approx([0.346667154, -0.204443794], abs=1e-9)
    assert huber_prox(RECORD, ONE, np.array([[3.0, 1.0]]), 2 * ONE, 0.5)[0] == pytest.approx(
        [2.4, 0.2]
    )
    assert huber_prox(RECORD, ONE, np.array([[1.0, 1.0]]), 2 * ONE, 0.5)[0] == pytest.approx(
        [0.84, 0.786666667]
    )
    squares = huber_prox(RECORD, ONE, np.array([[3.0, 1.0]]), 2 * ONE, inf)[0]
    assert squares == pytest.approx(np.array([3.0, 1.0]) - 2 * RECORD[0] * (2.6 - 1) / 3)


@pytest.mark.parametrize("clip", [None, 0.3])
@pytest.mark.parametrize("kind", [Logistic, Ridge])
@pytest.mark.parametrize("rho", [1e-3, 1.0, 50.0])
def test_closed_forms_are_what_newton_finds(kind, clip, rho):
    rng = np.random.default_rng(0)
    features = 2 * rng.normal(size=(30, 4))
    targets = rng.choice([-1.0, 1.0], 30) if kind is Logistic else rng.normal(size=30)
    task = kind(Records.of(features, targets, np.arange(30)), 0.2, clip)
    x, strength = 3 * rng.normal(size=(30, 4)), np.full(30, 0.2 + 1 / rho)
    part = next(task.records.parts(np.arange(30), 4))
    slow = minimize(task.loss, part, (x / (1 + rho * 0.2))[:, None], strength)[:, 0]
    np.testing.assert_allclose(task.prox(np.arange(30), x, rho), slow, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1e3])
@pytest.mark.parametrize("clip", [inf, 0.3])
def test_the_scalar_root_settles_everywhere(scale, clip):
    """t - margin - reach min(clip, 1/(1 + e^t)) vanishes at the answer, to rounding, over ten
    decades of gamma."""
    rng = np.random.default_rng(1)
    a, w = scale * rng.normal(size=(2, 2000, 3))
    y, gamma = rng.choice([-1.0, 1.0], 2000), 10 ** rng.uniform(-6, 4, 2000)
    z = logistic_prox(a, y, w, gamma, clip)
    slope = ((w - z) * a).sum(axis=1) / (gamma * (a**2).sum(axis=1)) * -y  # in [0, min(clip, 1)]
    assert (slope >= -1e-12).all()
    assert (slope <= min(clip, 1.0) + 1e-9).all()
    steps = gamma * (a**2).sum(axis=1)
    margin = y * (a * w).sum(axis=1)
    t = margin + steps * slope
    rest = t - margin - steps * np.minimum(clip, 1 / (1 + np.exp(np.minimum(t, 700.0))))
    size = 1 + np.abs(margin) + np.abs(t)
    assert (np.abs(rest) <= 1e-13 * size * (1 + steps * slope * (1 - slope))).all()


def test_a_root_that_does_not_settle_is_said(monkeypatch):
    monkeypatch.setattr(module, "ROOT_STEPS", 1)
    with pytest.raises(
        ConfigError, match=r"did not settle in 1 steps \(gamma \|a\|\^2 up to 1e\+06\)"
    ):
        logistic_prox(RECORD, ONE, np.array([[-300.0, 0.0]]), 1e6 * ONE, inf)
