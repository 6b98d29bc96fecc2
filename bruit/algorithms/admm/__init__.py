"""Noisy fixed-point iterations, which ADMM and coordinate descent are."""
