"""The command dpsyn."""
