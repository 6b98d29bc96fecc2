"""Algorithms in which everybody speaks to neighbors."""
