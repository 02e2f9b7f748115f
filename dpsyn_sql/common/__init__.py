"""What any room may use: private folders, warnings, progress."""
