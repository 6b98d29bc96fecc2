"""What is compared with, and never run by the package."""
