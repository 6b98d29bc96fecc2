"""What records have paid, and who asked: accounts of data sets, and logs that show a change."""
