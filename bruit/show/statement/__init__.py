"""What a run promised, on paper: a registry entry, a page by NIST SP 800-226, an annex for a DPIA."""
