"""Repeat a figure or a table of a source: `bruit reproduce ID`, or `python -m papers.reproduce`."""
