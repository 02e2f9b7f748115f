"""The report of a release for a person who reads it: of certificate, noisy answers and model alone."""
