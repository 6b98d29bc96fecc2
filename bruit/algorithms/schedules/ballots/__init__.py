"""Ballots: sums of what a list of peers says, attempt by attempt; failures cost attempts."""
