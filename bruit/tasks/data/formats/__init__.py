"""Formats: tables as people have them (CSV, Parquet, data frames), read as columns of text."""
