"""Pictures of a run: who is near whom, who could learn what, how it went."""
