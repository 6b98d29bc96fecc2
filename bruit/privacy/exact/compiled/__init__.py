"""The compiled loops of exact losses."""
