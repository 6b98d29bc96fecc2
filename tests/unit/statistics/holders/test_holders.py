"""Two holders in one process: bit for bit what the clear circuit says, and every malformed message
is refused."""

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bruit.accounts.account import Account, unrecorded
from bruit.errors import ConfigError, LocalProtocolError, PrivacyError, RemoteProtocolError
from bruit.privacy.ledger import Budget
from bruit.statistics.holders import Spending, TablesQuestion, rehearse, rows_of, trusted_pair
from bruit.statistics.holders.circuits import evaluate
from bruit.statistics.holders.comparisons import DISTANCES, STATISTICS
from bruit.statistics.holders.holder import Holder
from bruit.statistics.holders.machine import KINDS, converse, pack
from bruit.statistics.holders.noisy_bit import NoisyBit, ordered
from bruit.statistics.holders.pair_machines import Evaluator, Garbler, PairJob, bytes_per_pair
from bruit.tasks.pairs import auc, gini, kendall_tau, scatter, u_statistic

SESSION = b"s" * 32


class Recorded:
    """Random bytes that are remembered, by size."""

    def __init__(self, seed):
        self._rng, self.drawn = np.random.default_rng(seed), []

    def __call__(self, size):
        self.drawn.append(self._rng.bytes(size))
        return self.drawn[-1]


def small_bit(statistic, epsilon):
    """Of numbers from -2 to 2, where a range is declared."""
    return NoisyBit(statistic, epsilon, **RANGES.get(statistic, {}))


RANGES = {statistic: {"within": (-2.0, 2.0)} for statistic in DISTANCES}


@pytest.mark.parametrize("statistic", sorted(STATISTICS))
def test_garbled_bits_are_those_of_the_clear_circuit_given_both_shares(statistic):
    """perso:LDP-11: results must be identical bit for bit given r_A, r_B."""
    bit, pairs = small_bit(statistic, 0.5), 22
    rng = np.random.default_rng(5)
    x, y = (
        bit.numbers(rng.integers(-2, 3, (pairs, bit.comparison.columns)).astype(float))
        for _ in range(2)
    )
    job = PairJob(bit, pairs, SESSION, batch=8)
    left, right = Recorded(1), Recorded(2)
    garbler, evaluator = Garbler(job, x, left), Evaluator(job, y, right)
    converse(garbler, evaluator)
    shares = [
        iter([data for data in side.drawn if len(data) < 16 * 8 and len(data) != 16])
        for side in (left, right)
    ]
    wanted = []
    for start in (0, 8, 16):
        part = slice(start, min(pairs, start + 8))
        bits = [
            bit.bits_of(numbers[part], lambda size, share=share: next(share))
            for numbers, share in zip((x, y), shares, strict=True)
        ]
        wanted.append(evaluate(bit.circuit, *bits)[:, 0])
    assert (garbler.bits == np.concatenate(wanted)).all()
    assert (evaluator.bits == garbler.bits).all()
    assert garbler.done
    assert evaluator.done
    assert garbler.batches_done == 3


def test_bytes_per_pair_are_what_is_said():
    bit = NoisyBit("auc", 1.0)
    job = PairJob(bit, 256, SESSION, batch=128)
    x = np.zeros((256, 1), dtype=np.uint32)
    said = converse(Garbler(job, x), Evaluator(job, x))
    setup = 1 + 128 * 33 + 1 + 33
    assert said - setup == 256 * bytes_per_pair(bit, 128)
    assert bit.circuit.ands <= 32 + 24


def holders(question, first, second, **options):
    return Holder("garbler", question, first, unrecorded, **options), Holder(
        "evaluator", question, second, unrecorded
    )


def two_tables(seed=0, n=900, border=300):
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.4
    scores = np.round(rng.normal(size=n) + labels, 1)
    return scores, labels.astype(float), border


def test_auc_of_two_tables_is_the_auc_of_their_union():
    """With hardly any noise: within 5 standard errors (false alarm < 1e-6), ties counted by
    half."""
    scores, labels, border = two_tables()
    question = TablesQuestion("auc", 16.0)
    first = rows_of(question, scores[:border], labels[:border])
    second = rows_of(question, scores[border:], labels[border:])
    garbler, evaluator = holders(question, first, second)
    converse(garbler, evaluator)
    assert (garbler.bits == evaluator.bits).all()
    assert garbler.crossing == evaluator.crossing > 0
    assert garbler.bits.shape == (1, int(min(labels.sum(), (1 - labels).sum())))
    found = question.estimate(garbler.bits)
    assert abs(found.value - auc(scores, labels)) < 5 * found.error
    clear = question.estimate(trusted_pair(question, first, second, seed=9))
    assert abs(clear.value - auc(scores, labels)) < 5 * clear.error


@pytest.mark.parametrize("split", [1, 60])
def test_an_auc_whose_classes_sit_apart_is_one_whichever_side_holds_the_positives(split):
    """All pairs cross, or none does but at a border: orientation is never lost."""
    question = TablesQuestion("auc", 16.0)
    scores, labels = np.arange(100.0), np.arange(100) >= 50
    for turned in (False, True):
        order = np.arange(100)[::-1] if turned else np.arange(100)
        parts = [
            rows_of(question, scores[part], labels[part]) for part in (order[:split], order[split:])
        ]
        garbler, evaluator = holders(question, *parts)
        converse(garbler, evaluator)
        assert garbler.bits.all()
        assert evaluator.bits.all()


def test_kendall_tau_of_two_tables():
    rng = np.random.default_rng(2)
    points = np.round(rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 601), 1)
    question = TablesQuestion("kendall", 30.0, rounds=2)
    answer = rehearse(question, rows_of(question, points[:300]), rows_of(question, points[300:]))
    assert abs(answer.raw - kendall_tau(points[:, 0], points[:, 1])) < 5 * answer.error
    assert answer.pairs == 600
    assert -1 <= answer.low <= answer.value <= answer.high <= 1
    assert answer.exact_epsilon <= 30.0


def test_one_row_each_and_an_interval_that_knows_how_little_that_is():
    question = TablesQuestion("duplicates", 16.0)
    answer = rehearse(
        question, rows_of(question, np.array([4.0])), rows_of(question, np.array([4.0]))
    )
    assert (answer.value, answer.pairs, answer.crossing) == (1.0, 1, 1)
    assert answer.low < 0.25
    assert answer.high == 1.0


@pytest.mark.parametrize(("epsilon", "pairs"), [(1.0, 40), (4.0, 100), (0.5, 400)])
def test_intervals_hold_as_often_as_they_say(epsilon, pairs):
    """Exact coverage, by the binomial law of the number of ones, for statistics all over 0..1:
    never below 95 %; more by what the step of one bit adds."""
    question = TablesQuestion("auc", epsilon)
    found = [question.estimate((np.arange(pairs) < ones)[None]) for ones in range(pairs + 1)]
    coverage = []
    for truth in np.linspace(0.02, 0.98, 49):
        chance = question.bit.flip + truth * (1 - 2 * question.bit.flip)
        weights = stats.binom.pmf(np.arange(pairs + 1), pairs, chance)
        coverage.append(
            sum(
                weight
                for weight, part in zip(weights, found, strict=True)
                if part.low <= truth <= part.high
            )
        )
        mean = sum(weight * part.value for weight, part in zip(weights, found, strict=True))
        assert mean == pytest.approx(truth, abs=1e-9)
    assert min(coverage) >= 0.95
    assert np.mean(coverage) < 0.99


def test_more_rounds_widen_the_interval_by_what_shared_rows_may_add():
    """perso:LDP-10: Var <= (Var h~ + (P - 1) zeta_2) / (P m) with 2 zeta_1 <= zeta_2; all by hand
    at share 1/2."""
    question = TablesQuestion("auc", 8.0, rounds=4)
    found = question.estimate((np.arange(400) % 2 == 0).reshape(4, 100))
    p = question.bit.flip
    assert found.error == pytest.approx(
        np.sqrt((0.25 + 3 * (0.25 - p * (1 - p))) / 400) / (1 - 2 * p)
    )


def test_every_row_takes_part_at_most_p_times_and_pairings_are_public_draws():
    labels = np.arange(101) % 3 == 0
    for statistic in ("auc", "kendall"):
        question = TablesQuestion(statistic, 3.0, rounds=4)
        pairs = question.pairs(labels, seed=3)
        assert (pairs == question.pairs(labels, seed=3)).all()
        assert (pairs != question.pairs(labels, seed=4)).any()
        for row in pairs:
            assert np.bincount(row.reshape(-1), minlength=101).max() == 1
        if statistic == "auc":
            assert labels[pairs[..., 0]].all()
            assert not labels[pairs[..., 1]].any()
        assert pairs[..., 0].size == question.pairs_of(101, int(labels.sum()))


STAGES = ("hello", "hello", "points", "point", "columns", "tables", "outputs")


def stopped_at(stage):
    """A conversation stopped before one of its messages: who is to hear it, and the honest
    message."""
    question = TablesQuestion("duplicates", 2.0)
    rows = rows_of(question, np.arange(40.0))
    garbler, evaluator = holders(question, rows, rows)
    waiting = [(evaluator, message) for message in garbler.start()] + [
        (garbler, said) for said in evaluator.start()
    ]
    for _ in range(stage):
        hearer, message = waiting.pop(0)
        other = garbler if hearer is evaluator else evaluator
        waiting += [(other, answer) for answer in hearer.receive(message)]
    return waiting[0]


@pytest.mark.parametrize("stage", range(7))
def test_malformed_messages_are_refused_at_every_stage_and_change_nothing(stage):
    hearer, honest = stopped_at(stage)
    assert KINDS[honest[0]] == STAGES[stage]
    bad = [
        b"",
        b"\xff",
        honest[:-1],
        honest + b"\0",
        honest[:1],
        bytes([(honest[0] + 1) % 7]) + honest[1:],
        honest[:1] + b"\xff" * (len(honest) - 1),
    ]
    if STAGES[stage] in ("columns", "tables"):
        # any bytes of the right size are columns or tables; what they lead to is refused later
        bad.pop()
    for message in bad:
        with pytest.raises(RemoteProtocolError):
            hearer.receive(message)
    hearer.receive(honest)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 6))
def test_any_bytes_raise_nothing_else(data, kind):
    question = TablesQuestion("auc", 2.0)
    rows = rows_of(question, np.arange(4.0), np.array([0, 1, 0, 1]))
    for machine in holders(question, rows, rows):
        machine.start()
        for message in (data, bytes([kind]) + data):
            with pytest.raises(RemoteProtocolError):
                machine.receive(message)


@pytest.mark.parametrize("forged", ["tables", "bit", "proof"])
def test_forged_tables_and_forged_outputs_are_found_out(forged):
    numbers = ordered(np.arange(20.0)[:, None])
    job = PairJob(NoisyBit("auc", 1.0), 20, SESSION)
    garbler, evaluator = Garbler(job, numbers), Evaluator(job, numbers[::-1])
    evaluator.start()
    point, columns = evaluator.receive(garbler.start()[0])
    garbler.receive(point)
    tables = garbler.receive(columns)[0]
    if forged == "tables":
        tables = tables[:1] + bytes(len(tables) - 1)
    outputs = bytearray(evaluator.receive(tables)[0])
    outputs[{"tables": 0, "bit": 1, "proof": -1}[forged]] ^= 0 if forged == "tables" else 128
    with pytest.raises(RemoteProtocolError, match="did not give"):
        garbler.receive(bytes(outputs))
    assert not garbler.done


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 3.0}, "epsilon = '3.0', we with 2.0"),
        ({"statistic": "kendall"}, "statistic = 'kendall'"),
        ({"circuit": "00"}, "circuit"),
        ({"role": "evaluator"}, "both holders are the evaluator"),
        ({"rows": 0}, "1 to 1048576 rows"),
        ({"rows": "many"}, "1 to 1048576 rows"),
        ({"rows": True}, "1 to 1048576 rows"),
        ({"labels": "0"}, "not 1 bytes in hexadecimal"),
        ({"labels": None}, "not 1 bytes in hexadecimal"),
        ({"nonce": "ff"}, "not 32 bytes in hexadecimal"),
        ({"extra": 1}, "does not name what this version names"),
        ({"labels": "00", "rows": 4}, "0 positives of 7"),
    ],
)
def test_a_hello_that_does_not_fit_is_told(change, message):
    question = TablesQuestion("auc", 2.0)
    garbler = Holder(
        "garbler", question, rows_of(question, np.arange(4.0), np.array([0, 1, 0, 1])), unrecorded
    )
    evaluator = Holder(
        "evaluator", question, rows_of(question, np.arange(3.0), np.zeros(3)), unrecorded
    )
    hello = json.loads(garbler.start()[0][1:])
    evaluator.start()
    with pytest.raises(RemoteProtocolError, match=message):
        evaluator.receive(pack("hello", json.dumps(hello | change).encode()))


def test_a_claim_of_many_rows_is_refused_before_memory_is_taken_for_it():
    """2^24 rows cost 877 MiB on the word of the other holder; now its own limit, or 2^20, is the
    most."""
    question = TablesQuestion("duplicates", 2.0, rounds=4)
    rows, spent = rows_of(question, np.arange(40.0)), []
    for options, claimed, most in (
        ({}, 2**18 + 1, 2**18),
        ({}, 2**24, 2**18),
        ({"most_rows": 100}, 26, 25),
    ):
        garbler = Holder("garbler", question, rows, unrecorded)
        evaluator = Holder("evaluator", question, rows, spent.append, **options)
        evaluator.start()
        hello = json.loads(garbler.start()[0][1:]) | {"rows": claimed}
        tracemalloc.start()
        with pytest.raises(
            RemoteProtocolError, match=f"1 to {most} rows, it says {claimed}; .* --most-rows"
        ):
            evaluator.receive(pack("hello", json.dumps(hello).encode()))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2**20
    assert spent == []
    with pytest.raises(ConfigError, match="1 to 16777216 rows"):
        Holder("garbler", question, rows, unrecorded, most_rows=2**24 + 1)


@pytest.mark.parametrize("statistic", ["auc", "kendall"])
def test_every_honest_message_is_as_long_as_it_may_be(statistic):
    """The size that is due is known beforehand: nothing longer is read, and nothing honest is
    refused."""
    question = TablesQuestion(statistic, 8.0)
    values = np.arange(3000.0) if statistic == "auc" else np.arange(6000.0).reshape(3000, 2)
    labels = np.arange(3000) % 2 if statistic == "auc" else None
    halves = [
        rows_of(question, values[part], None if labels is None else labels[part])
        for part in (slice(0, 1400), slice(1400, 3000))
    ]
    garbler, evaluator = holders(question, *halves)
    waiting = [(evaluator, message) for message in garbler.start()] + [
        (garbler, said) for said in evaluator.start()
    ]
    while waiting:
        hearer, message = waiting.pop(0)
        assert len(message) <= hearer.largest
        if message[0] != KINDS.index("hello"):
            assert len(message) == hearer.largest
        other = garbler if hearer is evaluator else evaluator
        waiting += [(other, answer) for answer in hearer.receive(message)]
    assert garbler.done
    assert evaluator.done


def test_what_cannot_be_answered_is_refused_before_anything_is_spent():
    spent = []
    question = TablesQuestion("auc", 0.01)
    rows = rows_of(question, np.arange(4.0), np.array([0, 1, 0, 1]))
    garbler = Holder("garbler", question, rows, unrecorded)
    evaluator = Holder("evaluator", question, rows, spend=spent.append)
    evaluator.start()
    with pytest.raises(
        RemoteProtocolError,
        match=r"4 pairs at epsilon = 0.01 say nothing.*takes about [0-9]+ pairs",
    ):
        evaluator.receive(garbler.start()[0])
    assert spent == []
    ones = rows_of(question, np.arange(4.0), np.ones(4))
    with pytest.raises(ConfigError, match="8 positives of 8"):
        trusted_pair(question, ones, ones, seed=0)


def test_rows_are_checked():
    question = TablesQuestion("auc", 1.0)
    for values, labels, message in (
        (np.zeros((2, 2)), np.zeros(2), "rows of 1 numbers"),
        (np.zeros(2), None, "an AUC needs labels"),
        (np.zeros(2), np.array([0, 2]), "labels are 0 or 1"),
        (np.zeros(2), np.zeros(3), "labels are 0 or 1"),
        (np.array([0, np.nan]), np.zeros(2), "missing or infinite"),
        (np.zeros(0), np.zeros(0), "1 to 16777216 rows"),
    ):
        with pytest.raises(ConfigError, match=message):
            rows_of(question, values, labels)
    with pytest.raises(ConfigError, match="takes no labels"):
        rows_of(TablesQuestion("kendall", 1.0), np.zeros((2, 2)), np.zeros(2))
    with pytest.raises(ConfigError, match="rounds=0"):
        TablesQuestion("auc", 1.0, rounds=0)
    with pytest.raises(LocalProtocolError, match="not over"):
        _ = Holder(
            "garbler", question, rows_of(question, np.zeros(2), np.array([0, 1])), unrecorded
        ).bits


def test_spending_is_written_before_anything_leaves_and_limits_hold(tmp_path):
    account = Account(tmp_path / "account.jsonl", limit=Budget(5.0))
    record = Spending(account)
    question = TablesQuestion("auc", 2.0)
    rows = rows_of(question, np.arange(40.0), np.arange(40) % 2)
    for _ in range(2):
        garbler = Holder("garbler", question, rows, unrecorded)
        evaluator = Holder("evaluator", question, rows, record.spend)
        evaluator.start()
        evaluator.receive(garbler.start()[0])  # and then the line breaks: it counts
    paid = [one.price.epsilon for one in account.balance().charged]
    assert paid == [question.exact_epsilon] * 2
    evaluator = Holder("evaluator", question, rows, record.spend)
    evaluator.start()
    with pytest.raises(PrivacyError, match=r"paid epsilon = 4 so far.*above the limit 5"):
        evaluator.receive(Holder("garbler", question, rows, unrecorded).start()[0])
    account.path.write_text('[{"epsilon": -1}]')
    with pytest.raises(ConfigError, match="put back the file"):
        account.balance()


def test_the_end_is_the_end():
    question = TablesQuestion("duplicates", 2.0)
    garbler, evaluator = holders(question, *[rows_of(question, np.arange(10.0))] * 2)
    converse(garbler, evaluator)
    with pytest.raises(RemoteProtocolError, match="after the end"):
        garbler.receive(b"\0")
    with pytest.raises(ConfigError, match="pairs of 1 numbers"):
        Garbler(PairJob(question.bit, 0, SESSION), np.zeros((0, 1), dtype=np.uint32))


TRUTHS = {
    "gini": lambda rows: u_statistic(rows, gini()),
    "variance": lambda rows: float(np.var(rows[:, 0], ddof=1)),
    "scatter": lambda rows: u_statistic(rows, scatter()),
}


@pytest.mark.parametrize("name", sorted(DISTANCES))
def test_distances_of_two_tables_are_those_of_their_union(name):
    """With hardly any noise: within 5 standard errors (false alarm < 1e-6), by circuits and in the
    clear, for numbers that a range holds only after shifting."""
    rng = np.random.default_rng(3)
    rows = np.round(rng.beta(2, 5, (1200, 1)) * 60 + 20, 2)
    if name == "scatter":
        rows = np.hstack((rows, rng.integers(0, 2, (1200, 1))))
    question = TablesQuestion(name, 16.0, within=(20.0, 80.0))
    first, second = rows_of(question, rows[:400]), rows_of(question, rows[400:])
    truth = TRUTHS[name](rows)
    garbled = rehearse(question, first, second)
    assert garbled.crossing > 200
    clear = question.estimate(trusted_pair(question, first, second, seed=9))
    for found, value in ((garbled, garbled.raw), (clear, clear.value)):
        assert abs(value - truth) < 5 * found.error
        assert found.error < truth / 2
        assert found.low <= value <= found.high


def test_both_parties_mean_the_same_range():
    rows = np.linspace(20, 70, 40)
    one, other = (TablesQuestion("gini", 16.0, within=(20.0, high)) for high in (80.0, 90.0))
    garbler, evaluator = (
        Holder("garbler", one, rows_of(one, rows), unrecorded),
        Holder("evaluator", other, rows_of(other, rows), unrecorded),
    )
    why = "asks with statistic = 'gini in 20.0..80.0', we with 'gini in 20.0..90.0'"
    with pytest.raises(RemoteProtocolError, match=why):
        converse(garbler, evaluator)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: TablesQuestion("gini", 1.0), "declare low and high"),
        (lambda: TablesQuestion("variance", 1.0), "declare low and high"),
        (lambda: TablesQuestion("gini", 1.0, within=(1.0, 1.0)), "low < high"),
        (lambda: TablesQuestion("gini", 1.0, within=(0.0, np.inf)), "two finite ones"),
        (lambda: TablesQuestion("kendall", 1.0, within=(0.0, 1.0)), "leave low and high out"),
        (
            lambda: rows_of(TablesQuestion("gini", 1.0, within=(0.0, 1.0)), np.array([0.5, 1.5])),
            r"from 0\.5 to 1\.5, beyond the declared 0\.\.1",
        ),
        (
            lambda: rows_of(TablesQuestion("scatter", 1.0, within=(0.0, 1.0)), np.zeros((4, 3))),
            "rows of 2 numbers",
        ),
    ],
)
def test_ranges_that_cannot_be_are_refused(make, why):
    with pytest.raises(ConfigError, match=why):
        make()
