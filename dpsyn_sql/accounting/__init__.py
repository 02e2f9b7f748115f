"""Budgets, privacy events, and what they cost: exact Gaussian accounting and pure epsilon."""
