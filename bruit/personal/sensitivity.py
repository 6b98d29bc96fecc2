"""How far one record can move what a peer releases, from declared bounds alone (perso:DP-7,
PERSO-9, 10, 13, 14).

    gradient of f_u:      2 L / m_u          L: bound on the gradient of one record's loss, in L1 (Laplace) or L2
    model fitted alone:   2 L / (m_u mu_u)   mu_u: strong convexity, that is the regularizer; plus the solver's error
    loss in [0, B]:       B / m_u
    boosting loss:        log(1 + (e^(2 r) - 1) / m_u)      r bounds |model|_1, base predictions lie in [-1, 1]

L comes from the norm that records were bounded by and from the slope of the loss. Without a
declared bound there is no sensitivity, and none is read off the records. The first two are the
task's own (`Task.sensitivities`): the door compares the noise with them again before anything is
released.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import expm1, isfinite

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.mechanisms.clip import clip_rows
from bruit.tasks import Records
from bruit.tasks.linear import LinearTask
from bruit.tasks.personal import Personal
from bruit.tasks.sensitivity import ROUNDING


def bounded_records(
    features: Array,
    targets: Array,
    owners: Ints,
    order: int = 2,
    classes: int | Sequence[str] | None = None,
) -> Records:
    """Records whose features were scaled into the unit ball of L1 or L2, and are declared so (both
    imply L2 <= 1); classes as in `Records.of`."""
    inside = clip_rows(np.asarray(features, np.float64), 1.0, order)
    records = Records.of(inside, targets, owners, classes=classes)
    return replace(
        records,
        row_bound=1.0,
        row_norm=order,
        manifest={**records.manifest, "rows": f"unit ball of L{order}"},
    )


def gradient_sensitivities(task: Personal | LinearTask, order: int = 2) -> tuple[float, ...]:
    """2 L / m_u for every peer, in L2 (order 2) or L1 (order 1).

    Records bounded in L2 only have an L1 norm of up to sqrt(dim) times that; bound them in L1 for
    Laplace noise.
    """
    return task.sensitivities("gradient", order).values


def model_sensitivities(task: Personal | LinearTask) -> tuple[float, ...]:
    """2 L / (m_u mu_u) in L2, for the model each peer fits alone (perso:PERSO-13)."""
    return task.sensitivities("model", 2).values


def loss_sensitivities(sizes: Ints, ceiling: float) -> tuple[float, ...]:
    """B / m_u for a mean of losses cut to [0, B] (perso:PERSO-14)."""
    if not (ceiling > 0 and isfinite(ceiling)):
        raise ConfigError(f"losses are cut at a positive, finite ceiling, found {ceiling}")
    return tuple((ceiling / sizes * (1 + ROUNDING)).tolist())


def boosting_loss_sensitivities(sizes: Ints, radius: float) -> tuple[float, ...]:
    """log(1 + (e^(2 radius) - 1) / m_u), with |model|_1 <= radius where the loss is asked for
    (perso:PERSO-14)."""
    if not radius > 0:
        raise ConfigError(f"the ball of models has a positive radius, found {radius}")
    return tuple((np.log1p(expm1(2 * radius) / sizes) * (1 + ROUNDING)).tolist())
