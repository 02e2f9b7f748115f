"""5 The door: curator and noise."""
