"""The durable memory of a real peer."""
