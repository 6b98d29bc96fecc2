"""One theorem a file: what an account may use, with its hypotheses."""
