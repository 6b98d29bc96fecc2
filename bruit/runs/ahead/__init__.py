"""What is known of a run before it is made: how often a peer releases, and what that costs."""
