"""A run on disk: its manifest, and how it is written."""
