"""One script a package: `python -m ... PROBLEM.npz` prints a line of JSON with the accuracy.

They run in environments in which this package need not be, so they import nothing of it.
"""
