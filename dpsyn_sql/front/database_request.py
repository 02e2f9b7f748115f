"""What a release of tables tied by keys is asked to do, as one value; no other place spells its options."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dpsyn_sql.accounting.budget import Number
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.front.options import Option, Options, check_integer, explain_options, options_of, told
from dpsyn_sql.front.request import OPTIONS
from dpsyn_sql.planning.tree import DEFAULT_MOST
from dpsyn_sql.source.files import DATABASE_ENDINGS, looks_like_path
from dpsyn_sql.source.relation import WEIGHT

if TYPE_CHECKING:  # the command shows its help without what these load
    from dpsyn_sql.domain.file import DomainSpec
    from dpsyn_sql.ledger.sqlite import SqliteLedger


def _as_for_one_table(name: str) -> dict[str, Option]:
    return {"option": OPTIONS[name]}


@dataclass(frozen=True, slots=True, repr=False)
class DatabaseRequest(Options):
    """All options of a release of a database; ``release_database(con, request)`` carries it out.

    It is a value: change it with ``dataclasses.replace``. It is checked when it is used, or by ``check``.
    What it leaves out of ``unit``, ``tables``, ``public_tables`` and ``most`` the file ``domain`` says.
    """

    unit: str | None = field(
        default=None,
        metadata=told(
            "The key of the table whose rows are protected, such as customers.customer_id.",
            "A unit is one of its rows, with all rows of the other tables that belong to it. Default: as in "
            "the file ``domain``.",
        ),
    )
    _: KW_ONLY
    tables: Sequence[str] = field(
        default=(),
        metadata=told(
            "Table to release.",
            "A list of them, with the table of the units. Default: those of the file ``domain``.",
            reads=list,
            flags=("--table",),
        ),
    )
    public_tables: Sequence[str] = field(
        default=(),
        metadata=told(
            "Table without private data that the tables refer to, such as products.",
            "A list of them. Public tables are read openly and kept as they are.",
            reads=list,
            flags=("--public-table",),
        ),
    )
    into: str | os.PathLike[str] | None = field(
        default=None,
        metadata=told(
            "Schema, DuckDB file (ending in .duckdb or .db), or folder of Parquet files (a path).",
            "A schema is made if there is none.",
            flags=("--into", "-o"),
        ),
    )
    epsilon: Number = field(default=1.0, metadata=_as_for_one_table("epsilon"))
    delta: Number = field(default=1e-9, metadata=_as_for_one_table("delta"))
    most: Mapping[str, int] | None = field(
        default=None,
        metadata=told(
            f"The most rows of a table that count of one row above: orders=32. Default: {DEFAULT_MOST}.",
            'In Python ``{"orders": 32}``. Further rows are left out by lot; noise does not grow with it.',
            reads=list,
        ),
    )
    domain: DomainSpec = field(
        default=None,
        metadata=told(
            "YAML file with what is public about the tables and their columns; see 'dpsyn init'.",
            "Or a mapping. It has keys, links between tables, and the domains of columns.",
            reads=Path,
        ),
    )
    name: str | None = field(default=None, metadata=_as_for_one_table("name"))
    version: str | None = field(default=None, metadata=_as_for_one_table("version"))
    account: str | None = field(
        default=None,
        metadata=told(
            "Account of the ledger to charge.", "Default: the account that the tables are charged to."
        ),
    )
    ledger: SqliteLedger | str | os.PathLike[str] | None = field(
        default=None, metadata=_as_for_one_table("ledger")
    )
    units: int | None = field(
        default=None,
        metadata=told(
            "Units to write: rows of their table. Default: the noisy total.",
            "At most a million if that is nothing but noise. The other tables have what belongs to them.",
            reads=int,
        ),
    )
    seed: int | None = field(default=None, metadata=_as_for_one_table("seed"))
    exclude: Sequence[str] = field(
        default=(),
        metadata=told("Column to leave out, such as orders.note.", "A list of them.", reads=list),
    )
    replace: bool = field(default=False, metadata=_as_for_one_table("replace"))
    constraints: bool = field(
        default=False, metadata=told("Write PRIMARY KEY and FOREIGN KEY constraints too.")
    )
    new_debit: bool = field(default=False, metadata=_as_for_one_table("new_debit"))
    discover: bool = field(default=True, metadata=_as_for_one_table("discover"))
    memory_limit: str | int | None = field(default=None, metadata=_as_for_one_table("memory_limit"))
    scratch: str = field(default="encrypted", metadata=_as_for_one_table("scratch"))
    time_limit: float | None = field(default=None, metadata=_as_for_one_table("time_limit"))

    paths: ClassVar[tuple[str, ...]] = ("into", "domain", "ledger")

    @classmethod
    def is_path(cls, name: str, text: str) -> bool:
        """Whether the value of a field that can hold a path is one."""
        return name != "into" or is_output_path(text)

    def check(self) -> None:
        """Refuse what can be refused without opening anything.

        Raises:
            InputError: naming the option, its value, and what is allowed.
        """
        self.check_common(
            names=("tables", "public_tables", "exclude"),
            flags=("replace", "constraints", "new_debit", "discover"),
        )
        check_integer("units", self.units, None)
        if self.unit is not None and (not isinstance(self.unit, str) or not self.unit):
            raise InputError(
                f"unit={said(self.unit)}: give the key of a table, such as 'customers.customer_id', or None"
            )
        if self.into is not None and not (isinstance(self.into, str | os.PathLike) and os.fspath(self.into)):
            raise InputError(f"into={said(self.into)}: give the name of a schema or a path")
        if self.most is not None and not isinstance(self.most, Mapping):
            raise InputError(f'most={said(self.most)}: give numbers by table: {{"orders": 16}}')
        for table, number in (self.most or {}).items():
            check_most(table, number)


def is_output_path(text: str) -> bool:
    """Whether ``into`` is a path rather than the name of a schema."""
    return looks_like_path(text) or text.lower().endswith(DATABASE_ENDINGS)


def check_most(table: Any, number: Any) -> None:
    """Refuse a bound that is none.

    Raises:
        InputError: the table is no text, or the number no whole number from 1 to ``WEIGHT``.
    """
    whole = isinstance(number, int) and not isinstance(number, bool)
    if not isinstance(table, str) or not whole or not 1 <= number <= WEIGHT:
        raise InputError(
            f"most={{{said(table)}: {said(number)}}} is out of range: give by the name of a table a whole "
            f"number from 1 to {WEIGHT}"
        )


DATABASE_OPTIONS: Mapping[str, Option] = options_of(DatabaseRequest)
"""By the names of the fields, in their order."""

DATABASE_DEFAULTS: Mapping[str, Any] = {item.name: item.default for item in fields(DatabaseRequest)}

explain_options(DatabaseRequest)
