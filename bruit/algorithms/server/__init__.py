"""Algorithms around a server, to compare with."""
