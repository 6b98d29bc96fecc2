"""Guarantees of mechanisms without a network: sampling, shuffling, unlike losses."""
