"""Randomness: every number has an address; noise on grids is exactly discrete."""

from bruit.randomness.dice import Dice, Replay, Secure, pair

__all__ = ["Dice", "Replay", "Secure", "pair"]
