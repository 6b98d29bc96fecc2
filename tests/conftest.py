"""What all tests share: the names of those that take seconds, which the fast set leaves to the slow one."""

import pytest

SLOW = (
    "docs/test_docs.py::test_page_runs[docs/how-to/four-hospitals.md]",
    "e2e/test_real_peers.py::test_a_stopped_and_a_killed_peer_go_on_where_they_were",
    "e2e/test_real_peers.py::test_one_that_never_comes_stops_nobody",
    "laws/test_guarantees.py::test_the_guarantee_holds_its_promises[walk_",
    "laws/test_guarantees.py::test_the_guarantee_holds_its_promises[private_graph: runs",
    "laws/test_profile_laws.py::test_together_with_a_mixture",
    "papers/test_admm.py",
    "papers/test_butterfly.py::test_gradient_descent_over_twenty_rounds",
    "papers/test_descent_reconstruction.py",
    "papers/test_personalized.py",
    "papers/test_private_auc.py",
    "papers/test_reconstruction_experiments.py",
    "statistical/test_local_dp.py",
    "statistical/test_mutants.py",
    "unit/algorithms/test_personal_algorithms.py::test_all_three_agree",
    "unit/algorithms/test_personal_algorithms.py::test_confidence_zero",
    "unit/attacks/test_matching.py",
    "unit/network/test_journal_crashes.py",
    "unit/planning/test_plan.py::test_a_butterfly_plan",
    "unit/planning/test_plan.py::test_a_protocol_that_cannot",
    "unit/privacy/toolbox/test_subsampled.py",
    "unit/privacy/walks/test_walk_ahead.py",
    "unit/privacy/walks/test_walk_pairs.py",
    "unit/protocols/test_patience.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests above as slow."""
    for item in items:
        if item.nodeid.removeprefix("tests/").startswith(SLOW):
            item.add_marker(pytest.mark.slow)
