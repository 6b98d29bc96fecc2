"""These tests need the extra `verify`; without it they are left out."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("coincurve") else ["test_*.py"]
