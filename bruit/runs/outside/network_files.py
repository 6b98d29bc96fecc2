"""A learned network as files of other libraries: weights of torch, safetensors, ONNX.

    model.pt            state_dict: tensors by name (read it with torch.load(..., weights_only=True))
    model.safetensors   the same, no code in it
    model.onnx          the whole network, from prepared rows to scores

The files hold what the model holds, and no more: how rows are prepared stays in model.json.
"""

from __future__ import annotations

import io
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bruit.errors import ConfigError
from bruit.files import write_whole
from bruit.tasks.networks.library import need_torch

if TYPE_CHECKING:
    from bruit.runs.model import Model

NEEDS = {".safetensors": ("safetensors",), ".onnx": ("onnx", "onnxscript")}
SUFFIXES = (".pt", *NEEDS)


def save_network(model: Model, path: str | Path, factory: Any = None) -> Path:
    """Write the weights (.pt, .safetensors) or the network (.onnx) of a model, whole or not at
    all; `factory` as of `Model.module`."""
    target, network = Path(path), model.network
    if network is None:
        raise ConfigError(f"a model of kind {model.kind} is no network of torch; use save")
    if target.suffix not in SUFFIXES:
        raise ConfigError(
            f"{target.name} ends with {target.suffix or 'nothing'}; networks are written as "
            f"{', '.join(SUFFIXES)}"
        )
    need_torch()
    missing = [name for name in NEEDS.get(target.suffix, ()) if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"{target.suffix} files need {' and '.join(missing)}: pip install 'bruit[export]'"
        )
    content = _content(model, target.suffix, factory)
    write_whole(target, lambda stream: stream.write(content))
    return target


def _content(model: Model, suffix: str, factory: Any) -> bytes:
    import torch

    assert model.network is not None
    if suffix == ".onnx":
        return _onnx(model, factory)
    state = model.network.state_dict(model.numbers)
    if suffix == ".safetensors":
        from safetensors.torch import save

        return bytes(save(state, {"format": "pt"}))
    stream = io.BytesIO()
    torch.save(state, stream)
    return stream.getvalue()


def _onnx(model: Model, factory: Any) -> bytes:
    import torch

    assert model.network is not None
    module = model.network.module(model.numbers, factory)
    kind = getattr(torch, str(model.network.about["dtype"]))
    rows = torch.zeros(2, *model.network.about["shape"], dtype=kind)
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "model.onnx"
        torch.onnx.export(
            module,
            (rows,),
            draft,
            input_names=["rows"],
            output_names=["scores"],
            dynamic_shapes=({0: torch.export.Dim("records")},),
            dynamo=True,
            external_data=False,
            verbose=False,
        )
        return draft.read_bytes()
