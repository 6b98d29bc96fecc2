"""What all tests share: the names of those that take seconds, which the fast set leaves to the slow one."""

import pytest

SLOW = (
    "conformance/test_engines.py::test_conformance[DualAveragingRounds",
    "conformance/test_engines.py::test_conformance[GostaRounds",
    "conformance/test_engines.py::test_conformance[U1Gossip",
    "conformance/test_engines.py::test_conformance[U2Gossip",
    "docs/test_docs.py::test_page_runs",
    "e2e/test_hostile_peers.py",
    "e2e/test_live_pages.py",
    "e2e/test_network_cli.py",
    "e2e/test_real_peers.py",
    "laws/test_graph_laws.py",
    "laws/test_guarantees.py::test_the_guarantee_holds_its_promises[private_graph: runs",
    "laws/test_guarantees.py::test_the_guarantee_holds_its_promises[server_admm",
    "laws/test_guarantees.py::test_the_guarantee_holds_its_promises[walk_",
    "laws/test_local_dp_laws.py",
    "laws/test_mechanism_laws.py",
    "laws/test_profile_laws.py",
    "papers/test_admm.py",
    "papers/test_butterfly.py::test_gradient_descent_over_twenty_rounds",
    "papers/test_descent_reconstruction.py",
    "papers/test_gopa_table.py",
    "papers/test_gossip_pairwise.py",
    "papers/test_personalized.py",
    "papers/test_private_auc.py",
    "papers/test_reconstruction_experiments.py",
    "statistical/test_audits.py",
    "statistical/test_garbled_law.py",
    "statistical/test_local_dp.py",
    "statistical/test_mutants.py",
    "unit/algorithms/test_pairwise_gossip.py::test_private_estimates",
    "unit/algorithms/test_pairwise_gossip.py::test_the_rate_of_gosta",
    "unit/algorithms/test_personal_algorithms.py::test_all_three_agree",
    "unit/algorithms/test_personal_algorithms.py::test_confidence_zero",
    "unit/algorithms/test_token_histogram.py",
    "unit/attacks/test_matching.py",
    "unit/kernels/test_fused_admm.py",
    "unit/network/test_averaging.py",
    "unit/network/test_journal_crashes.py",
    "unit/network/test_recalling.py",
    "unit/planning/test_plan.py::test_a_butterfly_plan",
    "unit/planning/test_plan.py::test_a_protocol_that_cannot",
    "unit/planning/test_plan.py::test_the_ring_plan",
    "unit/privacy/test_binomial_noise.py::test_several_numbers_compose",
    "unit/privacy/toolbox/test_subsampled.py",
    "unit/privacy/walks/test_walk_ahead.py",
    "unit/privacy/walks/test_walk_pairs.py",
    "unit/privacy/walks/test_walk_sum.py",
    "unit/protocols/test_patience.py",
    "unit/sklearn/test_sklearn_checks.py",
    "unit/ui/test_ui_app.py::test_a_run_",
    "unit/verification/test_cheating.py::test_any_damage",
    "unit/verification/test_cheating.py::test_malformed_payloads",
    "unit/verification/test_cheating.py::test_openings",
    "unit/verification/test_verified_run.py::test_any_bytes",
    "unit/verification/test_verified_run.py::test_every_peer_with_a_copy",
    "unit/verification/test_verified_run.py::test_what_the_board_tells",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests above as slow."""
    for item in items:
        if item.nodeid.removeprefix("tests/").startswith(SLOW):
            item.add_marker(pytest.mark.slow)
