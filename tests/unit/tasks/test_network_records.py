"""Sums of single records' clipped gradients of networks (silo:SILO-10): the integers move by no more
than the clip when a record is replaced or goes, whatever floats do."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import bruit as br
from bruit.errors import ConfigError
from bruit.tasks.networks.with_torch import record_sums
from bruit.tasks.records import Records
from tests.unit.tasks.test_networks import MODULES, by_hand, moved, task_of

UNIT = 2.0**40


def integer_norm(row):
    return math.sqrt(sum(int(number) ** 2 for number in row))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MODULES)
def test_sums_are_those_of_clipped_records(name, dtype):
    """All peers at once or one by one, all records or those whose coin is low, one model for all
    or one each."""
    task = task_of(MODULES[name], dtype=dtype)
    ids, clip = np.arange(3), 0.7
    coins = np.random.default_rng(3).random((3, 7))
    shared = np.tile(moved(task)[:1], (3, 1))
    for models in (moved(task), shared):
        for asked, rate in ((None, 1.0), (coins, 0.5)):
            found = task.clipped_sum(ids, models, asked, rate, clip, UNIT) / UNIT
            votes = task.clip_votes(ids, models, asked, rate, clip)
            for peer in ids:
                each = by_hand(task, peer, models[peer]).astype(np.float64)
                norms = np.linalg.norm(each, axis=1)
                taken = np.ones(len(each)) if asked is None else coins[peer, : len(each)] < rate
                wanted = (taken * np.minimum(1, clip / norms)) @ each
                near = 1e-4 if dtype == "float64" else 3e-3 * len(each) * clip
                np.testing.assert_allclose(found[peer], wanted, atol=near)
                assert votes[peer] == np.sum(np.where(norms < clip, 1, -1) * taken)
                few = None if asked is None else coins[peer : peer + 1]
                one = task.clipped_sum(
                    ids[peer : peer + 1], models[peer : peer + 1], few, rate, clip, UNIT
                )
                np.testing.assert_allclose(one[0] / UNIT, found[peer], atol=1e-6)


def swapped(task, record, row, target):
    """The same task with one record of peer 0 replaced."""
    block = task.records.blocks[0]
    block.features[0, record] = row
    block.targets[0, record] = target
    return task


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MODULES)
def test_a_replaced_record_moves_the_integers_by_two_clips_at_most(name, dtype):
    """The worst found: opposite gradients of records far longer than the clip."""
    rng = np.random.default_rng(4)
    for rate in (1.0, 0.6):
        coins = None if rate == 1.0 else rng.random((1, 40))
        task = task_of(MODULES[name], sizes=(40,), dtype=dtype)
        model, clip, unit = moved(task)[:1], 0.3, 2.0**30
        least = 0.0
        for trial in range(12):
            before = task.clipped_sum(np.zeros(1, int), model, coins, rate, clip, unit)[0]
            record = int(rng.integers(40))
            row = rng.normal(size=9) * 10.0 ** rng.integers(-3, 4)
            swapped(task, record, row, trial % 3)
            after = task.clipped_sum(np.zeros(1, int), model, coins, rate, clip, unit)[0]
            apart = integer_norm(after - before) / (unit * clip)
            assert apart <= 2.0
            least = max(least, apart)
        assert least > 0.9  # the bound is not idle


@pytest.mark.parametrize("name", MODULES)
def test_a_record_that_goes_moves_the_integers_by_one_clip(name):
    """Its place stays empty; by a coin the others move together, and their bits stay."""
    task = task_of(MODULES[name], sizes=(40,))
    model, clip, unit = moved(task)[:1], 0.3, 2.0**30
    rng = np.random.default_rng(5)
    for _ in range(6):
        coins = rng.random((1, 40))
        record = int(rng.integers(40))
        here, gone = coins.copy(), coins.copy()
        here[0, record], gone[0, record] = 0.0, 1.0
        sums = [
            task.clipped_sum(np.zeros(1, int), model, some, 0.5, clip, unit)[0]
            for some in (here, gone)
        ]
        assert integer_norm(sums[0] - sums[1]) <= unit * clip
        votes = [task.clip_votes(np.zeros(1, int), model, s, 0.5, clip)[0] for s in (here, gone)]
        assert abs(votes[0] - votes[1]) == 1


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MODULES)
def test_the_bits_of_a_record_do_not_depend_on_the_others(name, dtype):
    """The hypothesis of silo:SILO-10, tried: all other records of a chunk are swapped."""
    task = task_of(MODULES[name], dtype=dtype)
    network, rng = task.network, np.random.default_rng(6)
    for chunk in (16, 64, 128):
        rows = rng.normal(size=(2, chunk, 9)) * np.array([1.0, 50.0])[:, None, None]
        targets = rng.integers(0, 3, (2, chunk)).astype(float)
        for slot in (0, 7, chunk - 1):
            rows[1, slot], targets[1, slot] = rows[0, slot], targets[0, slot]
            bits = []
            for crowd in (0, 1):
                batch = network.batch(rows[crowd : crowd + 1], targets[crowd : crowd + 1])
                terms = network.record_terms(task.start()[None], batch)
                bits.append(torch.cat([record_sums._sides(t)[slot] for t in terms]))
            assert torch.equal(*bits)


def test_where_slots_are_not_alike_nobody_moves():
    """Then all records are computed, each in its own slot, and the sum is the same."""
    task = task_of("mlp:4", sizes=(30,))
    model, coins = moved(task)[:1], np.random.default_rng(0).random((1, 30))
    task.network.alike.update({(1, 1, 32): True})
    moved_together = task.clipped_sum(np.zeros(1, int), model, coins, 0.3, 1.0, UNIT)
    task.network.alike.update({(1, 1, 32): False})
    still = task.clipped_sum(np.zeros(1, int), model, coins, 0.3, 1.0, UNIT)
    np.testing.assert_allclose(moved_together / UNIT, still / UNIT, atol=1e-4)


class Wild(nn.Module):
    """Inputs above 5 give no number at all, and above 3 an infinite one."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(9, 3)

    def forward(self, x):
        big = x.abs().amax(dim=1, keepdim=True)
        return self.body(x) + torch.where(big > 5, torch.nan, torch.where(big > 3, torch.inf, 0.0))


@pytest.mark.parametrize("module", [Wild, "mlp:4"])
def test_what_is_not_finite_counts_as_nothing(module):
    """No exception: that would tell of a record."""
    task = task_of(module, sizes=(20,))
    model = task.start()[None]
    task.records.blocks[0].features[0] = np.clip(task.records.blocks[0].features[0], -2, 2)
    before = task.clipped_sum(np.zeros(1, int), model, None, 1.0, 1.0, UNIT)
    size = 1e200 if module == "mlp:4" else 10.0
    swapped(task, 3, np.full(9, size), 0.0)
    after = task.clipped_sum(np.zeros(1, int), model, None, 1.0, 1.0, UNIT)
    assert integer_norm(after[0] - before[0]) <= UNIT
    swapped(task, 4, np.full(9, 4.0), 0.0)
    assert np.abs(task.clipped_sum(np.zeros(1, int), model, None, 1.0, 1.0, UNIT)).max() < 2**50


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_of_all_sizes_are_never_longer_than_the_clip(dtype):
    """One record alone: inputs from 1e-300 to 1e300, whose squares underflow and overflow."""
    rng = np.random.default_rng(8)
    clip, unit = 0.5, 2.0**30
    for _ in range(40):
        row = rng.normal(size=9) * 10.0 ** rng.integers(-300, 300, 9)
        records = Records.of(row[None], np.zeros(1), np.zeros(1, int), classes=3)
        task = br.tasks.Torch(nn.Linear(9, 3, bias=False), records=records, dtype=dtype)
        models = task.start()[None] * 10.0 ** rng.integers(-30, 30)
        found = task.clipped_sum(np.zeros(1, int), models, None, 1.0, clip, unit)[0]
        assert integer_norm(found) <= unit * clip


def test_cancelling_positions_do_not_fool_the_norm():
    """A convolution whose positions cancel: |sum| is far below the sum of |..|, and it is the
    stored sum that is measured."""
    net = nn.Sequential(
        nn.Unflatten(1, (1, 9)), nn.Conv1d(1, 3, 1, bias=False), nn.Flatten(), nn.Linear(27, 3)
    )
    task = task_of(net, sizes=(6,))
    block = task.records.blocks[0]
    block.features[:] = np.tile([1e8, -1e8, 1e-8] * 3, (6, 1))
    found = task.clipped_sum(np.zeros(1, int), task.start()[None], None, 1.0, 1e-3, 2.0**40)
    assert integer_norm(found[0]) <= 6 * 2.0**40 * 1e-3


def test_grains_too_coarse_for_the_model_are_refused():
    task = task_of("mlp:4")
    with pytest.raises(ConfigError, match="more than half of the clip"):
        task.clipped_sum(np.arange(3), moved(task), None, 1.0, 1.0, 2.0)
    with pytest.raises(ConfigError, match="too small for products of floats"):
        task.clipped_sum(np.arange(3), moved(task), None, 1.0, 1e-9, 2.0**60)


def test_what_a_sum_rests_on_is_in_the_account():
    task = task_of("mlp:4", sizes=(20, 20, 20))
    noise = br.RecordSums(clip=1.0, sigma=3.0, sample_rate=0.5, divisor=10.0)
    run = br.run(br.GossipSGD(rate=0.5), "complete:3", task, privacy=noise, steps=3)
    assert run.epsilon().guarantee is not None
    told = [h.text for h in run.epsilon().guarantee.hypotheses]
    assert any("silo:SILO-10" in text for text in told)


class PositionsFirst(nn.Module):
    """Nine positions on the first axis of two layers, as of sequences; records on the second."""

    def __init__(self, way):
        super().__init__()
        self.way = way
        self.one, self.two = nn.Linear(1, 4, bias=False), nn.Linear(4, 3, bias=False)

    def forward(self, x):
        if self.way == "rows":  # positions of all records in one long row of rows
            h = torch.tanh(self.one(x.reshape(-1, 1)))
            return self.two(h.reshape(len(x), 9, 4).sum(1))
        if self.way == "order":
            order = x[:, 0].argsort()
            h = torch.tanh(self.one(x[order].sum(1, keepdim=True)))
            return self.two(h)[order.argsort()]
        longer = torch.cat([x, x[:, :7]], dim=1)[:, :, None]  # as many positions as a chunk
        return self.two(torch.tanh(self.one(longer.transpose(0, 1).contiguous()))).sum(0)


@pytest.mark.parametrize("way", ["positions", "rows", "order"])
def test_records_are_clipped_where_a_layer_sees_something_else_on_its_first_axis(way):
    """16 positions and chunks of 16 records: clipping positions would move the sum by more than two
    clips. Peers with models of their own meet those too."""
    task = task_of(PositionsFirst(way), sizes=(16, 12))
    models, clip, ids = moved(task)[:2], 0.01, np.arange(2)
    found = task.clipped_sum(ids, models, None, 1.0, clip, UNIT) / UNIT
    for peer in ids:
        each = by_hand(task, peer, models[peer]).astype(np.float64)
        norms = np.linalg.norm(each, axis=1)
        np.testing.assert_allclose(found[peer], np.minimum(1, clip / norms) @ each, atol=1e-5)
        mean = task.gradient(ids, models)[peer]
        np.testing.assert_allclose(mean, each.mean(axis=0), atol=1e-9)


class Looking(nn.Module):
    """Looks numbers up, and knows ten of them."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(10, 2), nn.Linear(18, 3)

    def forward(self, x):
        return self.head(self.table(x.abs().long()).flatten(1))


def test_a_record_at_which_the_network_raises_counts_as_nothing():
    """An exception would tell of it; the others count as before."""
    task = task_of(Looking, sizes=(20,))
    model, one = task.start()[None], np.zeros(1, int)
    before = task.clipped_sum(one, model, None, 1.0, 1.0, UNIT)
    swapped(task, 3, np.full(9, 50.0), 0.0)
    after = task.clipped_sum(one, model, None, 1.0, 1.0, UNIT)
    assert 0 < integer_norm(after[0] - before[0]) <= UNIT
    assert abs(task.clip_votes(one, model, None, 1.0, 1.0)[0]) <= 19


def test_the_inner_clip_knows_no_number_of_records():
    """A record that joins may make chunks larger; all others are clipped as before."""
    layer = nn.Linear(9, 3, bias=False)
    few, more = (task_of(layer, sizes=(m,)) for m in (16, 17))
    for task in (few, more):
        task.records.blocks[0].features[:] = 30.0
        task.records.blocks[0].targets[:] = 0.0
    sums = [
        task.clipped_sum(np.zeros(1, int), task.start()[None], None, 1.0, 0.3, UNIT)[0]
        for task in (few, more)
    ]
    assert integer_norm(sums[1] - sums[0]) <= 0.3 * UNIT


def test_slots_are_tried_in_the_shape_that_is_asked():
    task = task_of("mlp:4", sizes=(5, 3, 7))
    coins = np.random.default_rng(0).random((3, 7))
    task.clipped_sum(np.arange(3), moved(task), coins, 0.5, 1.0, UNIT)
    task.clipped_sum(np.arange(3), np.tile(task.start(), (3, 1)), coins, 0.5, 1.0, UNIT)
    assert {peers for _, peers, _ in task.network.alike} <= {1, 2, 3}
    assert {models for models, _, _ in task.network.alike} >= {1}
