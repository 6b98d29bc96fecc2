"""Frequency and mean protocols: worked numbers, refusals, and the records around them."""

import math

import numpy as np
import pytest

from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.events import BoundedEvent, GaussianEvent, LaplaceEvent
from bruit.privacy.formulas import randomized_response as accountant
from bruit.randomness import Replay, Secure
from bruit.statistics.local import (
    BinaryResponse,
    GaussianMean,
    HadamardResponse,
    KAry,
    LaplaceMean,
    LocalHashing,
    Reports,
    UnaryEncoding,
    best,
    compare,
    protocol_from,
)
from bruit.statistics.local.coins import flip_threshold, odd_parity, uniform_threshold
from bruit.statistics.local.estimates import laplace_quantile, quantile
from bruit.statistics.local.walsh import walsh_hadamard
from papers.printed.classical import classical_multiplier

DICE = Replay(8)
FREQUENCY = [
    KAry(5, 1.0),
    HadamardResponse(5, 1.0),
    UnaryEncoding(5, 1.0),
    LocalHashing(5, 1.0),
    BinaryResponse(1.0),
]
MEANS = [LaplaceMean(-1.0, 3.0, 1.0), GaussianMean(-1.0, 3.0, 1.0, 1e-5)]
ALL = FREQUENCY + MEANS


def values_of(protocol, n):
    return (
        np.arange(n) % protocol.k
        if protocol in FREQUENCY
        else np.linspace(protocol.low, protocol.high, n)
    )


def test_warner():
    """perso:LDP-1: p = .75 -> epsilon 1.0986122887, n Var = 0.75; 6 ones of 10 -> 0.7."""
    protocol = BinaryResponse.of_truth(0.75)
    assert protocol.epsilon == pytest.approx(1.0986122887, rel=1e-9)
    found = protocol.estimate(Reports(protocol.describe(), {"value": np.array([1] * 6 + [0] * 4)}))
    assert found.shares == pytest.approx([0.3, 0.7], rel=1e-9)
    assert protocol.variance(0.3, 1) == pytest.approx(0.75, rel=1e-9)


def test_k_ary():
    """perso:LDP-2, LDP-3: K = 4, epsilon = 1."""
    protocol = KAry(4, 1.0)
    assert protocol.chances() == pytest.approx((0.4753668864, 0.1748777045), rel=1e-9)
    assert protocol.chances() == pytest.approx(accountant.probabilities(4, 1.0), rel=1e-12)
    column = np.repeat(np.arange(4), (120, 60, 15, 5))
    found = protocol.estimate(Reports(protocol.describe(), {"value": column}))
    assert found.shares == pytest.approx(
        [1.414767390, 0.416395341, -0.332383695, -0.498779036], rel=1e-8
    )
    assert found.shares == pytest.approx(
        accountant.estimate(np.array([120, 60, 15, 5]), 1.0), rel=1e-9
    )
    assert protocol.variance(0.6, 200) == pytest.approx(0.0114821971, rel=1e-8)
    assert uniform_threshold(36, 1.0) / 2**64 == pytest.approx(0.9544443239, rel=1e-9)


def test_means():
    """perso:LDP-4: n = 1000, epsilon = 1 -> 0.002; classical Gaussian 0.5, 1e-5 -> 0.0938885521,
    the exact one less."""
    assert LaplaceMean(0.0, 1.0, 1.0).variance(1000) == pytest.approx(0.002, rel=1e-9)
    classical = classical_multiplier(0.5, 1e-5) ** 2 / 1000
    assert classical == pytest.approx(0.0938885521, rel=1e-8)
    assert GaussianMean(0.0, 1.0, 0.5, 1e-5).variance(1000) < classical
    assert GaussianMean(0.0, 2.0, 0.5, 1e-5).sigma() == pytest.approx(
        14.06365335, rel=1e-6
    )  # perso:DP-6


def test_the_predicted_errors_of_all_protocols():
    """Wang et al. 2017: unary encoding and local hashing share 4 e^eps / (n (e^eps - 1)^2) for rare
    values."""
    rows = {row.protocol: row for row in compare(100, 1.0, 1000)}
    wang = math.sqrt(4 * math.e / (1000 * math.expm1(1.0) ** 2))
    assert rows["unary"].rare == pytest.approx(wang, rel=1e-9)
    assert rows["local-hashing"].rare == pytest.approx(
        wang, rel=0.01
    )  # the number of cells is a whole number
    assert rows["hadamard"].rare == pytest.approx(
        (math.e + 1) / math.expm1(1.0) / math.sqrt(1000), rel=1e-9
    )
    assert rows["k-ary"].rare == pytest.approx(
        math.sqrt(accountant.error(0.0, 100, 1.0, 1000)), rel=1e-9
    )
    assert [row.total for row in compare(100, 1.0, 1000)] == sorted(
        row.total for row in rows.values()
    )
    assert best(3, 1.0).kind == "k-ary"
    assert best(1000, 1.0).kind in ("unary", "local-hashing")
    assert best(100_000, 1.0).kind != "unary"
    assert {row.protocol for row in compare(2, 1.0, 10)} >= {"randomized-response", "k-ary"}


@pytest.mark.parametrize(
    ("protocol", "columns", "theirs"),
    [
        (
            KAry(5, 0.8),
            {"value": np.repeat(np.arange(5), (12, 9, 4, 3, 2))},
            [1.215966221, 0.70798311, -0.138655407, -0.30798311, -0.477310814],
        ),
        (
            UnaryEncoding(5, 0.8),
            {
                "bits": np.packbits(
                    [
                        [1, 0, 0, 1, 0],
                        [0, 1, 0, 0, 0],
                        [1, 1, 0, 0, 1],
                        [0, 0, 0, 0, 0],
                        [1, 0, 1, 0, 0],
                        [0, 0, 1, 1, 0],
                        [1, 0, 0, 0, 0],
                        [0, 1, 1, 0, 0],
                    ],
                    axis=1,
                )
            },
            [1.0, 0.34201689, 0.34201689, -0.315966221, -0.973949331],
        ),
        (
            HadamardResponse(5, 0.8),
            {"index": np.array([0, 3, 5, 5, 7, 2, 1, 6, 4, 5, 3, 0, 7, 7, 2, 5])},
            [-0.65798311, 0.0, 0.0, -0.328991555, 0.986974666],
        ),
    ],
    ids=lambda part: getattr(part, "kind", ""),
)
def test_the_same_reports_give_what_pure_ldp_gives(protocol, columns, theirs):
    """What pure-ldp 1.2.0 (DEServer, UEServer with use_oue, HadamardResponseServer) estimated from
    these reports."""
    assert protocol.estimate(Reports(protocol.describe(), columns)).shares == pytest.approx(
        theirs, abs=2e-9
    )


@pytest.mark.parametrize(
    ("epsilon", "theirs", "simulated"),
    [
        (0.5, (0.7867717733, 0.5027361657, 0.5058797315), (0.784, 0.528, 0.508)),
        (1.0, (0.3148700155, 0.2452830306, 0.2460227371), (0.317, 0.250, 0.255)),
        (3.0, (0.0473255097, 0.0674330276, 0.0673981052), (0.0475, 0.0656, 0.0680)),
    ],
)
def test_predicted_errors_are_those_of_other_packages(epsilon, theirs, simulated):
    """k = 16, n = 996: VAR_Pure of multi-freq-ldpy 0.2.5 summed over values for GRR, OUE and OLH
    (taking the hash as ideal), and the errors of 40 runs of pure-ldp 1.2.0 (standard error about 3
    %)."""
    rows = {row.protocol: row.total for row in compare(16, epsilon, 996)}
    found = [rows[name] for name in ("k-ary", "unary", "local-hashing")]
    assert found == pytest.approx(theirs, rel=1e-6)
    assert found == pytest.approx(simulated, rel=0.09)


def test_users_needed_make_the_interval_as_narrow():
    protocol = KAry(10, 0.5)
    n = protocol.users_needed(0.02)
    assert (
        quantile(0.95) * math.sqrt(protocol.variance(0.0, n))
        <= 0.02
        < (quantile(0.95) * math.sqrt(protocol.variance(0.0, n - 1)))
    )
    assert LaplaceMean(0.0, 1.0, 1.0).users_needed(0.1) == math.ceil(
        2 * (quantile(0.95) / 0.1) ** 2
    )


def test_the_sum_of_laplaces_has_the_quantile_of_its_convolution():
    """Two Laplaces: P(|S| > s) = (1 + s / 2) e^-s; many: the normal law."""
    s = laplace_quantile(2, 0.9)
    assert (1 + s / 2) * math.exp(-s) == pytest.approx(0.1, rel=1e-9)
    assert laplace_quantile(1000, 0.95) == pytest.approx(quantile(0.95) * math.sqrt(2000), rel=1e-3)
    assert laplace_quantile(1001, 0.95) == pytest.approx(laplace_quantile(1000, 0.95), rel=2e-3)


def test_the_fast_transform_is_the_matrix():
    signs = 1 - 2.0 * odd_parity(
        np.arange(16, dtype=np.uint64)[:, None] & np.arange(16, dtype=np.uint64)
    )
    x = np.random.default_rng(0).normal(size=16)
    assert walsh_hadamard(x) == pytest.approx(signs @ x, rel=1e-12)
    with pytest.raises(ConfigError, match="power of two, found"):
        walsh_hadamard(np.zeros(6))


@pytest.mark.parametrize("protocol", ALL, ids=lambda protocol: protocol.kind)
class TestEveryProtocol:
    def test_describes_itself(self, protocol):
        assert protocol_from(protocol.describe()) == protocol

    def test_costs_what_it_says(self, protocol):
        event = protocol.event()
        if isinstance(protocol, LaplaceMean):
            assert isinstance(event, LaplaceEvent)
            assert 1 / event.noise_multiplier == pytest.approx(1.0, rel=1e-10)
            assert 1 / event.noise_multiplier <= 1.0
        elif isinstance(protocol, GaussianMean):
            assert isinstance(event, GaussianEvent)
        else:
            assert event == BoundedEvent(1.0)

    def test_a_report_depends_on_its_user_and_step_only(self, protocol):
        values = values_of(protocol, 300)
        together = protocol.report(values, DICE)
        alone = protocol.report(values[200:], DICE, users=np.arange(200, 300))
        for name, column in together.columns.items():
            assert np.array_equal(column[200:], alone.column(name))
        later = protocol.report(values, DICE, step=1)
        assert any(
            not np.array_equal(column, later.column(name))
            for name, column in together.columns.items()
        )

    def test_secure_dice_work(self, protocol):
        assert len(protocol.report(values_of(protocol, 10), Secure())) == 10

    def test_reports_of_another_protocol_are_refused(self, protocol):
        with pytest.raises(ConfigError, match="use the protocol of the reports"):
            protocol.estimate(Reports({"kind": "other"}, {}))

    def test_a_user_named_twice_is_refused(self, protocol):
        with pytest.raises(PrivacyError, match="named twice"):
            protocol.report(values_of(protocol, 2), DICE, users=np.array([3, 3]))

    def test_more_users_narrow_the_interval(self, protocol):
        def width(n):
            found = protocol.estimate(protocol.report(values_of(protocol, n), DICE))
            return float(np.max(found.errors if protocol in FREQUENCY else found.error))

        assert width(4000) == pytest.approx(width(1000) / 2, rel=0.2)


@pytest.mark.parametrize("protocol", FREQUENCY, ids=lambda protocol: protocol.kind)
def test_values_outside_the_domain(protocol):
    with pytest.raises(
        ConfigError, match=rf"user 1 holds {protocol.k}, outside the declared domain"
    ):
        protocol.report(np.array([0, protocol.k]), DICE)
    with pytest.raises(ConfigError, match="whole numbers"):
        protocol.report(np.array([0.5]), DICE)


@pytest.mark.parametrize("protocol", MEANS, ids=lambda protocol: protocol.kind)
@pytest.mark.parametrize("bad", [3.5, np.nan, -np.inf])
def test_values_outside_the_range(protocol, bad):
    with pytest.raises(
        ConfigError, match=r"user 1 holds .*, outside the declared range -1..3 \(1 of 2 users do\)"
    ):
        protocol.report(np.array([0.0, bad]), DICE)


MALFORMED = {
    "k-ary": {"value": np.array([0, 5, -1, 4])},
    "hadamard": {"index": np.array([0, 8, -1, 7])},
    "randomized-response": {"value": np.array([0, 2, -1, 1])},
    "local-hashing": {
        "a": np.array([0, 2**31 - 1, 5, 7]),
        "b": np.array([0, 0, -1, 7]),
        "cell": np.array([0, 0, 0, 1]),
    },
    "unary": {"bits": np.array([[0], [1], [0b100], [0b11111000]], dtype=np.uint8)},
    "laplace": {"value": np.array([0.0, np.nan, 1e300, 0.5])},
    "gaussian": {"value": np.array([0.0, np.inf, -1e9, 0.5])},
}


@pytest.mark.parametrize("protocol", ALL, ids=lambda protocol: protocol.kind)
def test_malformed_reports_are_counted_and_left_out(protocol):
    """Of four reports, the second and the third cannot be."""
    found = protocol.estimate(Reports(protocol.describe(), MALFORMED[protocol.kind], unreadable=3))
    assert (found.reports, found.refused) == (2, 5)
    broken = {name: column[1:3] for name, column in MALFORMED[protocol.kind].items()}
    with pytest.raises(
        ConfigError, match=f"not one of 2 reports is a possible report of {protocol.kind}"
    ):
        protocol.estimate(Reports(protocol.describe(), broken))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan, 1e-12, True])
def test_bad_epsilons(epsilon):
    with pytest.raises(PrivacyError, match="must be between 1e-09 and 40"):
        flip_threshold(epsilon)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: KAry(1, 1.0), "between 2 and"),
        (lambda: UnaryEncoding(10**6, 1.0), "use hadamard or local-hashing"),
        (lambda: LocalHashing(10, 1.0, prime=12), "needs a prime"),
        (lambda: LocalHashing(10, 1.0, prime=7), "needs a prime"),
        (lambda: LaplaceMean(1.0, 1.0, 1.0), "finite range low < high"),
        (lambda: compare(4, 1.0, 0), "at least one user"),
        (
            lambda: protocol_from({"kind": "magic"}),
            "unknown protocol 'magic'; known ones: randomized-response, k-ary",
        ),
        (lambda: protocol_from({"kind": "k-ary", "k": 3}), "cannot be read from"),
        (
            lambda: protocol_from({"kind": "k-ary", "k": "3", "epsilon": 1.0}),
            "has numbers as parameters",
        ),
        (lambda: quantile(1.0), "a confidence is a probability"),
    ],
)
def test_bad_parameters(make, words):
    with pytest.raises(ConfigError, match=words):
        make()


def test_an_epsilon_that_drowns_in_the_domain_is_refused():
    with pytest.raises(PrivacyError, match="below what 64-bit coins can show"):
        uniform_threshold(2**30, 1e-9)
