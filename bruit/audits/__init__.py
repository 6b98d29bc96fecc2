"""Audits: try to break an epsilon. Thousands of paired runs on neighboring data, and what they prove about it."""

from bruit.audits.audit import Audit, audit, audit_mechanism
from bruit.audits.bounds import Bound, clopper_pearson, gaussian_fit, needed_trials
from bruit.audits.checks import check_releases

__all__ = [
    "Audit", "Bound", "audit", "audit_mechanism", "check_releases", "clopper_pearson", "gaussian_fit", "needed_trials",
]
