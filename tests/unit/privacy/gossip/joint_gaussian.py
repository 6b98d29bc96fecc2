"""Brute force: the joint Gaussian law of all an observer sees, gradients of others reacting
linearly (gossip:LG-1).

Independent of the package's accountants: states are linear forms over (shifts of all gradients, all
noises), the view is stacked row by row, and the loss of a shift d is  d^T A_u^T (B B^T)^+ A_u d.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np


@dataclass(frozen=True)
class Setting:
    """Rounds of a noisy gradient (slope: how a peer's gradient moves its model) and exchanges with
    given matrices."""

    matrices: list[list[np.ndarray]]  # per round, per exchange: (n, n)
    slopes: np.ndarray | None = None  # (n,)
    tau: float = 0.0
    omega: float = 0.0
    sums_only: bool = False
    reveal: bool = False

    @property
    def n(self) -> int:
        return len(self.matrices[0][0])


def view(setting: Setting, observers: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """A (rows, rounds n) and B (rows, sources) of all that the observers see and know."""
    n, rounds = setting.n, len(setting.matrices)
    copies = sum(int(np.count_nonzero(w)) for part in setting.matrices for w in part)
    width = 2 * rounds * n + copies + rounds * n
    state, used, seen = np.zeros((n, width)), [rounds * n], []

    def fresh(owner: int, scale: float) -> np.ndarray:
        row = np.zeros(width)
        row[used[0]] = scale
        used[0] += 1
        if owner in observers and scale:
            seen.append(row / scale)
        return row

    for s, part in enumerate(setting.matrices):
        if setting.slopes is not None:
            state = (1 + setting.slopes)[:, None] * state
        for u in range(n):
            state[u] = state[u] + fresh(u, 1.0)
            state[u, s * n + u] += 1.0
        for w in part:
            new = np.zeros_like(state)
            for v in range(n):
                heard = np.zeros(width)
                for sender in np.flatnonzero(w[v]):
                    if sender == v:
                        new[v] += w[v, v] * state[v]
                        continue
                    message = state[sender] + fresh(sender, setting.tau)
                    heard += w[v, sender] * message
                    if v in observers and not setting.sums_only:
                        seen.append(message)
                if v in observers and setting.sums_only:
                    seen.append(heard)
                new[v] += heard
            state = new
        if setting.omega:
            state = np.array([state[u] + fresh(u, setting.omega) for u in range(n)])
            if setting.reveal:
                seen.extend(state.copy())  # the next round writes into the rows of `state`
    rows = np.array(seen)
    # A gradient comes with its own noise: shifts of the observers' own data are no secret to them.
    shifts = rows[:, : rounds * n].copy()
    for v in observers:
        shifts[:, v::n] = 0.0
    return shifts, rows[:, rounds * n :]


def losses(setting: Setting, observers: list[int]) -> np.ndarray:
    """Largest loss of every peer over all signs of its shifts  # (n,)."""
    shifts, noise = view(setting, observers)
    rounds = len(setting.matrices)
    scale = np.linalg.norm(noise, axis=1)
    a, b = shifts / scale[:, None], noise / scale[:, None]
    left, size, _ = np.linalg.svd(b, full_matrices=False)
    kept = size > 1e-11 * size[0]
    white = (left[:, kept].T @ a) / size[kept][:, None]
    found = np.zeros(setting.n)
    for u in range(setting.n):
        columns = white[:, u :: setting.n]
        best = 0.0
        for signs in product((1.0, -1.0), repeat=rounds - 1):
            best = max(best, float(((columns @ np.array([1.0, *signs])) ** 2).sum()))
        found[u] = best
    return found
