"""Learning among a few peers with many records each: sums under masks, noise made together."""
