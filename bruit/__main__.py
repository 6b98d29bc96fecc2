"""`python -m bruit` is the command `bruit`."""

from bruit.commands.cli import main

main()
