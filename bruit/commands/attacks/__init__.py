"""Commands against a run."""
