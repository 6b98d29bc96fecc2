"""The live page: runs that are watched while they go on, and what-if questions answered while one
drags."""
