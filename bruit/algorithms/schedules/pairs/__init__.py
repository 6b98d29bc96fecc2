"""Pairs: two neighbors meet and exchange."""
