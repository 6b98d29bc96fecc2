"""Noise that cancels (GOPA): agreed seeds, fixed-point sums that cancel to the bit, whole rounds
simulated with dropouts and rollback; counts and an AUC from them."""
