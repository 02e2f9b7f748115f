"""Differentially private synthetic tables, made inside the database.

    release = dpsyn_sql.release(con, "adult", epsilon=1.0, domain="adult.domain.yml")

Read in this order: ``release.py`` (the pipeline on one page), ``interfaces.py`` (the seams),
then the folders as the pipeline meets them: ``source``, ``domain``, ``plan``, ``count``,
``measure`` (the door), ``fit``, ``sample``, ``write``; and ``methods`` for the recipes.
"""

from dpsyn_sql.errors import (
    AccountError,
    BudgetError,
    DomainError,
    DpsynError,
    EngineFailure,
    InputError,
    InternalError,
    LedgerDamaged,
    LedgerError,
    PlanTooLarge,
    PrivacyBudgetExceeded,
    PublishError,
    ReleaseChanged,
    ReleaseExists,
    SourceError,
    TargetError,
)
from dpsyn_sql.explanation import Explanation, domain_template, plan
from dpsyn_sql.release import release
from dpsyn_sql.report.result import Release

__version__ = "0.1.0"

__all__ = [
    "AccountError",
    "BudgetError",
    "DomainError",
    "DpsynError",
    "EngineFailure",
    "Explanation",
    "InputError",
    "InternalError",
    "LedgerDamaged",
    "LedgerError",
    "PlanTooLarge",
    "PrivacyBudgetExceeded",
    "PublishError",
    "Release",
    "ReleaseChanged",
    "ReleaseExists",
    "SourceError",
    "TargetError",
    "domain_template",
    "plan",
    "release",
]
