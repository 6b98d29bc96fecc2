"""How good a model is, for whom, and whether joining paid: for observers, never for peers."""
