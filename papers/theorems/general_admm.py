"""General private ADMM: min f(x) + g(z) subject to A x + B z = c, as one noisy fixed point in the
dual variable.

    z = argmin g(z) + |B z + u|^2 / (2 gamma)
    x = argmin f(x) + |A x + 2 B z + u - c|^2 / (2 gamma)
    R(u) = u + 2 (A x + B z - c)          so that  u <- u + 2 l (A x + B z - c + eta / 2)  with relaxation l

Return z, never x: x has seen the records without noise. Spec: walk:ADMM-4 (Algorithm E.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bruit.arrays import Array
from bruit.errors import ConfigError


@dataclass(frozen=True, eq=False)
class Splitting:
    """Two problems tied by A x + B z = c; the state u is one block (1, m), alone or in runs (runs,
    1, m).

    solve_x(w): argmin f(x) + |A x + w|^2 / (2 gamma);  solve_z(w): argmin g(z) + |B z + w|^2 / (2 gamma); both on rows.
    """

    A: Array  # (m, a)
    B: Array  # (m, b)
    c: Array  # (m,)
    solve_x: Callable[[Array], Array]  # (..., m) to (..., a)
    solve_z: Callable[[Array], Array]  # (..., m) to (..., b)

    def __post_init__(self) -> None:
        if not len(self.A) == len(self.B) == len(self.c):
            rows = f"{len(self.A)}, {len(self.B)} and {len(self.c)}"
            raise ConfigError(
                f"A, B and c tie as many numbers as they have rows, found {rows}; make them equal"
            )

    def operator(self, u: Array) -> Array:
        """The Lions-Mercier operator in the dual variable."""
        z = self.solve_z(u)
        x = self.solve_x(2 * z @ self.B.T + u - self.c)
        return u + 2 * (x @ self.A.T + z @ self.B.T - self.c)

    def model(self, u: Array) -> Array:
        """z, what a run returns."""
        return self.solve_z(u)
