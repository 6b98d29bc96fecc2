"""Against a run: what views reveal, and whether an epsilon can be refuted."""
