"""Adaptive marginals: the recipe in ``method.py``, its steps in the modules beside it."""

from dpsyn_sql.methods.adaptive.method import Adaptive

__all__ = ["Adaptive"]
