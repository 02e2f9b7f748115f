"""Traces: the recipe in ``method.py``, its questions and fits in ``tables.py``, its network in ``nodes.py``."""

from dpsyn_sql.methods.traces.method import Traces

__all__ = ["Traces"]
