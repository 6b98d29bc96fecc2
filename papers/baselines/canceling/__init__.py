"""GOPA and secure aggregation as machines in one process: what their messages and work are measured on."""
