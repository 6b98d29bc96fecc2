"""SlowCase: a theorem's case whose brute force takes long."""

from bruit.privacy.checks import TheoremCase


class SlowCase(TheoremCase):
    """Checked with the slow tests."""
