"""Averages among people who trust nobody: canceling noise, proofs, a board."""
