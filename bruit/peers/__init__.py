"""One real peer: wire, journal, host, and the folder of its owner."""
