"""How far one record can move what a peer of a linear task answers, from declared bounds alone
(perso:DP-7, PERSO-13).

    gradient of f_u:      2 L / m_u          L: bound on the gradient of one record's loss, in L1 or L2
    model fitted alone:   2 L / (m_u mu_u)   mu_u: strong convexity, that is the regularizer; plus the solver's error

L = R slope: R bounds the norm of every row (verified on the rows), `slope` the derivative of the
loss (its formula, or its clip). Each is enlarged by ROUNDING of itself for the rounding of norms
and sums.
"""

from math import isfinite, sqrt
from typing import Literal

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.tasks.newton import TOLERANCE
from bruit.tasks.records import Records
from bruit.tasks.task import Constants, Sensitivities

ROUNDING = 1e-9


def linear_sensitivities(
    answer: str, order: int, known: Constants, records: Records, strength: Array, outputs: int = 1
) -> Sensitivities:
    """Of the gradients or the fitted models of peers with these records and regularizers (strength:
    l2 and ridge)."""
    if order not in (1, 2):
        raise ConfigError(f"sensitivities are measured in L1 or L2, found order {order}")
    if answer not in ("gradient", "model"):
        raise PrivacyError(
            f"a linear task answers with gradients and models, and noise measured for {answer!r}"
            " says nothing of either; use gradient_noise or model_noise"
        )
    records.check_rows()
    lipschitz = _lipschitz(known)
    if answer == "gradient":
        moved = 2 * lipschitz * _longer(order, records, outputs) / records.sizes
    else:
        moved = _model(lipschitz, records, strength, order)
    return Sensitivities(
        tuple((moved * (1 + ROUNDING)).tolist()),
        _checked_facts(records),
        (_declared(known, strength if answer == "model" else None), _rounding()),
    )


def _lipschitz(known: Constants) -> float:
    if known.source != "declared" or not isfinite(known.lipschitz):
        raise PrivacyError(
            "the records of this task have no declared bound, so one of them can move a release"
            " without bound; bound them (rows='unit', or bounded_records) and clip the slope if it"
            " has no limit"
        )
    return known.lipschitz


def _longer(order: Literal[1, 2] | int, records: Records, outputs: int) -> float:
    """How much longer a gradient may be in this norm than in L2.

    It is slope (x) row, so its L1 norm is |slope|_1 |row|_1: rows bounded in L2 only are up to sqrt(columns) longer in
    L1, a slope of several outputs up to sqrt(outputs).
    """
    if order == 2:
        return 1.0
    return sqrt(outputs) * (1.0 if records.row_norm == 1 else sqrt(records.columns))


def _model(lipschitz: float, records: Records, strength: Array, order: int) -> Array:
    if order == 1:
        raise ConfigError(
            "the sensitivity of a fitted model is known in L2; use 'euclidean' or 'gaussian' noise"
        )
    if not bool((strength > 0).all()):
        raise PrivacyError(
            f"peer {int(np.argmin(strength))} fits its model without regularizer, so one record can"
            " move it without bound; give every peer a ridge"
        )
    solver = TOLERANCE * np.maximum(
        1.0, strength
    )  # the gradient it stops at, for each of the two data sets
    return np.asarray(2 * lipschitz / (records.sizes * strength) + 2 * solver / strength)


def _checked_facts(records: Records) -> tuple[str, ...]:
    return (
        f"every row has norm at most {records.row_bound:g} (L{records.row_norm}); a longer one is "
        f"refused",
        f"the noise was measured for peers of {_range(records.sizes)} records, as these are",
    )


def _declared(known: Constants, strength: Array | None) -> str:
    convex = "" if strength is None else f", regularizers mu = {_range(strength)}"
    return (
        f"the loss of one record has gradients of norm at most L = {known.lipschitz:g} on such"
        f" rows{convex}, as the task declares for every admissible dataset"
    )


def _rounding() -> str:
    return (
        f"peers compute their answers with an error below {ROUNDING:g} of how far one record moves"
        " them, and their numbers of records are public"
    )


def _range(numbers: Array | Ints) -> str:
    low, high = float(numbers.min()), float(numbers.max())
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
