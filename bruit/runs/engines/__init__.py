"""Engines: what runs an algorithm."""
