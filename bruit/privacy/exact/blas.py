"""One thread for BLAS: results do not depend on the machine's cores, and small products do not wait
for each other."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


@cache
def _controller() -> "ThreadpoolController":
    """Looks the loaded libraries up once, which takes milliseconds."""
    import scipy.linalg  # noqa: F401  (its BLAS is another library than numpy's)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within, BLAS stays on the calling thread."""
    with _controller().limit(limits=1, user_api="blas"):
        yield
