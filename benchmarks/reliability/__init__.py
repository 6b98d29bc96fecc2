"""How much the runtime of real peers stands: one file per question, and counts for the record."""
