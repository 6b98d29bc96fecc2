"""What is refused of a network, in one sentence each, before it meets a record."""

import importlib.util

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import prune

import bruit as br
from bruit.errors import ConfigError
from bruit.tasks.networks.with_torch import refusals
from bruit.tasks.records import Records
from tests.unit.tasks.test_networks import task_of


class Mixing(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(9, 3)

    def forward(self, x):
        return self.body(x - x.mean(dim=0))


class Remembering(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(9, 3)
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count += len(x)
        return self.body(x)


class Chancy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(9, 3)

    def forward(self, x):
        return self.body(x) + torch.randn(())


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(9, 9), nn.Linear(9, 9)
        self.two.weight = self.one.weight

    def forward(self, x):
        return self.two(self.one(x))[:, :3]


def frozen():
    net = nn.Sequential(nn.Linear(9, 4), nn.Linear(4, 3))
    net[0].weight.requires_grad_(False)
    return net


def body(*layers):
    return nn.Sequential(nn.Linear(9, 6), *layers, nn.Linear(6, 3))


WRONG = {
    "batch norm": (
        body(nn.BatchNorm1d(6)),
        r"layer 1 \(BatchNorm1d\) takes statistics over a batch.*GroupNorm",
    ),
    "synchronized": (body(nn.SyncBatchNorm(6)), r"layer 1 \(SyncBatchNorm\) takes statistics"),
    "instance norm": (
        body(nn.InstanceNorm1d(6, track_running_stats=True)),
        "keeps running statistics of records",
    ),
    "dropout": (body(nn.Dropout(0.5)), r"layer 1 \(Dropout\) draws at random in every pass"),
    "recurrent": (body(nn.GRU(6, 6)), r"layer 1 \(GRU\) carries a state from step to step"),
    "mixing": (Mixing(), "the output of one record depends on other records of the batch"),
    "buffers": (Remembering(), "changes its buffers, so it remembers records"),
    "chance": (Chancy(), "two passes of the same rows through the network differ"),
    "shape": (nn.Linear(9, 4), r"makes \(6, 4\) of 6 records, and the task needs \(6, 3\)"),
    "input": (nn.Linear(8, 3), r"does not take rows of shape \(9,\): .*; say shape=, or change"),
    "shared": (Shared(), "the parameters one.weight and two.weight are one tensor"),
    "frozen": (frozen(), r"the parameter 0.weight is frozen \(requires_grad=False\)"),
    "no parameters": (nn.Identity(), "the network has no parameters"),
    "device": (
        nn.Linear(9, 3, device="meta"),
        "is on the device meta; networks are learned on the CPU",
    ),
    "type": (nn.Linear(9, 3).half(), "is of type float16; use float64 or float32"),
    "no module": (3, "a network is a torch.nn.Module, a function that makes one, or a name"),
    "name": ("mpl:3", "module = 'mpl:3' is not known; use 'mlp:64,32'"),
    "widths": ("mlp:3,x", "give the widths of hidden layers, as 'mlp:64,32'"),
    "cnn": ("cnn:large", "module = 'cnn:large' is not known"),
    "not a picture": ("cnn:small", "takes square pictures of one or three colors"),
    "a stranger's function": ("os:abort", "names no torch.nn.Module and no function that says"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_module_is_refused_by_name(case):
    module, sentence = WRONG[case]
    with pytest.raises(ConfigError, match=sentence) as said:
        task_of(module)
    assert "\n" not in str(said.value)


def test_a_loss_must_give_one_number_a_record():
    def mean(outputs, targets):
        return nn.functional.cross_entropy(outputs, targets)

    def mixed(outputs, targets):
        each = nn.functional.cross_entropy(outputs, targets, reduction="none")
        return each - each.mean()

    for loss, sentence in (
        (mean, r"gives \(\) for 6 records, and must give one number a record.*reduction='none'"),
        (mixed, "the loss of one record depends on other records"),
        (lambda o, t: o[:, 7], "the loss cannot be computed"),
        ("hinge", "loss = 'hinge' is not known"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            task_of("mlp:4", loss=loss, predicts="" if isinstance(loss, str) else "classes")


def test_a_loss_that_is_no_number_names_peer_and_step():
    task = task_of("mlp:4", sizes=(5, 5, 5))
    task.records.blocks[0].features[1, 2] = 1e300
    with pytest.raises(
        ConfigError, match=r"at step 0 of its own: the loss of peer 1, or its gradient"
    ):
        br.run(br.GossipSGD(rate=0.1), "complete:3", task_of_wild(task), steps=3)


def task_of_wild(task):
    """The same records under a linear score, which overflows."""
    return br.tasks.Torch(nn.Linear(9, 1, bias=False), "squared", records=task.records)


def test_a_model_too_large_for_memory_says_the_bytes():
    with pytest.raises(
        ConfigError,
        match=r"models of 1000000000 numbers for 1000 peers need about 32000000000000 bytes",
    ):
        refusals.refuse_size(10**9, 1000)


def test_data_of_another_type_or_device_is_refused():
    rows, marks = torch.zeros(10, 9), torch.arange(10) % 3
    for data, sentence in (
        ((rows.to("meta"), marks), "the inputs are on the device meta"),
        ((rows.bfloat16(), marks), "the inputs are of type bfloat16"),
        ((rows.to(torch.complex64), marks), "the inputs are of type complex64"),
        ((rows + torch.nan, marks), "the inputs of record 0 hold a number that is not finite"),
        ((rows, marks[:4]), r"inputs are \(10, 9\) and targets \(4,\)"),
        (3, "data is a name, a path, a data frame, a pair"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            br.tasks.Torch.load(data, "mlp:4", peers=2)


def test_without_torch_it_says_what_to_install(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "bruit.tasks.networks.library.find_spec",
        lambda name: None if name == "torch" else found(name),
    )
    with pytest.raises(ConfigError, match=r"pip install 'bruit\[torch\]'"):
        task_of("mlp:4")


def test_classes_and_shapes_must_fit():
    rng = np.random.default_rng(0)
    owners = np.arange(6) % 2
    one_class = Records.of(rng.normal(size=(6, 9)), np.zeros(6), owners)
    with pytest.raises(ConfigError, match="classes are told apart where there are at least 2"):
        br.tasks.Torch("mlp:4", records=one_class)
    with pytest.raises(ConfigError, match=r"an input of shape \(2, 2\) holds 4 numbers"):
        task_of("mlp:4", shape=(2, 2))
    with pytest.raises(ConfigError, match="made of positive numbers"):
        task_of("mlp:4", shape=(-3, -3))
    with pytest.raises(ConfigError, match="weights is the seed of the starting weights"):
        task_of("mlp:4", weights=2**64)
    with pytest.raises(ConfigError, match="dtype is float64 or float32, found 'float16'"):
        task_of("mlp:4", dtype="float16")
    assert len(task_of("mlp:4", shape=(3, 3)).shape) == 2


class Asked(nn.Module):
    """Two layers, and whatever a stranger does between them."""

    def __init__(self, way):
        super().__init__()
        self.way = way
        self.one, self.two = nn.Linear(9, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.way(self, x)


def causal(net, x):
    """Attention over the axis of records, each of which looks at those before it."""
    h = net.one(x)
    before = torch.tril(torch.ones(len(x), len(x), dtype=torch.bool))
    return net.two(torch.softmax((h @ h.T).masked_fill(~before, -1e9), dim=1) @ h)


def checked(net, x):
    assert x.abs().max() < 100
    return net.two(torch.tanh(net.one(x)))


def branched(net, x):
    h = net.one(x)
    return net.two(torch.tanh(h) if x.abs().max() < 50 else -h)


def overwritten(net, x):
    return net.two(torch.tanh(net.one(x.clamp_(-1, 1))))


def changed_later(net, x):
    h = torch.tanh(net.one(x))
    z = net.two(h)
    h.mul_(3)
    return z


@pytest.mark.parametrize(
    ("way", "sentence"),
    [
        (lambda net, x: net.two(net.one(x).cumsum(0)), "depends on other records of the batch"),
        (causal, "depends on other records of the batch"),
        (checked, "decides by the values of a whole batch"),
        (branched, "decides by the values of a whole batch"),
        (overwritten, "overwrites its input"),
        (changed_later, "cannot be differentiated: one of the variables"),
    ],
)
def test_records_are_mixed_in_no_row_and_by_no_branch(way, sentence):
    """Row 0 of a cumulative sum is that of record 0 alone; branches mix where values are large."""
    with pytest.raises(ConfigError, match=sentence):
        task_of(Asked(way))


def balanced(outputs, targets):
    """Weights of classes by how often they are in the batch."""
    each = nn.functional.cross_entropy(outputs, targets, reduction="none")
    return each / torch.bincount(targets, minlength=3)[targets]


def averaged(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets, reduction="none") / len(targets)


def summed_up(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets, reduction="none").cumsum(0)


@pytest.mark.parametrize("loss", [balanced, averaged, summed_up])
def test_a_loss_knows_no_other_target_and_no_count(loss):
    with pytest.raises(ConfigError, match="depends on other records, or on how many"):
        task_of("mlp:4", loss=loss, predicts="classes")


class MaskedWeights(nn.Module):
    """A parameter outside of any layer, and an index that torch cannot vectorize."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(9))
        self.head = nn.Linear(9, 3)

    def forward(self, x):
        h = (x * self.scale).clone()
        h[h < 0] = 0
        return self.head(h)


def pruned():
    net = nn.Sequential(nn.Linear(9, 3))
    prune.l1_unstructured(net[0], "weight", amount=0.3)
    return net


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        (MaskedWeights, "cannot be differentiated for many records at once"),
        (pruned, "cannot be copied"),
        (lambda: nn.Sequential(nn.LazyLinear(3)), "has no size before its first input"),
    ],
)
def test_what_cannot_be_learned_is_said_before_a_record_is_met(module, sentence):
    with pytest.raises(ConfigError, match=sentence):
        task_of(module())


STRANGE = """
import torch
from torch import nn


def failing(inputs: int) -> nn.Module:
    raise KeyError("boom")


def annotated(x: "1/0") -> "nn.Modul":
    pass
"""


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (".strange:failing", "is not known; use"),
        ("../strange:failing", "is not known; use"),
        ("broken:net", r"cannot be imported \(SyntaxError"),
        ("leaving:net", r"cannot be imported \(SystemExit"),
        ("strange:failing", "the factory failing makes no network: KeyError: 'boom'"),
        ("strange:annotated", "names no torch.nn.Module"),
        ("mlp:99999999,99999999", r"numbers for 1 peer need about \d+ bytes"),
    ],
)
def test_a_strange_name_of_a_module_ends_in_a_sentence(name, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "strange.py").write_text(STRANGE)
    (tmp_path / "broken.py").write_text("def net(:")
    (tmp_path / "leaving.py").write_text("raise SystemExit(3)")
    with pytest.raises(ConfigError, match=sentence):
        task_of(name)
