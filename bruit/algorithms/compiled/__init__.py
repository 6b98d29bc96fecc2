"""Compiled loops of algorithms; tests hold them to the general path."""
