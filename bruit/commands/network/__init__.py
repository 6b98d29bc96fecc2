"""Commands about how real peers reach and know each other."""
