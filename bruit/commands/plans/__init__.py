"""`bruit plan`: its options, and its answers about protocols, silos, trust and designs."""
