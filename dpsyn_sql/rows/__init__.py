"""Synthetic rows: drawn from a model, decoded to values, written. All of it is public."""
