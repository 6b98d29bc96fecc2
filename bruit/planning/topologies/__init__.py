"""Which graph? Named families of about the same size, by what one observer learns on them; and weights
for the links of a given one."""
