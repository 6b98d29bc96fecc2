"""Proximal methods as fixed points: the proximal point, and proximal gradient with its noise inside
the prox.

    proximal point:     R(u) = 2 prox_{gamma f}(u) - u,  relaxation 1/2 is the proximal step itself
    proximal gradient:  R(v) = prox(v) - gamma grad f(prox(v)),  the model is prox_{gamma r}(v)

The second keeps the point *before* the prox as its state: with relaxation 1, noise added to R(v) is
noise on the gradient, and the model is x <- prox_{gamma r}(x - gamma (grad f(x) + noise)). Both are
non-expansive for convex f and gamma <= 2 / beta. Spec: walk:ADMM-1, ADMM-4, ADE-2.
"""

from __future__ import annotations

from collections.abc import Callable

from bruit.algorithms.admm.iteration import Iteration, Operator
from bruit.algorithms.admm.regularizers import Regularizer
from bruit.arrays import Array
from papers.theorems.gradient_steps import Gradient, relaxation_of


def reflection(prox: Callable[[Array], Array]) -> Operator:
    """2 prox - identity: non-expansive for every convex function."""

    def operator(u: Array) -> Array:
        return 2 * prox(u) - u

    return operator


def proximal_point(prox: Callable[[Array], Array], sigma: float = 0.0) -> Iteration:
    """u <- prox(u) + noise of standard deviation sigma / 2."""
    return Iteration(reflection(prox), 0.5, sigma)


def proximal_gradient(
    gradient: Gradient, regularizer: Regularizer, smoothness: float, rate: float, noise: float = 0.0
) -> Iteration:
    """Noise of standard deviation `noise` on each gradient; read the model off the state by
    `regularizer.prox`."""
    relaxation_of(smoothness, rate)

    def operator(v: Array) -> Array:
        x = regularizer.prox(v, rate)
        return x - rate * gradient(x)

    return Iteration(operator, 1.0, rate * noise)
