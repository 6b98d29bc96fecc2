"""Planning for a few holders of many records, at record level (silo:SILO-7)."""
