"""Private gradient descent and private SGD as noisy fixed points.

    R(u) = u - (2 / beta) grad f(u),   relaxation gamma beta / 2,   sigma = 2 s / beta
    gives   u <- u - gamma (grad f(u) + N(0, s^2))

and, with the error e = (2 / beta) (grad f(u) - grad f(u; record)), the step of one sampled record
instead of all. R is non-expansive for convex beta-smooth f; the step needs 0 < gamma <= 2 / beta.
Spec: walk:ADMM-2 (Prop. 8.3).
"""

from __future__ import annotations

from collections.abc import Callable

from bruit.algorithms.admm.iteration import Iteration
from bruit.arrays import Array
from bruit.errors import ConfigError

Gradient = Callable[[Array], Array]  # (..., blocks, d) to the same shape
SampledGradient = Callable[[int, Array], Array]  # the same, with the records drawn for that step


def gradient_descent(
    gradient: Gradient, smoothness: float, rate: float, noise: float = 0.0
) -> Iteration:
    """Full gradients with noise of standard deviation `noise` on each."""
    return Iteration(
        forward(gradient, smoothness), relaxation_of(smoothness, rate), 2 * noise / smoothness
    )


def stochastic_gradient_descent(
    gradient: Gradient, sampled: SampledGradient, smoothness: float, rate: float, noise: float = 0.0
) -> Iteration:
    """The gradient of the records drawn for each step, with noise: the sampling is the error of the
    iteration."""

    def error(step: int, u: Array) -> Array:
        return (2 / smoothness) * (gradient(u) - sampled(step, u))

    full = gradient_descent(gradient, smoothness, rate, noise)
    return Iteration(full.operator, full.relaxation, full.sigma, error)


def forward(gradient: Gradient, smoothness: float) -> Callable[[Array], Array]:
    """The longest non-expansive gradient step, u - (2 / beta) grad f(u)."""

    def operator(u: Array) -> Array:
        return u - (2 / smoothness) * gradient(u)

    return operator


def relaxation_of(smoothness: float, rate: float) -> float:
    """gamma beta / 2, for a step size that keeps gradient steps non-expansive."""
    if not smoothness > 0:
        raise ConfigError(f"gradient steps need a positive smoothness, found {smoothness}")
    if not 0 < rate <= 2 / smoothness:
        raise ConfigError(
            f"the rate must be in (0, 2 / smoothness = {2 / smoothness:g}], found {rate}"
        )
    return rate * smoothness / 2
