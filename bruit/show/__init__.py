"""What people look at: terminal, report, live page."""
