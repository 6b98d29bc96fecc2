"""What papers printed, what is compared with, theorems nobody runs, figures. Not in the wheel; nothing
in bruit imports it."""
