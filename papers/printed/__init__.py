"""Formulas as printed, none of them a guarantee."""
