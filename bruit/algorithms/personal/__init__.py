"""Algorithms that learn a model for each peer."""
