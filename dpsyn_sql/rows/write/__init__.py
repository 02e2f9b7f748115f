"""Rows of codes become a table or a file with its model: all of it, or nothing."""
