"""Real peers: who they are, where they are, and what each of them remembers."""
