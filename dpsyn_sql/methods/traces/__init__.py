"""Traces: the recipe in ``method.py``, questions and fits in ``tables.py``, the network in ``nodes.py``."""

from dpsyn_sql.methods.traces.method import Traces

__all__ = ["Traces"]
