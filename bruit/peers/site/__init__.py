"""What one participant keeps in a folder, and the peer made of it."""
