"""Traces: the recipe and its network in ``method.py``, questions and fits in ``tables.py``."""

from dpsyn_sql.methods.traces.method import Traces

__all__ = ["Traces"]
