"""Reports that people keep: one HTML file, the terminal, notebooks; computed from runs and their
ledgers only."""

from bruit.show.report.page import render, write_report
from bruit.show.report.plots import Plots

__all__ = ["Plots", "render", "write_report"]
