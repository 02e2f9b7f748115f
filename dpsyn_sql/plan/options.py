"""The arguments of ``release()`` and ``plan()``, checked before anything is opened."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpsyn_sql.accounting.budget import Budget, Number
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.plan.limits import Limits, is_duration, memory_in_bytes
from dpsyn_sql.plan.workload import WorkloadSpec, read_workload
from dpsyn_sql.source.relation import PrivacyUnit

ON_ERROR = ("null", "fail")
"""What becomes of CSV text that cannot be read as its column's type."""

_SEEDS = 2**64
_MOST_ROWS_PER_UNIT = 2**31


@dataclass(frozen=True, slots=True)
class Options:
    """See ``dpsyn_sql.release`` for the meaning of each."""

    source: str | os.PathLike[str]
    into: str | os.PathLike[str] | None
    epsilon: Number
    delta: Number
    method: Any
    domain: Any
    privacy_unit: str
    max_rows_per_unit: int
    name: str | None
    version: str | None
    account: str | None
    ledger: Any
    rows: int | None
    seed: int | None
    exclude: Sequence[str]
    replace: bool
    new_debit: bool
    trust_query: bool
    public_tables: Sequence[str]
    discover: bool
    on_error: str
    memory_limit: str | int | None
    time_limit: float | None
    workload: WorkloadSpec = None

    def budget(self) -> Budget:
        """What (epsilon, delta) buys.

        Raises:
            BudgetError: epsilon or delta out of range.
        """
        return Budget.of_release(self.epsilon, self.delta)

    def check(self) -> None:
        """Refuse what can be refused without looking at anything.

        Raises:
            InputError: naming the argument, its value, and what is allowed.
        """
        self.budget()
        _check_integer("rows", self.rows, None)
        _check_integer("seed", self.seed, _SEEDS)
        for argument in ("exclude", "public_tables"):
            _check_names(argument, getattr(self, argument))
        for argument in ("replace", "new_debit", "trust_query", "discover"):
            if not isinstance(getattr(self, argument), bool):
                raise InputError(f"{argument}={said(getattr(self, argument))}: give True or False")
        for argument in ("name", "version", "account"):
            _check_label(argument, getattr(self, argument))
        self.limits()
        if self.time_limit is not None and not is_duration(self.time_limit):
            raise InputError(
                f"time_limit={said(self.time_limit)}: give a positive number of seconds, or None"
            )
        read_workload(self.workload)
        if not isinstance(self.on_error, str) or self.on_error not in ON_ERROR:
            raise InputError(f"on_error={said(self.on_error)} is not known; use one of {', '.join(ON_ERROR)}")
        if not isinstance(self.source, str | os.PathLike):
            raise InputError(f"source={said(self.source)}: give a table, a path or a query as text")
        if self.into is not None and not isinstance(self.into, str | os.PathLike):
            raise InputError(f"into={said(self.into)}: give the name of a table or a path, or None")
        if self.domain is not None and not isinstance(self.domain, str | os.PathLike | Mapping):
            raise InputError(f"domain={said(self.domain)}: give a YAML file, a mapping, or None")
        if not _is_ledger(self.ledger):
            raise InputError(f"ledger={said(self.ledger)}: give the path of a file, an open ledger, or None")
        if not isinstance(self.privacy_unit, str) or not self.privacy_unit:
            raise InputError(f"privacy_unit={said(self.privacy_unit)}: give 'row' or the name of a column")
        _check_integer("max_rows_per_unit", self.max_rows_per_unit, _MOST_ROWS_PER_UNIT)
        if self.max_rows_per_unit < 1 or (self.unit().column is None and self.max_rows_per_unit != 1):
            raise InputError(
                f"max_rows_per_unit={self.max_rows_per_unit} is out of range: it is 1 with "
                "privacy_unit='row', and from 1 up with a column; rows beyond it are left out"
            )

    def limits(self) -> Limits:
        """How much memory there is.

        Raises:
            InputError: ``memory_limit`` is not understood or too small.
        """
        return Limits(memory_in_bytes(self.memory_limit))

    def unit(self) -> PrivacyUnit:
        """Whom the release protects."""
        column = None if self.privacy_unit.lower() == "row" else self.privacy_unit
        return PrivacyUnit(column, self.max_rows_per_unit)


def _check_names(argument: str, value: Any) -> None:
    if (
        isinstance(value, str)
        or not isinstance(value, Sequence)
        or not all(isinstance(x, str) for x in value)
    ):
        raise InputError(f"{argument}={said(value)}: give a list of names")


def _check_label(argument: str, value: Any) -> None:
    """A label must survive a ledger, a message and a terminal."""
    if value is None:
        return
    if not isinstance(value, str) or not value or not value.isprintable():
        raise InputError(f"{argument}={said(value)} is not a usable label: give some printable text, or None")


def _is_ledger(value: Any) -> bool:
    if value is None or hasattr(value, "open_release"):
        return True
    return isinstance(value, str | os.PathLike) and bool(os.fspath(value))


def _check_integer(name: str, value: int | None, below: int | None) -> None:
    if value is None:
        return
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < 0 or (below is not None and value >= below):
        limit = "" if below is None else f" and below {below}"
        raise InputError(
            f"{name}={said(value)} is out of range: give a whole number from 0 up{limit}, or None"
        )
