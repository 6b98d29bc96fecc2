"""Networks learned by peers: how good, how private, how fast."""
