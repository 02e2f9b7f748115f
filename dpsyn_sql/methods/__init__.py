"""The recipes. Start a new one by copying independent.py."""
