"""Modules by name, with starting weights that follow from a public seed.

    mlp:64,32            linear layers of 64 and 32 units with tanh between them
    cnn:small            two convolutions and two linear layers, tanh; pictures of one or three colors
    package.mod:factory  a module class, or a function that says it returns one, of the caller's own

Tanh bounds what a layer hands on, and so the gradients that are clipped (Papernot et al.,
arXiv:2007.14191).
"""

from __future__ import annotations

import importlib
import inspect
import math
import sys
import typing
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bruit.errors import ConfigError
from bruit.tasks.networks.with_torch.refusals import refuse_size

LARGE_PICTURE = 20  # pixels of a side from which the first convolution makes large steps


def made(module: Any, shape: tuple[int, ...], outputs: int, seed: int) -> nn.Module:
    """The module that was named, given or is made by a factory; drawn weights follow from the
    seed."""
    if isinstance(module, nn.Module):
        return module
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        if isinstance(module, str):
            found = _named(module, shape, outputs)
        elif callable(module):
            found = _called(module, shape, outputs)
        else:
            found = module
    if not isinstance(found, nn.Module):
        raise ConfigError(
            f"a network is a torch.nn.Module, a function that makes one, or a name such as "
            f"'mlp:64,32', found {type(found).__name__}"
        )
    return found


def picture(width: int) -> tuple[int, int, int] | None:
    """The colors, height and width of a square picture of so many numbers; None: it is none."""
    for colors in (1, 3):
        side = math.isqrt(width // colors)
        if colors * side * side == width and side >= 4:
            return colors, side, side
    return None


def shape_of(module: Any, width: int) -> tuple[int, ...]:
    """The shape in which a module takes rows of so many numbers, if nobody says."""
    if module != "cnn:small":
        return (width,)
    found = picture(width)
    if found is None:
        raise ConfigError(
            f"{module} takes square pictures of one or three colors, and rows have {width} numbers; "
            "say their shape, or use mlp"
        )
    return found


def _named(name: str, shape: tuple[int, ...], outputs: int) -> nn.Module:
    kind, _, rest = name.partition(":")
    if kind == "mlp":
        return _mlp(name, rest, shape, outputs)
    if name == "cnn:small":
        return _small_cnn(shape, outputs)
    if kind == "cnn":
        raise _unknown(name)
    return _called(imported(name), shape, outputs)


def _unknown(name: str) -> ConfigError:
    return ConfigError(
        f"module = {name!r} is not known; use 'mlp:64,32', 'cnn:small', or the import path of your "
        "own, 'package.module:factory'"
    )


def imported(path: str) -> Callable[..., Any]:
    """What an import path names: a module class, or a function that says that it returns one.
    Packages that are installed come first, then the working directory. Nothing else is called,
    since paths come from files of others."""
    package, _, name = path.partition(":")
    if not all(part.isidentifier() for part in (*package.split("."), name)):
        raise _unknown(path)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        found = getattr(importlib.import_module(package), name)
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        raise ConfigError(
            f"module = {path!r} cannot be imported ({_said(error)}); it must be importable where "
            "bruit runs"
        ) from None
    if inspect.isclass(found) and issubclass(found, nn.Module):
        return found
    try:
        says = typing.get_type_hints(found).get("return") if inspect.isfunction(found) else None
    except Exception:  # annotations may be any text
        says = None
    if not (inspect.isclass(says) and issubclass(says, nn.Module)):
        raise ConfigError(
            f"module = {path!r} names no torch.nn.Module and no function that says it returns one; "
            "write `def {0}() -> torch.nn.Module:`".format(name)
        )
    return typing.cast(Callable[..., Any], found)


def _called(factory: Callable[..., Any], shape: tuple[int, ...], outputs: int) -> Any:
    """A factory may ask for the numbers of inputs and outputs, by these names."""
    known = {"inputs": math.prod(shape), "outputs": outputs}
    asked = inspect.signature(factory).parameters
    needed = [
        name
        for name, one in asked.items()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    strange = next((name for name in needed if name not in known), None)
    if strange is not None:
        raise ConfigError(
            f"the factory {getattr(factory, '__name__', factory)} needs {strange!r}; it is given "
            "`inputs` and `outputs`, where it asks for them, and nothing else"
        )
    try:
        return factory(**{name: value for name, value in known.items() if name in asked})
    except Exception as error:  # whatever a stranger's factory raises
        raise ConfigError(
            f"the factory {getattr(factory, '__name__', factory)} makes no network: {_said(error)}"
        ) from None


def _said(error: BaseException) -> str:
    if isinstance(error, ImportError | AttributeError):
        return str(error)
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _mlp(name: str, widths: str, shape: tuple[int, ...], outputs: int) -> nn.Module:
    try:
        sizes = [int(width) for width in widths.split(",")]
    except ValueError:
        sizes = [0]
    if min(sizes) < 1:
        raise ConfigError(f"module = {name!r}: give the widths of hidden layers, as 'mlp:64,32'")
    wide = [math.prod(shape), *sizes, outputs]
    refuse_size(sum((a + 1) * b for a, b in pairwise(wide)), 1)
    layers: list[nn.Module] = [nn.Flatten()] if len(shape) > 1 else []
    for before, after in pairwise(wide[:-1]):
        layers += [nn.Linear(before, after), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], outputs))


def _small_cnn(shape: tuple[int, ...], outputs: int) -> nn.Module:
    if len(shape) != 3:
        raise ConfigError(f"cnn:small takes pictures (colors, height, width), found shape {shape}")
    if min(shape[1:]) >= LARGE_PICTURE:
        body: list[nn.Module] = [
            *(nn.Conv2d(shape[0], 16, 8, 2, padding=3), nn.Tanh(), nn.MaxPool2d(2, 1)),
            *(nn.Conv2d(16, 32, 4, 2), nn.Tanh(), nn.MaxPool2d(2, 1)),
        ]
    else:
        body = [
            *(nn.Conv2d(shape[0], 16, 3, padding=1), nn.Tanh(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 32, 3, padding=1), nn.Tanh(), nn.MaxPool2d(2)),
        ]
    with torch.no_grad():
        wide = nn.Sequential(*body)(torch.zeros(1, *shape)).numel()
    return nn.Sequential(
        *body, nn.Flatten(), nn.Linear(wide, 32), nn.Tanh(), nn.Linear(32, outputs)
    )
