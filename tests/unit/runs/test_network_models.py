"""A learned network out again: as a module, as files of other libraries, from a folder, without torch."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import bruit as br
from bruit.errors import ConfigError
from bruit.runs.model import model_from, read_model
from bruit.runs.predictions import predictions
from bruit.runs.result import load, load_model
from bruit.tasks.data.formats.frames import as_columns


def net(inputs: int, outputs: int) -> nn.Module:
    """What an import path may name."""
    return nn.Sequential(nn.Linear(inputs, 5), nn.Tanh(), nn.Linear(5, outputs))


@pytest.fixture(scope="module")
def run():
    task = br.tasks.Torch.load("iris", "mlp:8", peers=4)
    return br.run(br.GossipSGD(rate=0.5), "complete:4", task, steps=60)


@pytest.fixture(scope="module")
def rows():
    from sklearn.datasets import load_iris

    data = load_iris()
    return data.data, data.target_names[data.target]


def test_a_run_gives_the_module_back(run, rows):
    model = run.model_of(2)
    ready = torch.tensor(model.prepared(rows[0]).rows)
    with torch.no_grad():
        said = model.module()(ready).numpy()
    np.testing.assert_allclose(model.scores(rows[0]), said)
    assert (model.predict(rows[0]) == rows[1]).mean() > 0.9
    assert model.predict_proba(rows[0]).shape == (150, 3)
    assert list(model.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert np.array_equal(
        np.concatenate([part.ravel() for part in model.arrays().values()]), run.estimates[2]
    )


def test_a_saved_run_predicts_the_same(run, rows, tmp_path):
    run.save(tmp_path / "folder")
    again = load_model(tmp_path / "folder", 1)
    np.testing.assert_array_equal(again.scores(rows[0]), run.model_of(1).scores(rows[0]))
    assert load(tmp_path / "folder").model.network.about == run.model.network.about
    table = as_columns(
        {name: rows[0][:, k] for k, name in enumerate(run.model.recipe.names)} | {"label": rows[1]}
    )
    answers, about = predictions(again, table)
    assert about["measured"]["value"] > 0.9
    assert 0.3 < answers[0]["probability"] <= 1


def test_a_saved_run_opens_without_torch(run, tmp_path):
    run.save(tmp_path / "folder")
    code = (
        "import sys; sys.modules['torch'] = None\nfrom bruit.runs.result import load\nfound ="
        f" load({str(tmp_path / 'folder')!r})\nprint({{name: list(part.shape) for name, part in"
        " found.model.arrays().items()})\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip().startswith("{'0.weight': [8, 4], '0.bias': [8]")


def test_files_of_other_libraries(run, rows, tmp_path):
    model = run.model
    state = torch.load(model.export(tmp_path / "model.pt"), weights_only=True)
    assert torch.equal(state["2.bias"], model.state_dict()["2.bias"])
    safetensors = pytest.importorskip("safetensors.torch", reason="needs bruit[export]")
    other = safetensors.load_file(model.export(tmp_path / "model.safetensors"))
    assert all(torch.equal(other[name], state[name]) for name in state)
    with pytest.raises(ConfigError, match=r"model.h5 ends with .h5; networks are written as .pt"):
        model.export(tmp_path / "model.h5")
    linear = br.run(br.GossipSGD(), "complete:3", br.tasks.Softmax.load("iris", 3), steps=1).model
    with pytest.raises(ConfigError, match="a model of kind softmax is no network of torch"):
        linear.export(tmp_path / "linear.pt")


@pytest.mark.slow
def test_onnx_says_the_same(run, rows, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs bruit[export]")
    pytest.importorskip("onnxscript", reason="needs bruit[export]")
    path = run.model.export(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(path)
    ready = run.model.prepared(rows[0]).rows
    said = session.run(None, {"rows": ready})[0]
    np.testing.assert_allclose(said, run.model.scores(rows[0]), atol=1e-9)


def test_a_module_of_ones_own_is_named_and_never_imported_by_a_file(rows, tmp_path):
    here = f"{net.__module__}:net"
    for given in (here, net(4, 3)):
        task = br.tasks.Torch.load("iris", given, peers=3)
        model = br.run(br.GossipSGD(rate=0.5), "complete:3", task, steps=20).model
        assert isinstance(model.module(), nn.Sequential)
        stored = read_model(model.save(tmp_path / "model.json"))
        with pytest.raises(ConfigError, match="which is code and in no file: hand over the module"):
            stored.predict(rows[0])
        mended = stored.with_module(here)
        np.testing.assert_array_equal(mended.scores(rows[0]), model.scores(rows[0]))
        with pytest.raises(ConfigError, match="this module is not the one that was learned"):
            stored.module(nn.Linear(4, 3))


def test_a_broken_network_file_is_refused(run):
    content = json.loads(json.dumps(run.model.describe()))
    for key, value in (("begin", 3), ("shape", [2, 2]), ("end", "x")):
        broken = json.loads(json.dumps(content))
        broken["network"]["parameters"][1][key] = value
        with pytest.raises(ConfigError, match="is broken"):
            model_from(broken, "here")
    for key, value in (
        ("shape", [-4]),
        ("shape", []),
        ("outputs", 0),
        ("predicts", "everything"),
        ("dtype", "float16"),
    ):
        broken = json.loads(json.dumps(content))
        broken["network"][key] = value
        with pytest.raises(ConfigError, match="is broken"):
            model_from(broken, "here")
    del content["network"]
    with pytest.raises(ConfigError, match="is broken"):
        model_from(content, "here")


def test_numbers_are_predicted_in_raw_units():
    from sklearn.datasets import load_diabetes

    data = load_diabetes()
    task = br.tasks.Torch.load("diabetes", "mlp:8", peers=4, predicts="numbers")
    model = br.run(br.GossipSGD(rate=0.3), "complete:4", task, steps=60).model
    said = model.predict(data.data)
    assert np.sqrt(((said - data.target) ** 2).mean()) < 65
    with pytest.raises(ConfigError, match="says nothing about the chances of classes"):
        model.predict_proba(data.data)


def test_every_number_of_a_network_has_a_name(run):
    names = run.model_of(0).network.names()
    assert len(names) == run.estimates.shape[1]
    assert (names[0], names[33], names[-1]) == ("0.weight[0, 0]", "0.bias[1]", "2.bias[2]")
