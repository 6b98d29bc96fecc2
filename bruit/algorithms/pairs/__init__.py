"""Algorithms about pairs of points: statistics and losses."""
