"""Domains of columns that nobody declared; public.

Questions about a column go through the door; codes and fills follow from the noisy answers.
"""
