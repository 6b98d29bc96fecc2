"""Participants: what one of them keeps in its folder, how it runs, and demonstrations that play everybody."""
