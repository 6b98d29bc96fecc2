"""Options that were given where they say nothing: refused by name, never ignored."""

from __future__ import annotations

import sys
from importlib import import_module

import typer

from bruit.errors import ConfigError


def refuse_given(why: str, *parameters: str) -> None:
    """Refuse those of these options that were typed, be it with their usual value."""
    click = sys.modules[typer.Context.__mro__[1].__module__].__package__  # typer may bring its own
    context = import_module(f"{click}.globals").get_current_context(silent=True)
    if context is None:  # called as a function, not typed
        return
    typed = [
        one.opts[0]
        for one in context.command.params
        if one.name in parameters and context.get_parameter_source(one.name).name == "COMMANDLINE"
    ]
    if typed:
        raise ConfigError(f"{why}; leave {', '.join(typed)} out")
