"""What all tests share: the mark `slow`, which stands beside each test that takes seconds
(pyproject.toml says what it means), one thread of linear algebra per process, a garbage collector
that leaves the collected tests alone, a command line that is put together once, and no clock: an
example of hypothesis may take as long as a loaded machine needs.

Each worker, and each peer that a test starts, would otherwise keep as many threads of linear
algebra as there are cores, which wait for each other. Set before numpy is imported.
"""

import functools
import gc
import os

import pytest
import typer.main
import typer.testing
from hypothesis import HealthCheck, settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Tests make the same records again and again, in folders that are gone afterwards: they are no copies.
os.environ["BRUIT_REGISTER"] = ""

# Reading the signatures of some forty commands takes longer than most commands that tests call.
typer.main.get_command = functools.cache(typer.main.get_command)
typer.testing._get_command = typer.main.get_command

settings.register_profile("bruit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bruit")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Modules and some ten thousand tests stay until the end: garbage is not looked for in them.

    Without this a third of the time of a collection, which each worker makes, goes to looking.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
