"""Opacus in a folder of its own: installed once into the machine's temporary folder, without what it
depends on but opt_einsum, so that it meets the very torch that is measured here."""

from __future__ import annotations

import importlib
import subprocess
import sys
from types import ModuleType

from benchmarks.networks.kept import folder

WANTED = ("opacus==1.6.0", "opt_einsum==3.4.0")


def opacus() -> ModuleType:
    """The module; ends the program with a sentence where it cannot be had."""
    room = folder() / WANTED[0].replace("==", "-")
    if not (room / "opacus").is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
        done = subprocess.run([*command, str(room), *WANTED], capture_output=True, text=True)
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
            raise SystemExit(f"skipped: {WANTED[0]} could not be installed: {last[0]}")
    if str(room) not in sys.path:
        sys.path.append(str(room))
    return importlib.import_module("opacus")
