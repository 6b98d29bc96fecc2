"""Worth joining? Record-level privacy on real tables, many splits and draws of noise at once."""
