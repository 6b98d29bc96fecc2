"""From an experiment file to a run and its folder."""
