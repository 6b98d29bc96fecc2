"""Algorithms in which a token walks from peer to peer."""
