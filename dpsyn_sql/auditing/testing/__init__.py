"""Helpers for tests of methods and of code that uses dpsyn_sql."""
