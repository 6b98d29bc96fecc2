"""Audits: try to break an epsilon. Thousands of paired runs on neighboring data, and what they
prove about it."""

from bruit.adversary.audits.audit import audit
from bruit.adversary.audits.bounds import Bound, clopper_pearson, gaussian_fit, needed_trials
from bruit.adversary.audits.checks import check_releases
from bruit.adversary.audits.one_release import audit_mechanism
from bruit.adversary.audits.verdict import Audit

__all__ = [
    "Audit",
    "Bound",
    "audit",
    "audit_mechanism",
    "check_releases",
    "clopper_pearson",
    "gaussian_fit",
    "needed_trials",
]
