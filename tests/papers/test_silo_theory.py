"""The statements of docs/theory/silo.md by brute force, with no code of the package.

Laws are integrated on grids or enumerated; masks are linear algebra. Everything is deterministic.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm


def mixture(q, middle, s, x):
    """(1 - q) N(0, s^2) + q N(middle, s^2) in the plane, on the grid x by x."""

    def bell(a, b):
        return np.exp(-((x[:, None] - a) ** 2 + (x[None, :] - b) ** 2) / (2 * s * s)) / (
            2 * math.pi * s * s
        )

    return (1 - q) * bell(0, 0) + q * bell(*middle)


def apart(p, q, epsilon, cell):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * cell)


@pytest.mark.parametrize(("s", "q"), [(0.5, 0.3), (1.0, 0.05), (2.0, 0.7)])
def test_opposite_records_are_the_worst_replacement(s, q):
    """silo:SILO-2: no two records of norm at most 1, in the plane, are told apart better than 1 and
    -1."""
    x = np.linspace(-1 - 6 * s, 1 + 6 * s, 241)
    cell = (x[1] - x[0]) ** 2
    worst = {
        e: apart(mixture(q, (1, 0), s, x), mixture(q, (-1, 0), s, x), e, cell)
        for e in (-0.5, 0.0, 0.3, 1.0)
    }
    for first, second, length in itertools.product((0.0, 0.9), (0.7, 2.0, 3.1), (0.5, 1.0)):
        one = mixture(q, (math.cos(first), math.sin(first)), s, x)
        other = mixture(q, (length * math.cos(second), length * math.sin(second)), s, x)
        for epsilon, most in worst.items():
            assert apart(one, other, epsilon, cell) <= most + 2e-5  # the grid is good to 1e-5


def discrete(s, reach):
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * s * s))
    return weights / weights.sum()


@pytest.mark.parametrize(("s", "scaled"), [(1, 0.00156592), (2, 0.00168949), (4, 0.00172416)])
def test_a_discrete_gaussian_is_near_a_rounded_one(s, scaled):
    """silo:SILO-4: KL at most 1 / (320 s^4); its true size is about 1 / (576 s^4)."""
    k = np.arange(0, 6 * s + 1)
    tail = norm.sf((k - 0.5) / s) - norm.sf((k + 0.5) / s)
    p = discrete(s, 6 * s)[6 * s :]
    twice = np.where(k > 0, 2.0, 1.0)
    divergence = float((twice * p * np.log(p / tail)).sum())
    assert divergence * s**4 == pytest.approx(scaled, rel=1e-3)
    assert divergence <= 1 / (320 * s**4)


def test_a_sum_of_discrete_gaussians_is_nearly_one():
    """silo:SILO-4: two of s = 1 against one of s^2 = 2; theta = 4 exp(-pi^2)."""
    both, one = np.convolve(discrete(1, 40), discrete(1, 40)), discrete(math.sqrt(2), 80)
    ratio = np.abs(np.log(both[75:86] / one[75:86])).max()
    assert ratio == pytest.approx(1.03462e-4, rel=1e-4)
    assert ratio <= 4 * math.exp(-(math.pi**2))


def test_one_release_on_the_grid():
    """silo:SILO-4: s = 8, records of 4 grains, q = 0.3, replace, epsilon = 0.2: above the real one,
    within kappa."""
    k, q, epsilon = np.arange(-120, 121), 0.3, 0.2
    law = {c: np.exp(-((k - c) ** 2) / 128) / np.exp(-(k**2) / 128).sum() for c in (-4, 0, 4)}
    exact = apart((1 - q) * law[0] + q * law[4], (1 - q) * law[0] + q * law[-4], epsilon, 1)
    x = np.linspace(-120, 120, 480_001)
    bell = {c: norm.pdf(x, c, 8) for c in (-4, 0, 4)}
    real = apart(
        (1 - q) * bell[0] + q * bell[4], (1 - q) * bell[0] + q * bell[-4], epsilon, x[1] - x[0]
    )
    assert (exact, real) == (
        pytest.approx(0.04658609, abs=1e-8),
        pytest.approx(0.04658449, abs=1e-7),
    )
    assert exact - real <= (1 + math.exp(epsilon)) * math.sqrt(1 / 640) / 64


def ring_neighbors(listed, u, each_side):
    around = sorted(listed)
    place = around.index(u)
    return {around[(place + k) % len(around)] for k in range(-each_side, each_side + 1)} - {u}


def least_noise(lists, colluders, each_side, bound):
    """The least noise, in sigma^2, of a sum of honest messages in which no unknown mask is left;
    None: no such sum.

    lists[u]: what honest u was told. bound: whether a mask depends on the list. Masks with
    colluders are known."""
    speakers, columns = sorted(lists), {}
    for u in speakers:
        for v in ring_neighbors(lists[u], u, each_side) - colluders:
            key = (min(u, v), max(u, v), lists[u] if bound else None)
            columns.setdefault(key, {})[u] = 1 if u < v else -1
    found = []
    for size in range(1, len(speakers) + 1):
        for group in itertools.combinations(speakers, size):
            if all(sum(signs.get(u, 0) for u in group) == 0 for signs in columns.values()):
                found.append(sum(1 / (len(lists[u]) - len(colluders)) for u in group))
    return min(found, default=None)


def test_no_lists_make_a_sum_with_less_noise():
    """silo:SILO-4: one colluder, five peers, every way to tell the four others lists of three or
    more."""
    for told in itertools.product(range(4), repeat=4):
        lists = {}
        for u, choice in zip((1, 2, 3, 4), told, strict=True):
            others = [v for v in range(5) if v != u]
            lists[u] = [
                frozenset(range(5)),
                frozenset({u, others[0], others[1]}),
                frozenset({u, *others[1:]}),
                frozenset({u, others[0], others[2], others[3]}),
            ][choice]
        noise = least_noise(lists, {0}, 1, bound=True)
        assert noise is None or noise >= 1 - 1e-12


def bare_combinations(edges, signs_of, inner, seen):
    """A basis of the combinations of what a colluder sees in which no unknown mask is left, as
    combinations of the honest peers' own messages."""
    columns = np.array([[signs_of(u, pair) for pair in edges] for u in range(inner)], float)
    _, sizes, rows = np.linalg.svd((seen @ columns).T)
    kept = rows[np.sum(sizes > 1e-9) :]
    return kept @ seen


def test_partial_sums_of_a_tree_tell_no_more():
    """silo:SILO-4: six honest peers and a colluder, 6, to whom each branch 0-1-2 and 3-4-5 of a tree
    tells its sum, and who hears all single messages of the second besides. With masks between all
    pairs the only bare combination is the sum of all; with masks along the tree each branch is
    bare."""
    seen = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], *np.eye(6)[3:]], float)

    def signs(u, pair):
        return (u == pair[0]) - (u == pair[1])

    everybody = list(itertools.combinations(range(6), 2))
    found = bare_combinations(everybody, signs, 6, seen)
    found = found[np.abs(found).max(axis=1) > 1e-9]
    assert np.linalg.matrix_rank(found) == 1
    assert np.allclose(found, found[:, :1])
    branches = bare_combinations([(0, 1), (1, 2), (3, 4), (4, 5)], signs, 6, seen)
    assert np.linalg.matrix_rank(np.vstack([branches, seen[:1]])) == np.linalg.matrix_rank(branches)


def test_masks_that_forget_the_list_leave_half_of_the_noise():
    """silo:SILO-4: seven peers on a circle. 3 and 4 are each other's neighbor, and each has the
    colluder 0 on the other side, in two different lists of five: their sum is bare of masks, with
    noise 1/4 + 1/4."""
    lists = {3: frozenset({0, 3, 4, 5, 6}), 4: frozenset({0, 1, 2, 3, 4})}
    assert least_noise(lists, {0}, 1, bound=False) == pytest.approx(0.5)
    assert least_noise(lists, {0}, 1, bound=True) is None


def view(weights, observer, rounds):
    """Rows of what the observer knows: its own value, and what its neighbors say before each
    round."""
    n, power = len(weights), np.eye(len(weights))
    rows = [np.eye(n)[observer]]
    for _ in range(rounds):
        rows += [power[v] for v in range(n) if v != observer and weights[observer, v] > 0]
        power = weights @ power
    return np.array(rows)


def mixing(n, edges, weight):
    found = np.zeros((n, n))
    for u, v in edges:
        found[u, v] = found[v, u] = weight
    return found + np.diag(1 - found.sum(axis=1))


def test_losses_with_unequal_noise():
    """silo:SILO-8: the star of five; leverages add up to the rank. A peer without noise may be
    safe, or not, and the pseudo-inverse does not tell."""
    rows, s = (
        view(mixing(5, [(0, v) for v in range(1, 5)], 1 / 5), 1, 2),
        np.array([1, 1, 2, 0.5, 1]),
    )
    mu2 = np.diag(rows.T @ np.linalg.pinv(rows @ np.diag(s**2) @ rows.T, rcond=1e-10) @ rows)
    assert mu2 == pytest.approx([1, 1, 4 / 21, 4 / 21, 4 / 21])
    assert (
        (mu2 * s**2).sum() == pytest.approx(3) == pytest.approx(float(np.linalg.matrix_rank(rows)))
    )
    s[3] = 0
    mu2 = np.diag(rows.T @ np.linalg.pinv(rows @ np.diag(s**2) @ rows.T, rcond=1e-10) @ rows)
    assert mu2[3] == pytest.approx(0.2)
    assert np.linalg.matrix_rank(rows[:, [0, 1, 2, 4]]) == np.linalg.matrix_rank(rows)
    rows = view(mixing(5, [(v, v + 1) for v in range(4)], 1 / 3), 0, 3)
    noisy = np.array([1.0, 1, 0, 1, 1])
    mu2 = np.diag(rows.T @ np.linalg.pinv(rows @ np.diag(noisy) @ rows.T, rcond=1e-10) @ rows)
    assert mu2[2] == pytest.approx(2.132231, rel=1e-6)  # and the truth is infinite:
    assert np.linalg.matrix_rank(rows[:, noisy > 0]) < np.linalg.matrix_rank(rows)


def test_a_counted_bit_beside_a_clipped_gradient():
    """silo:SILO-7: the multiplier of both, for z = 2 and z_b = 10."""
    z_g = (1 / 4 - 1 / 400) ** -0.5
    assert z_g == pytest.approx(2.010076, rel=1e-6)
    longest = math.hypot(
        1.0, 0.5 * z_g / 10
    )  # a record's gradient of norm 1 with its centered bit, in units of C
    assert z_g / longest == pytest.approx(2.0)


def test_a_float_sum_moves_further_than_its_records():
    """silo:SILO-1: float32, in order; a record of 1 put in front, and -1 replaced by 1."""
    rest = np.concatenate((np.ones(4095, np.float32), np.full(4096, 0.51 * 2**-11, np.float32)))

    def summed(first):
        return float(
            np.cumsum(np.concatenate((first, rest)).astype(np.float32), dtype=np.float32)[-1]
        )

    assert summed([1]) - summed([]) == 2.0
    assert summed([1]) - summed([-1]) == 3.0


@pytest.mark.slow
def test_sampled_releases_cost_what_is_said():
    """silo:SILO-2, SILO-5: q = 0.05, z = 2, delta = 1e-6; batches used once and twice; 220
    releases."""
    import dp_accounting as dp

    def epsilon(z, releases, relation):
        account = dp.pld.PLDAccountant(relation)
        account.compose(dp.PoissonSampledDpEvent(0.05, dp.GaussianDpEvent(z)), releases)
        return account.get_epsilon(1e-6)

    both = (dp.NeighboringRelation.ADD_OR_REMOVE_ONE, dp.NeighboringRelation.REPLACE_ONE)
    for z, releases, said in (
        (2, 200, (1.7921, 3.3178)),
        (2, 220, (1.8803, 3.4976)),
        (2**0.5, 100, (2.1392, 3.4159)),
    ):
        assert [epsilon(z, releases, relation) for relation in both] == pytest.approx(
            said, abs=2e-3
        )


def clipped_sum(labels, local, clip):
    """Squared loss at w = 0, one shared coordinate with x = 1: the sum of clipped gradients."""
    return float(np.clip(local - labels, -clip, clip).sum())


@pytest.mark.parametrize("m", [4, 31, 1000])
def test_a_local_part_inside_released_gradients_is_not_free(m):
    """silo:SILO-6: one replaced record moves the sum by 2C(m - 2) if the local part is in it, and by
    2C with a public value in its place."""
    clip = 1 / m
    first, second = (np.array([label] + [0.0] * (m - 1)) for label in (1.0, -1.0))
    inside = abs(clipped_sum(first, first.mean(), clip) - clipped_sum(second, second.mean(), clip))
    public = abs(clipped_sum(first, 0.0, clip) - clipped_sum(second, 0.0, clip))
    assert inside == pytest.approx(2 * clip * (m - 2))
    assert public == pytest.approx(2 * clip)
