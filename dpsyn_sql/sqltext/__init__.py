"""Quoting and rendering of SQL."""
