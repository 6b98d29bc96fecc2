"""Behind the door of a run: what records answer exactly, and the noise that leaves without them."""
