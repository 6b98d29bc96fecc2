"""GOPA between real participants: agreed seeds, fixed-point sums that cancel to the bit, dropouts and rollback."""
