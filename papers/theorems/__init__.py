"""Theorems that are true and that no run, plan or question of the package needs."""
