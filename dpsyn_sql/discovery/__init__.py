"""Domains that nobody declared; public.

What is asked about a column through the door, and the codes and fills that follow from the noisy answers.
"""
