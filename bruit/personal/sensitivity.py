"""How far one record can move what a peer releases, from declared bounds alone (perso:DP-7, PERSO-9, 10, 13, 14).

    gradient of f_u:      2 L / m_u          L: bound on the gradient of one record's loss, in L1 (Laplace) or L2
    model fitted alone:   2 L / (m_u mu_u)   mu_u: strong convexity, that is the regularizer; plus the solver's error
    loss in [0, B]:       B / m_u
    boosting loss:        log(1 + (e^(2 r) - 1) / m_u)      r bounds |model|_1, base predictions lie in [-1, 1]

L comes from the norm that records were bounded by and from the slope of the loss. Without a declared bound there is no
sensitivity, and none is read off the records.
"""

from dataclasses import replace
from math import expm1, isfinite, sqrt

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.mechanisms.clip import clip_rows
from bruit.tasks import Records
from bruit.tasks.linear import LinearTask
from bruit.tasks.newton import TOLERANCE
from bruit.tasks.personal import Personal


def bounded_records(features: Array, targets: Array, owners: Ints, order: int = 2) -> Records:
    """Records whose features were scaled into the unit ball of L1 or L2, and are declared so (both imply L2 <= 1)."""
    inside = clip_rows(np.asarray(features, np.float64), 1.0, order)
    records = Records.of(inside, targets, owners)
    return replace(records, row_bound=1.0, manifest={**records.manifest, "rows": f"unit ball of L{order}"})


def gradient_sensitivities(task: Personal | LinearTask, order: int = 2) -> tuple[float, ...]:
    """2 L / m_u for every peer, in L2 (order 2) or L1 (order 1).

    Records bounded in L2 only have an L1 norm of up to sqrt(dim) times that; bound them in L1 for Laplace noise.
    """
    shared = task.shared if isinstance(task, Personal) else task
    bound = _lipschitz(shared)
    if order == 1 and shared.records.manifest.get("rows") != "unit ball of L1":
        bound *= sqrt(task.dim)
    elif order not in (1, 2):
        raise ConfigError(f"sensitivities are measured in L1 or L2, found order {order}")
    return tuple((2 * bound / shared.records.sizes).tolist())


def model_sensitivities(task: Personal) -> tuple[float, ...]:
    """2 L / (m_u mu_u) in L2, for the model each peer fits alone (perso:PERSO-13)."""
    strength = task.shared.l2 + task.ridge
    if not bool((strength > 0).all()):
        raise PrivacyError(f"peer {int(np.argmin(strength))} fits its model without regularizer, so one record can "
                           "move it without bound; give every peer a ridge")
    solver = TOLERANCE * np.maximum(1.0, strength)  # the gradient it stops at, for each of the two data sets
    return tuple((2 * _lipschitz(task.shared) / (task.sizes * strength) + 2 * solver / strength).tolist())


def loss_sensitivities(sizes: Ints, ceiling: float) -> tuple[float, ...]:
    """B / m_u for a mean of losses cut to [0, B] (perso:PERSO-14)."""
    if not (ceiling > 0 and isfinite(ceiling)):
        raise ConfigError(f"losses are cut at a positive, finite ceiling, found {ceiling}")
    return tuple((ceiling / sizes).tolist())


def boosting_loss_sensitivities(sizes: Ints, radius: float) -> tuple[float, ...]:
    """log(1 + (e^(2 radius) - 1) / m_u), with |model|_1 <= radius where the loss is asked for (perso:PERSO-14)."""
    if not radius > 0:
        raise ConfigError(f"the ball of models has a positive radius, found {radius}")
    return tuple(np.log1p(expm1(2 * radius) / sizes).tolist())


def _lipschitz(task: LinearTask) -> float:
    known = task.constants()
    if known.source != "declared" or not isfinite(known.lipschitz):
        raise PrivacyError("the records of this task have no declared bound, so one of them can move a release without "
                           "bound; bound them (rows='unit', or bounded_records) and clip the slope if it has no limit")
    return known.lipschitz
