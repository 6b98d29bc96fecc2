"""The lattice attack as a game: what is played, against which protocol, and what observers hear."""
