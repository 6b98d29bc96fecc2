"""Networks of torch: one row equals many, gradients are those of autograd, and what is said of them
is true."""

import subprocess
import sys
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

import bruit as br
from bruit.errors import ConfigError
from bruit.peers.site.own_csv import write_records
from bruit.peers.site.own_records import read_share, write_share
from bruit.tasks.data.own_rows import Agreement
from bruit.tasks.kinds.section import TaskSection
from bruit.tasks.networks.network_kind import TorchKind
from bruit.tasks.records import Records
from bruit.tasks.task import Constants


class Odd(nn.Module):
    """A parameter outside of any layer: no twin, so the slow way."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(9, 4)
        self.scale = nn.Parameter(torch.linspace(0.5, 2.0, 4))
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)) * self.scale)


def pictures():
    return nn.Sequential(
        nn.Unflatten(1, (1, 3, 3)),
        nn.Conv2d(1, 4, 2, padding=1, groups=1),
        nn.GroupNorm(2, 4),
        nn.ReLU(inplace=True),
        nn.Conv2d(4, 4, 2, groups=2, bias=False),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(36, 5),
        nn.LayerNorm(5),
        nn.Linear(5, 3),
    )


def lines():
    return nn.Sequential(
        nn.Unflatten(1, (3, 3)),
        nn.Conv1d(3, 4, 2, padding=1, stride=2),
        nn.Tanh(),
        nn.Linear(2, 3),
        nn.Flatten(),
        nn.Linear(12, 3),
    )


MODULES = {"mlp": "mlp:6,5", "pictures": pictures, "lines": lines, "odd": Odd}


def task_of(module, sizes=(5, 3, 7), dtype="float64", seed=0, **more):
    rng = np.random.default_rng(seed)
    many = sum(sizes)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    records = Records.of(rng.normal(size=(many, 9)), rng.integers(0, 3, many), owners, classes=3)
    return br.tasks.Torch(module, records=records, dtype=dtype, **more)


def moved(task, seed=1):
    """Models that differ from peer to peer."""
    rng = np.random.default_rng(seed)
    return task.start() + 0.3 * rng.normal(size=(task.peers, task.dim))


def by_hand(task, peer, model):
    """The gradients of a peer's single records by plain autograd  # (m, d)."""
    module = task.network.module_with(model)
    part = next(task.records.parts(np.array([peer]), 1))
    rows = part.features[0][part.weights[0] > 0]
    found = []
    for row, target in zip(rows, part.targets[0], strict=False):
        module.zero_grad()
        said = module(torch.tensor(row, dtype=task.network.dtype)[None])
        torch.nn.functional.cross_entropy(said, torch.tensor([int(target)])).backward()
        found.append(np.concatenate([p.grad.numpy().ravel() for p in module.parameters()]))
    return np.array(found)


@pytest.mark.parametrize("name", MODULES)
def test_gradients_of_all_peers_at_once_are_those_of_autograd(name):
    task = task_of(MODULES[name])
    models, ids = moved(task), np.arange(3)
    found = task.gradient(ids, models)
    for peer in ids:
        alone = task.gradient(ids[peer : peer + 1], models[peer : peer + 1])
        np.testing.assert_allclose(alone[0], found[peer], atol=1e-12)
        hand = by_hand(task, peer, models[peer]).mean(axis=0)
        np.testing.assert_allclose(found[peer], hand, atol=1e-12)
    assert task.network.batched == (name != "odd")
    draws = np.array([[0.0, 0.99], [0.5, 0.5], [0.2, 0.9]])
    some = task.gradient_sampled(ids, models, draws)
    each = by_hand(task, 2, models[2])
    np.testing.assert_allclose(some[2], (each[1] + each[6]) / 2, atol=1e-12)


def test_importing_bruit_and_listing_kinds_leaves_torch_alone():
    code = (
        "import sys, bruit; from bruit.tasks.kinds.kind import kinds; assert 'torch' in kinds(); "
        "print('torch' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


def test_all_begin_at_the_weights_of_the_seed_or_of_the_module():
    one, same, other = task_of("mlp:4"), task_of("mlp:4", seed=5), task_of("mlp:4", weights=1)
    assert np.array_equal(one.start(), same.start())
    assert not np.array_equal(one.start(), other.start())
    module = nn.Linear(9, 3)
    given = task_of(module)
    flat = torch.cat([p.detach().ravel() for p in module.parameters()]).double().numpy()
    assert np.array_equal(given.start(), flat)
    run = br.run(br.GossipSGD(rate=0.1), "complete:3", given, steps=1)
    begun = np.tile(flat, (3, 1))
    stepped = begun - 0.1 * given.gradient(np.arange(3), begun)
    np.testing.assert_allclose(run.estimates, np.tile(stepped.mean(axis=0), (3, 1)), atol=1e-12)
    with torch.no_grad():
        module.weight.zero_()
    assert np.array_equal(given.start(), flat)


def test_another_module_has_another_digest():
    """Noise is addressed by it: two networks on the same records must not share their noise."""
    key = b"key"
    names = {task_of(m).digest(key) for m in ("mlp:4", "mlp:5", lines, Odd)}
    assert len(names) == 4
    assert task_of("mlp:4").digest(key) == task_of("mlp:4").digest(key)
    assert task_of("mlp:4").digest(key) != task_of("mlp:4", weights=3).digest(key)
    assert task_of("mlp:4").digest(key) != task_of("mlp:4", seed=3).digest(key)


def test_arrays_tensors_and_datasets_are_one_task():
    rng = np.random.default_rng(0)
    inputs, targets = rng.normal(size=(60, 1, 4, 4)), rng.integers(0, 3, 60)
    options = {"peers": 4, "standardize": "none"}
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 3))
    pairs = (torch.tensor(inputs), torch.tensor(targets))
    tasks = [
        br.tasks.Torch.load(data, net, **options)
        for data in ((inputs, targets), pairs, TensorDataset(*pairs))
    ]
    models = np.tile(tasks[0].start(), (4, 1))
    first = tasks[0].gradient(np.arange(4), models)
    assert tasks[0].shape == (1, 4, 4)
    for task in tasks[1:]:
        assert np.array_equal(task.gradient(np.arange(4), models), first)


@pytest.mark.parametrize("split", ["iid", "dirichlet:0.5", "sized:5:40"])
def test_peers_by_every_split(split):
    task = br.tasks.Torch.load("digits", "mlp:8", peers=5, split=split)
    assert task.gradient(np.arange(5), np.tile(task.start(), (5, 1))).shape == (5, task.dim)


def test_numbers_are_predicted_in_units_of_the_label():
    task = br.tasks.Torch.load("diabetes", "mlp:8", peers=4, predicts="numbers")
    run = br.run(br.GossipSGD(rate=0.2), "complete:4", task, steps=60)
    score = task.evaluate(run.estimates)
    assert task.metric == "rmse"
    assert 40 < score["rmse"] < 65
    told = task.references()
    assert told["central"] < 65


def test_classes_are_learned_and_references_are_fair():
    task = br.tasks.Torch.load("digits", "mlp:16", peers=5)
    run = br.run(br.GossipSGD(rate=1.0), "complete:5", task, steps=40)
    assert task.evaluate(run.estimates)["accuracy"] > 0.9
    told, joining = task.comparison(run.estimates)
    assert told["central"] > 0.93
    assert told["alone"] < told["central"]
    assert len(joining.gains) == 5


def test_own_test_records_judge_each_peer_and_the_last_layer_may_stay_at_home():
    task = br.tasks.Torch.load(
        "digits", "mlp:8", peers=4, split="dirichlet:0.2", own_test=0.3, local=("2",)
    )
    assert task.parts_at_home().sum() == 8 * 10 + 10
    models = np.tile(task.start(), (4, 1))
    own = task.at_home(np.arange(4), models)
    shared = ~task.parts_at_home()
    assert np.array_equal(own[:, shared], models[:, shared])
    assert task.evaluate(own)["accuracy"] > task.evaluate(models)["accuracy"] + 0.2
    alone = task.at_home(np.array([2]), models[2:3])
    np.testing.assert_allclose(alone[0], own[2], atol=1e-9)
    with pytest.raises(ConfigError, match="local names 'tail', and no parameter is called that"):
        br.tasks.Torch.load("digits", "mlp:8", peers=4, local=("tail",))


def test_nothing_is_claimed_that_needs_convexity():
    task = task_of("mlp:4")
    assert task.constants() == Constants(np.inf, np.inf, 0.0, "declared")
    with pytest.raises(ConfigError, match="its loss is not convex; use an algorithm that reads"):
        task.prox(np.arange(3), moved(task), 1.0)
    with pytest.raises(ConfigError, match="walk-admm asks peers for proximal steps, which a torch"):
        br.run(br.WalkADMM(), "complete:3", task, steps=3)


def test_the_manifest_says_where_each_parameter_is():
    task = task_of(Odd)
    told = task.describe()["network"]["parameters"]
    assert [one["name"] for one in told][:2] == ["scale", "body.weight"]
    assert told[-1]["end"] == task.dim
    state = task.network.state(task.start())
    assert state["scale"].tolist() == pytest.approx([0.5, 1.0, 1.5, 2.0])


def test_a_loss_of_ones_own():
    def absolute(outputs, targets):
        return (outputs[:, 0] - targets).abs()

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 3))
    task = br.tasks.Torch.load(
        (rows, rows.sum(axis=1)), nn.Linear(3, 1), absolute, predicts="numbers", peers=2
    )
    models = np.tile(task.start(), (2, 1))
    assert np.abs(task.gradient(np.arange(2), models)).max() > 0
    with pytest.raises(ConfigError, match='predicts is "classes" or "numbers"'):
        br.tasks.Torch.load((rows, rows.sum(axis=1)), nn.Linear(3, 1), absolute, peers=2)


def test_a_participant_prepares_its_own_rows_as_the_simulation_does(tmp_path):
    """From a CSV file of its own, by agreed columns, with the same starting weights."""
    table = tmp_path / "mine.csv"
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 2)).round(3)
    lines = [f"{a},{b},{'ill' if a > b else 'well'}" for a, b in rows]
    table.write_text("\n".join(["a,b,health", *lines]))
    section = TaskSection(kind="torch", module="mlp:4", weights=5, classes=["ill", "well"])
    agreement = Agreement(section, "health", {"a": (0.5, 2.0), "b": (0.0, 1.0)}, ("ill", "well"))
    write_records(table, agreement, tmp_path / "records.npz")
    own, _ = read_share(tmp_path / "records.npz", 2, 3, "torch", local=("2",))
    ready = (rows - [0.5, 0.0]) / [2.0, 1.0]
    records = Records.of(ready, (rows[:, 0] <= rows[:, 1]) * 1, np.zeros(30, int), classes=2)
    task = br.tasks.Torch("mlp:4", records=records, weights=5)
    assert np.array_equal(own.start(), task.start())
    model = task.start()[None]
    assert np.array_equal(
        own.gradient(np.array([2]), model), task.gradient(np.zeros(1, int), model)
    )
    assert own.local == ("2",)
    assert own.recipe().names == ("a", "b")
    numbers = TaskSection(kind="torch", module="mlp:4", predicts="numbers")
    table.write_text("a,y\n1,2\n3,4\n")
    write_records(
        table, Agreement(numbers, "y", {"a": (0, 1), "y": (1.0, 2.0)}), tmp_path / "n.npz"
    )
    found, _ = read_share(tmp_path / "n.npz", 0, 1, "torch")
    assert found.inner.records.blocks[0].targets.tolist() == [[0.5, 1.5]]
    assert found.metric == "rmse"


@pytest.mark.parametrize(
    ("key", "other"), [("weights", 5), ("dtype", "float32"), ("module", "mlp:5"), ("l2", 0.1)]
)
def test_records_that_were_prepared_for_another_network_are_refused(key, other, tmp_path):
    """Weights, networks and types are public and agreed: who begins elsewhere learns another
    model."""
    agreed = {"kind": "torch", "data": "iris", "module": "mlp:4", "weights": 1}
    task = br.tasks.Torch.load("iris", "mlp:4", peers=3, weights=1)
    write_share(task, "torch", 0, tmp_path / "n.npz")
    kind = TorchKind()
    same = kind.agreed(TaskSection.model_validate(agreed))
    read_share(tmp_path / "n.npz", 0, 3, "torch", options=same)
    told = kind.agreed(TaskSection.model_validate(agreed | {key: other}))
    with pytest.raises(ConfigError, match=f"were prepared for {key} = .*; prepare them again"):
        read_share(tmp_path / "n.npz", 0, 3, "torch", options=told)


@pytest.mark.parametrize("name", ["mlp", "pictures", "odd"])
def test_a_network_travels_to_other_processes_and_answers_the_same_in_parts(name):
    """As blocks of peers ask it; torch may sum a batch of another size in another order."""
    module = MODULES[name]
    task = task_of(module if isinstance(module, str) else module(), sizes=(5, 3, 7, 4))
    there = ForkingPickler.loads(ForkingPickler.dumps(task))
    ids, models = np.arange(task.peers), moved(task)
    answers = task.gradient(ids, models)
    assert np.array_equal(there.gradient(ids, models), answers)
    assert np.array_equal(there.start(), task.start())
    for some in (ids[:2], ids[2:], ids[:1]):
        apart = there.gradient(some, models[some]) - answers[some]
        assert np.abs(apart).max() <= 1e-12
