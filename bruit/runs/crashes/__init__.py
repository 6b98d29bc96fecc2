"""Crashes: what an algorithm was given when it raised, kept in a file."""
