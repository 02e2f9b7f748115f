"""Reproductions of published experiments, a module for each paper. ``benchmarks/reproduce.py`` runs them.

A part measures (figures as JSON, stored in ``figures/``) and shows them: Markdown beside the paper's figures,
and pictures. They compare with private data: only for public tables.
"""
