"""What travels between real peers, and between whom."""
