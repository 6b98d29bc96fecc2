"""Commands that answer about tables."""
