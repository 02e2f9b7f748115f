"""PrivBayes: the recipe in ``method.py``, its steps in the modules beside it."""

from dpsyn_sql.methods.privbayes.method import PrivBayes

__all__ = ["PrivBayes"]
