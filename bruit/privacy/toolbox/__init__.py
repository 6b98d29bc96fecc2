"""Laws of single mechanisms and sums of them: numbers in, epsilons and deltas out."""
