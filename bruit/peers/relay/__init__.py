"""A relay for peers that nobody can call: who is reached there, and how one calls through it."""
