"""Data: named sets and own files, their columns, split among peers and prepared for learning."""
