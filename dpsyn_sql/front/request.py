"""What a release is asked to do, as one value: the only place that spells its options.

The signatures and the help of ``release()`` and ``plan()``, the keys of a YAML file and the options of the
command are made from the fields of ``Request``. A connection or a secret is never part of a request.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dpsyn_sql.accounting.budget import Number
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.front.options import (
    Option,
    Options,
    check_integer,
    check_names,
    explain_options,
    options_of,
    plain,
    told,
)
from dpsyn_sql.planning.limits import LimitsSpec
from dpsyn_sql.planning.panel import Panel, panel_of
from dpsyn_sql.planning.running import MOST_ROWS_PER_UNIT, Total, total_of
from dpsyn_sql.planning.tree import DEFAULT_MOST
from dpsyn_sql.planning.workload import WorkloadSpec, members_of, read_workload
from dpsyn_sql.source.csv_form import ENCODINGS, CsvSpec, csv_form
from dpsyn_sql.source.files import DATABASE_ENDINGS, looks_like_path
from dpsyn_sql.source.frames import DataFrame, Frame, is_frame, same
from dpsyn_sql.source.names import is_query
from dpsyn_sql.source.relation import WEIGHT, PrivacyUnit
from dpsyn_sql.source.slices import Slice, check_slice, is_slice

if TYPE_CHECKING:  # the command shows its help without what these load
    from dpsyn_sql.attributes.file import DomainSpec
    from dpsyn_sql.ledger.sqlite import SqliteLedger
    from dpsyn_sql.methods.recipe import Recipe

NOT_OF_A_PANEL = ("rows", "seed", "replace", "new_debit", "order")
"""Options that no panel takes."""

METHOD_OF_TREES = "adaptive"
"""The method that keeps the rows of a unit together in every table: it draws a row given those above it."""

SERIES = ("", "total", "panel")
"""What a release of a window is: by itself, a sum with the windows before it, or the next rows of persons."""

OF_ONE_TABLE: tuple[str, ...] = (
    *("method", "order", "weights", "workload", "trust_query", "window", "series", "csv"),
)
"""Options that several tables do not take."""


@dataclass(frozen=True, slots=True, repr=False)
class Request(Options):
    """All options of a release; ``release(con, request)`` carries it out, ``plan`` explains it.

    It is a value: change it with ``dataclasses.replace``. It is checked when it is used, or by ``check``.
    """

    source: str | os.PathLike[str] | DataFrame | Frame | Sequence[str] | None = field(
        default=None,
        metadata=told(
            "A table or view, a CSV or Parquet path or glob, or a query.",
            "Or a data frame of pandas, Polars or Spark or an Arrow table; then ``name`` stands for the data "
            "in the ledger. Or a list of tables of one DuckDB database that keys tie: they are released "
            'together (docs/privacy.md, "A tree of tables"). None: the tables of the file ``domain``.',
        ),
    )
    _: KW_ONLY
    into: str | os.PathLike[str] | None = field(
        default=None,
        metadata=told(
            "Table, or file ending in .parquet, .csv or .csv.gz. Default: SOURCE_synthetic, beside it. Of "
            "several tables a schema, a DuckDB file, or a folder of Parquet files.",
            "A schema is made if there is none.",
            flags=("--into", "-o"),
        ),
    )
    epsilon: Number = field(
        default=1.0, metadata=told("Privacy loss; smaller is more private.", flags=("--epsilon", "-e"))
    )
    delta: Number = field(
        default=1e-9,
        metadata=told("0 (pure differential privacy) to 1e-6.", "With 0 the noise is that of Laplace."),
    )
    method: str | Recipe | Mapping[str, Any] = field(
        default="auto",
        metadata=told(
            "A method.",
            "A name, a value of ``dpsyn_sql.methods`` (each is described there), or a mapping with its "
            "``name`` and settings. ``auto`` is the most accurate method for the number of columns.",
            flags=("--method", "-m"),
        ),
    )
    domain: DomainSpec = field(
        default=None,
        metadata=told(
            "YAML file with what is public about the columns and tables; see 'dpsyn init'.",
            "Or a mapping. It has bounds, categories and roles of columns; of several tables also their "
            "keys, the links between them, and the unit.",
            reads=Path,
        ),
    )
    unit: str | None = field(
        default=None,
        metadata=told(
            "Whom the release protects: row, or the column that says whose row it is (customer_id); of "
            "several tables the key of one of them, such as customers.customer_id.",
            "With a column, all rows of one value are protected together, and rows without a value are left "
            "out. The output has fresh values in this column. Default: row, if no column is named like the "
            "id of a person and is no key of the table; of several tables as in the file ``domain``.",
        ),
    )
    most: int | Mapping[str, int] | None = field(
        default=None,
        metadata=told(
            f"The most rows of a unit that count; of a table below others the most of one row above: "
            f"orders=32. Default: {DEFAULT_MOST} where rows have weights, else 1.",
            'Of several tables ``{"orders": 32}``. Further rows are left out by lot.',
            reads=list,
        ),
    )
    order: str | None = field(
        default=None,
        metadata=told(
            "The column that orders the rows of a unit, such as visit_date.",
            "A date, a timestamp or a whole number with bounds. What follows what is kept. Of several tables "
            "the file ``domain`` says it, table by table.",
        ),
    )
    weights: bool = field(
        default=True,
        metadata=told(
            "Each unit counts the same, however many rows it has, and its rows stay together; or each row "
            "counts, and noise grows with --most.",
            "With weights the release keeps how many rows a unit has and what they share; columns with "
            "``per_unit: true`` in the domain have one value per unit.",
            flags=("--weights/--no-weights",),
        ),
    )
    name: str | None = field(
        default=None,
        metadata=told(
            "Release name in the ledger. Default: the output.",
            "The output is named relative to the ledger's folder.",
        ),
    )
    version: str | None = field(
        default=None,
        metadata=told(
            "Public label of the data (batch, period); a new label measures again.",
            "The same name and version replays the stored answers at no cost.",
        ),
    )
    account: str | None = field(
        default=None,
        metadata=told(
            "Account of the ledger to charge.", "Default: the account that the source is charged to."
        ),
    )
    ledger: SqliteLedger | str | os.PathLike[str] | None = field(
        default=None,
        metadata=told(
            "Ledger file. Default: DPSYN_LEDGER, else beside the source.",
            "Or an open ledger. The debit is recorded in it. The default ledger of a database in memory ends "
            "with the connection.",
            reads=Path,
        ),
    )
    rows: int | None = field(
        default=None,
        metadata=told(
            "Rows to write; where rows of a unit stay together, and of several tables, units. Default: the "
            "noisy total.",
            "At most a million if that is nothing but noise.",
            reads=int,
        ),
    )
    seed: int | None = field(
        default=None,
        metadata=told(
            "Seed of the sampling; the noise has none.",
            "0 to 2^64 - 1; default: derived from the release id.",
            reads=int,
        ),
    )
    exclude: Sequence[str] = field(
        default=(),
        metadata=told(
            "Column to leave out; of several tables with its table, such as orders.note.",
            "A list of them.",
            reads=list,
        ),
    )
    replace: bool = field(default=False, metadata=told("Overwrite an existing output."))
    constraints: bool = field(
        default=False,
        metadata=told("Of several tables: write PRIMARY KEY and FOREIGN KEY constraints too."),
    )
    new_debit: bool = field(
        default=False,
        metadata=told(
            "Pay again for a release with other settings or another output.",
            "It allows a release of the same name and version with other settings, and one of the same "
            "settings to another output. Without it neither is charged.",
        ),
    )
    trust_query: bool = field(
        default=False,
        metadata=told(
            "State that every row of the query comes from one row of the source.",
            "The owner states that each of its rows belongs to one unit.",
        ),
    )
    public_tables: Sequence[str] = field(
        default=(),
        metadata=told(
            "Table without private data that a query joins, or that the tables refer to, such as products.",
            "A list of them. Public tables are read openly; of several tables they are kept as they are.",
            reads=list,
            flags=("--public-table",),
        ),
    )
    discover: bool = field(
        default=True,
        metadata=told(
            "Learn domains that are not public (at most a tenth of the budget), or refuse such columns.",
            "A domain is public if ``domain`` or the catalog gives it. False refuses other columns.",
            flags=("--discover/--no-discover",),
        ),
    )
    csv: CsvSpec = field(
        default=None,
        metadata=told(
            "How a CSV file is written, as delimiter=tab: delimiter (default: that of its header), decimal "
            f"(. or a comma), encoding ({', '.join(ENCODINGS)}), quote, and on_error: null, or fail (depends "
            "on a row: not private).",
            'In Python ``{"delimiter": "tab"}``. ``quote`` is empty if no field is quoted. ``on_error``: '
            "text that is not a value of its type is NULL, or stops the release; that it stopped is outside "
            "the promise. A file of other bytes is refused before the debit. That depends on its rows; you "
            "alone see it.",
            reads=list,
        ),
    )
    limits: LimitsSpec = field(
        default=None,
        metadata=told(
            "Of the process: memory=4GB (the model shrinks to fit), time=60 (seconds for the fit and the "
            "sample), scratch=plain (codes that do not fit in memory, on a disk that is encrypted).",
            'In Python ``{"memory": "4GB", "time": 60}``. ``memory``: or bytes, at least 512MiB; the '
            "database spills earlier. ``time`` runs after the last question: if little is left, the last fit "
            "takes fewer steps and the rows are drawn the fastest way. ``scratch``: ``encrypted``, or "
            "``plain``, which takes half the time to write and to read; in a folder of TMPDIR that nobody "
            "else can enter, and that goes with the release. ``memory`` and ``scratch`` are for files and "
            "paths of databases: a connection that you pass has its own settings.",
            reads=list,
            flags=("--limit",),
        ),
    )
    workload: WorkloadSpec = field(
        default=None,
        metadata=told(
            "The column that others are to predict, as income: its pairs get more of the budget. Or weights: "
            "income=5 for all pairs with a column, age,sex=2 for one pair.",
            'In Python ``"income"``, or ``{"income": "target", ("age", "sex"): 2}``: weights (0.001 to 1000) '
            "of all pairs with a column, or of the pairs within several; other pairs have weight 1, those of "
            "the target 10, and the larger weight applies. ``privbayes`` makes the target a parent of every "
            "other column.",
            reads=list,
        ),
    )
    window: Slice | None = None
    """The rows of one window or partition (``source/slices.py``): for programs, so no option of the command,
    of YAML or of the help."""
    series: str = ""
    """One of ``SERIES``, for programs too. ``total``: the release is of all windows so far. ``panel``: rows
    of a window follow those of the same synthetic persons in the one before. ``epsilon`` and ``delta`` are
    then for all windows of the calendar together."""

    paths: ClassVar[tuple[str, ...]] = ("source", "into", "domain", "ledger")

    @classmethod
    def plain(cls, name: str, value: Any) -> Any:
        """A value of plain data, as a call would have it."""
        if name == "workload" and isinstance(value, Mapping):
            return {members_of(key) if isinstance(key, str) else key: weight for key, weight in value.items()}
        return plain(name, value)

    @classmethod
    def is_path(cls, name: str, text: str, given: Mapping[str, Any]) -> bool:
        """Whether the value of a field that can hold a path is one, beside the other values."""
        if name == "into" and not isinstance(given.get("source"), str):
            return is_output_of_tables(text)
        return name not in ("source", "into") or (looks_like_path(text) and not is_query(text))

    def __eq__(self, other: object) -> bool:
        """Data frames are equal only to themselves: their own ``==`` compares cell by cell."""
        if not isinstance(other, Request):
            return NotImplemented
        return all(same(getattr(self, item.name), getattr(other, item.name)) for item in fields(self))

    def __repr__(self) -> str:
        """What is not default; of values that are no text and no number their type alone."""
        given = self.given()
        if self.window is not None:
            given.append(
                f"window={self.window!r}" if is_slice(self.window) else f"window={said(self.window)}"
            )
        if self.series:
            given.append(f"series={said(self.series)}")
        return f"Request({', '.join(given)})"

    @property
    def several(self) -> bool:
        """Whether it is of a list of tables that keys tie."""
        return isinstance(self.source, list | tuple)

    @property
    def tables(self) -> tuple[str, ...]:
        """The list of tables; empty of any other source."""
        return tuple(self.source) if isinstance(self.source, list | tuple) else ()

    def total(self) -> Total | None:
        """The running total that it asks for; None for any other release.

        Raises:
            InputError: as ``planning.running.total_of``.
        """
        if self.series != "total":
            return None
        unit = self.protected()
        return total_of(
            self.window,
            name=self.name,
            version=self.version,
            rows=unit.max_rows,
            of_rows=unit.column is None,
            whole=self.budget(),
        )

    def panel(self) -> Panel | None:
        """The period of a panel that it asks for; None for any other release.

        Raises:
            InputError: as ``planning.panel.panel_of``, or an option that no panel takes is given.
        """
        if self.series != "panel":
            return None
        values = {name: getattr(self, name) for name in NOT_OF_A_PANEL}
        given = [name for name, value in values.items() if value not in (None, ()) and value is not False]
        if given:
            raise InputError(f"A panel takes no {given[0]}=: a period follows from those before it.")
        if self.protected().column is None or self.most not in (None, 1):
            raise InputError(
                "A panel follows persons: give unit= the column that identifies them, and leave most= out, "
                "since a person has one row in each period."
            )
        return panel_of(self.window, self.version, self.budget())

    def protected(self) -> PrivacyUnit:
        """The unit that a release of one table protects."""
        column = None if self.unit is None or self.unit.lower() == "row" else self.unit
        weights = column is not None and self.weights and not self.series
        most = self.most if isinstance(self.most, int) else None
        if most is None:
            most = DEFAULT_MOST if weights and self._keeps_families else 1
        return PrivacyUnit(column, most, together=weights and most > 1, order=self.order)

    @property
    def _keeps_families(self) -> bool:
        """Whether its method keeps the rows of a unit together."""
        from dpsyn_sql.methods import method_of  # loads numpy

        return method_of(self.method).takes_families

    def check(self) -> None:
        """Refuse what can be refused without opening anything.

        Raises:
            InputError: naming the option, its value, and what is allowed.
        """
        self.check_common(
            names=("exclude", "public_tables"),
            flags=("replace", "constraints", "new_debit", "trust_query", "discover", "weights"),
        )
        check_integer("rows", self.rows, None)
        read_workload(self.workload)
        csv_form(self.csv)
        check_slice(self.window)
        if self.series not in SERIES:
            raise InputError(f"series={said(self.series)} is not known; use one of 'total', 'panel', or ''")
        self._check_places()
        self._check_unit()
        from dpsyn_sql.attributes.database_file import is_of_tables  # loads much

        of_several = self.source is None and (self.constraints or isinstance(self.most, Mapping))
        if self.several or (of_several and is_of_tables(self.domain)):
            self._check_several()
        else:
            self._check_one()
            self.total()
            self.panel()

    def _check_places(self) -> None:
        source = self.source
        if self.several:
            check_names("source", source)
        elif source is not None and not isinstance(source, str | os.PathLike) and not is_frame(source):
            raise InputError(
                f"source={said(source)}: give a table, a path or a query as text, a list of tables, or a "
                "pandas or Polars data frame or an Arrow table (lazy ones after collect())"
            )
        if self.into is not None and not (isinstance(self.into, str | os.PathLike) and os.fspath(self.into)):
            raise InputError(f"into={said(self.into)}: give the name of a table or a path, or None")

    def _check_unit(self) -> None:
        for name, what in (
            (
                "unit",
                "'row', the name of a column, or of several tables a key such as 'customers.customer_id'",
            ),
            ("order", "the name of a column, or None"),
        ):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value):
                raise InputError(f"{name}={said(value)}: give {what}")
        if not isinstance(self.most, int | Mapping | None):
            raise InputError(
                f'most={said(self.most)}: give a whole number, or numbers by table: {{"orders": 16}}'
            )
        for table, number in self.most.items() if isinstance(self.most, Mapping) else ():
            check_most(table, number)

    def _check_several(self) -> None:
        """Refuse what several tables do not take.

        Raises:
            InputError: naming the option.
        """
        given = [name for name in OF_ONE_TABLE if not same(getattr(self, name), DEFAULTS[name])]
        if given == ["method"] and self.method in ("auto", METHOD_OF_TREES):
            given = []
        if given:
            where = (
                " It stands in the file of the tables (domain=), table by table."
                if given[0] == "order"
                else ""
            )
            raise InputError(
                f"{given[0]}= is for one table, and this release is of tables that keys tie: leave it "
                f"out.{where}"
            )
        if self.unit is not None and self.unit.lower() == "row" and self.unit not in self.tables:
            raise InputError(
                f"unit={self.unit!r} means single rows, which is for one table: name the key of the table "
                "whose rows are protected, such as 'customers.customer_id'"
            )
        if isinstance(self.most, int):
            raise InputError(
                f'most={self.most} does not say of which table: give numbers by table: {{"orders": 16}}'
            )

    def _check_one(self) -> None:
        if self.constraints:
            raise InputError("constraints= is for several tables that keys tie: leave it out for one table")
        if isinstance(self.most, Mapping):
            raise InputError(
                "most= by the names of tables is for several tables: give one whole number for one table"
            )
        check_integer("most", self.most, MOST_ROWS_PER_UNIT)
        column = self.protected().column
        if self.most is not None and (self.most < 1 or (column is None and self.most != 1)):
            raise InputError(
                f"most={self.most} is out of range: leave it out with unit='row', and give 1 or more with a "
                "column; further rows of a unit are left out"
            )
        if self.protected().together and self.protected().max_rows > WEIGHT:
            raise InputError(
                f"most={self.most} is out of range: each of n rows of a unit counts {WEIGHT} // n, which is "
                f"nothing for more than {WEIGHT}. Give most={WEIGHT} or less, or weights=False"
            )
        if self.order is not None and self.series:
            raise InputError(
                "order= is for a release by itself: rows of a running total or a panel are not ordered. "
                "Leave it out"
            )
        if self.order is not None and not self.protected().together:
            raise InputError(
                "order= orders the rows of a unit, which stay together: name its column, unit='customer_id', "
                "give most= of 2 or more (default 16), and leave weights=False out"
            )


def check_most(table: Any, number: Any) -> None:
    """Refuse a bound of a table that is none.

    Raises:
        InputError: the table is no text, or the number no whole number from 1 to ``WEIGHT``.
    """
    whole = isinstance(number, int) and not isinstance(number, bool)
    if not isinstance(table, str) or not whole or not 1 <= number <= WEIGHT:
        raise InputError(
            f"most={{{said(table)}: {said(number)}}} is out of range: give by the name of a table a whole "
            f"number from 1 to {WEIGHT}"
        )


def is_output_of_tables(text: str) -> bool:
    """Whether the output of several tables is a path rather than the name of a schema."""
    return looks_like_path(text) or text.lower().endswith(DATABASE_ENDINGS)


OPTIONS: Mapping[str, Option] = options_of(Request)
"""By the names of the fields, in their order."""

DEFAULTS: Mapping[str, Any] = {item.name: item.default for item in fields(Request)}

explain_options(Request)
