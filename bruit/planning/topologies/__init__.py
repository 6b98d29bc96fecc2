"""Which graph? Named families of about the same size, by what one observer learns on them."""
