"""Answers about tables, without learning: local reports, two holders, averages."""
