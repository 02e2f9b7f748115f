"""Mixtures: the recipe in ``method.py``, its questions and labels in ``rounds.py``."""

from dpsyn_sql.methods.mixture.method import Mixture

__all__ = ["Mixture"]
