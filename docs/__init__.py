"""The documentation, and the two scripts that write parts of it."""
