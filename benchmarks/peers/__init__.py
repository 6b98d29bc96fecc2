"""Public rivals beside this package: the same small task, each in an environment of its own."""
