"""The command ``dpsyn``. It reads options and prints; the rest of the package does the work."""
