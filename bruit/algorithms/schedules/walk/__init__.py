"""Walk: a token hops from peer to peer."""
