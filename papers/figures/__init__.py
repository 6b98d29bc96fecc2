"""Experiments of the literature, repeated with its own numbers and with proven accounts."""
