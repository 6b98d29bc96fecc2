"""Noisy fixed-point iterations: an operator, blocks and noise give private SGD, coordinate descent, ADMM."""
