"""What all tests share: the mark `slow`, which stands beside each test that takes seconds
(pyproject.toml says what it means), and one thread of linear algebra per process.

Each worker, and each peer that a test starts, would otherwise keep as many threads of linear
algebra as there are cores, which wait for each other. Set before numpy is imported.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
