"""Reports that people keep: one HTML file, the terminal, notebooks; computed from runs and their ledgers only."""

from bruit.dashboard.page import render, write_report
from bruit.dashboard.plots import Plots
from bruit.result import Run

Run.plotter = Plots

__all__ = ["Plots", "render", "write_report"]
