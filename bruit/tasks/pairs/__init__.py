"""Pairwise statistics, exactly: kernels, complete U-statistics, rankings. What private and gossip
estimates aim at."""

from bruit.tasks.pairs.kernels import (
    KERNELS,
    Kernel,
    check_kernel,
    duplicates,
    gini,
    kendall,
    scatter,
    variance,
    wilcoxon,
)
from bruit.tasks.pairs.ranking import auc, concordance
from bruit.tasks.pairs.u_statistics import (
    kendall_tau,
    peer_statistic,
    renyi_entropy,
    row_means,
    square_form,
    u_statistic,
)

__all__ = [
    "KERNELS",
    "Kernel",
    "auc",
    "check_kernel",
    "concordance",
    "duplicates",
    "gini",
    "kendall",
    "kendall_tau",
    "peer_statistic",
    "renyi_entropy",
    "row_means",
    "scatter",
    "square_form",
    "u_statistic",
    "variance",
    "wilcoxon",
]
