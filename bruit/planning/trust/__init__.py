"""Unequal trust: who may learn what about whom, and a network, circles and noises that keep to it."""

from bruit.planning.trust.files import facts_of, read_trust, write_trust
from bruit.planning.trust.unequal_trust import TrustPlan, exposed, plan_trust

__all__ = ["TrustPlan", "exposed", "facts_of", "plan_trust", "read_trust", "write_trust"]
