"""What can be repeated: one module a subject, and in its `FIGURES` one entry a figure or table."""
