"""Planning: what a run will cost and give, computed from public facts before anything is run."""
