"""Kinds of tasks, as experiment files and participants speak of them."""
