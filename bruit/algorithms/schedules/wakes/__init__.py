"""Wakes: one peer wakes, reads the latest word of its neighbors, and speaks to all of them."""
