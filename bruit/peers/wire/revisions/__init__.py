"""Later versions of an address book: what they say, who signed them, and which one stands."""
