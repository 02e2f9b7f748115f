"""The arguments of ``release()`` and ``plan()``, checked before anything is opened."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpsyn_sql.accounting.budget import Budget, Number
from dpsyn_sql.errors import InputError

_SEEDS = 2**64


@dataclass(frozen=True, slots=True)
class Options:
    """See ``dpsyn_sql.release`` for the meaning of each."""

    source: str | os.PathLike[str]
    into: str | os.PathLike[str] | None
    epsilon: Number
    delta: Number
    method: str
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
    trust_query: bool
    public_tables: Sequence[str]

    def budget(self) -> Budget:
        """What (epsilon, delta) buys.

        Raises:
            BudgetError: epsilon or delta out of range.
        """
        return Budget.from_epsilon(self.epsilon, self.delta)

    def check(self) -> None:
        """Refuse what can be refused without looking at anything.

        Raises:
            InputError: naming the argument, its value, and what is allowed.
        """
        self.budget()
        _check_integer("rows", self.rows, None)
        _check_integer("seed", self.seed, _SEEDS)
        for argument in ("exclude", "public_tables"):
            if isinstance(getattr(self, argument), str):
                raise InputError(f"{argument}={getattr(self, argument)!r} is one text; give a list of names")
        self._check_single_rows()

    def _check_single_rows(self) -> None:
        allowed = {
            "privacy_unit": "row",
            "max_rows_per_unit": 1,
            "name": None,
            "version": None,
            "account": None,
        }
        for argument, only in allowed.items():
            value = getattr(self, argument)
            if value != only:
                raise InputError(
                    f"{argument}={value!r} is not supported by this version; leave it at {only!r}: "
                    "one row is the privacy unit, and the budget is recorded per process"
                )


def _check_integer(name: str, value: int | None, below: int | None) -> None:
    if value is None:
        return
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < 0 or (below is not None and value >= below):
        limit = "" if below is None else f" and below {below}"
        raise InputError(f"{name}={value!r} is out of range: give a whole number from 0 up{limit}, or None")
