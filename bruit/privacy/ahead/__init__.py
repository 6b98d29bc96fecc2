"""What a planner asks before there is a run."""
