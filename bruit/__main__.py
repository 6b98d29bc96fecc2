"""`python -m bruit` is the command `bruit`."""

from bruit.cli import main

main()
