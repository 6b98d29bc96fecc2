"""Drafts of a columns file: from the header of a table, or from rows that are public."""
