"""Rounds: everybody speaks to all neighbors, then everybody absorbs."""
