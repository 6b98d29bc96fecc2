"""Founding a network, and playing everybody on one machine."""
