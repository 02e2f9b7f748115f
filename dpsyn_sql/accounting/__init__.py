"""Budgets, privacy events, zero-concentrated differential privacy."""
