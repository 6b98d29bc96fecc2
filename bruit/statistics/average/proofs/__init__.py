"""Commitments and zero-knowledge proofs."""
