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
from dpsyn_sql.front.options import Option, Options, check_integer, explain_options, options_of, plain, told
from dpsyn_sql.planning.panel import Panel, panel_of
from dpsyn_sql.planning.running import MOST_ROWS_PER_UNIT, Total, total_of
from dpsyn_sql.planning.workload import WorkloadSpec, members_of, read_workload
from dpsyn_sql.source.csv_form import ENCODINGS, CsvForm, csv_form
from dpsyn_sql.source.files import looks_like_path
from dpsyn_sql.source.frames import DataFrame, Frame, is_frame, same
from dpsyn_sql.source.names import is_query
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.source.slices import Slice, check_slice, is_slice

if TYPE_CHECKING:  # the command shows its help without what these load
    from dpsyn_sql.domain.file import DomainSpec
    from dpsyn_sql.ledger.sqlite import SqliteLedger
    from dpsyn_sql.methods.recipe import Recipe

ON_ERROR = ("null", "fail")
"""What happens to CSV text that cannot be read as its column's type."""

NOT_OF_A_PANEL = ("rows", "seed", "replace", "new_debit", "together", "cumulative")
"""Options that no panel takes."""


@dataclass(frozen=True, slots=True, repr=False)
class Request(Options):
    """All options of a release; ``release(con, request)`` carries it out, ``plan`` explains it.

    It is a value: change it with ``dataclasses.replace``. It is checked when it is used, or by ``check``.
    """

    source: str | os.PathLike[str] | DataFrame | Frame | None = field(
        default=None,
        metadata=told(
            "A table or view, a CSV or Parquet path or glob, or a query.",
            "Or a data frame of pandas, Polars or Spark or an Arrow table; then ``name`` stands for the data "
            "in the ledger.",
        ),
    )
    _: KW_ONLY
    into: str | os.PathLike[str] | None = field(
        default=None,
        metadata=told(
            "Table, or file ending in .parquet, .csv or .csv.gz. Default: SOURCE_synthetic, beside it.",
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
            "YAML file with the public domain of the columns; see 'dpsyn init'.",
            "Or a mapping. It has what is public about the columns: bounds, categories, roles.",
            reads=Path,
        ),
    )
    privacy_unit: str | None = field(
        default=None,
        metadata=told(
            "row, or the column that identifies the unit (customer_id). Default: row, if no column is named "
            "like that.",
            "With a column, all rows of one value are protected together, and rows without a value are left "
            "out. The output has fresh values in this column. Where a column is named like the id of a "
            "person, and is no key of the table, ``'row'`` has to be written.",
        ),
    )
    max_rows_per_unit: int = field(
        default=1, metadata=told("The most rows of a unit that count; more rows, more noise.", reads=int)
    )
    together: bool = field(
        default=False,
        metadata=told(
            "Keep the rows of a unit together: how many they are, and what they share.",
            "Each unit counts the same, however many rows it has: noise does not grow with "
            "``max_rows_per_unit``. Columns with ``per_unit: true`` in the domain have one value per unit.",
        ),
    )
    order: str | None = field(
        default=None,
        metadata=told(
            "With --together, the column that orders the rows of a unit, such as visit_date.",
            "A date, a timestamp or a whole number with bounds. What follows what is kept.",
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
            "Rows to write; with --together units. Default: the noisy total.",
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
        default=(), metadata=told("Column to leave out.", "A list of them.", reads=list)
    )
    replace: bool = field(default=False, metadata=told("Overwrite an existing output."))
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
            "Table without private data that a query joins.",
            "A list of them.",
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
    on_error: str = field(
        default="null",
        metadata=told(
            "CSV text that is not a value of its type: null, or fail (depends on a row: not private).",
            "``fail`` stops the release; that it stopped is outside the promise.",
        ),
    )
    encoding: str | None = field(
        default=None,
        metadata=told(
            f"Of a CSV file: {', '.join(ENCODINGS)}. Default: {ENCODINGS[0]}.",
            "A file of other bytes is refused before the debit. That depends on its rows; you alone see it.",
        ),
    )
    delimiter: str | None = field(
        default=None,
        metadata=told(
            "Of a CSV file: what stands between fields, or tab. Default: what its header uses.",
            "One character.",
        ),
    )
    decimal: str | None = field(
        default=None,
        metadata=told("Of a CSV file: what stands before decimals, . or a comma. Default: a point."),
    )
    quote: str | None = field(
        default=None,
        metadata=told(
            'Of a CSV file: what stands around a field with a delimiter in it. Default: ".',
            "One character, or empty text if no field is quoted.",
        ),
    )
    memory_limit: str | int | None = field(
        default=None,
        metadata=told(
            "Memory of the process, such as 4GB; the model shrinks to fit.",
            "Or bytes, at least 512MiB, for files and paths of databases: the database spills earlier. A "
            "connection that you pass has its own setting.",
        ),
    )
    scratch: str = field(
        default="encrypted",
        metadata=told(
            "Codes that do not fit in memory: encrypted, or plain on a disk that is encrypted.",
            "They are in a folder of TMPDIR that nobody else can enter, and go with the release. ``plain`` "
            "takes half the time to write and to read. For files and paths of databases.",
        ),
    )
    time_limit: float | None = field(
        default=None,
        metadata=told(
            "Seconds for the fit and the sample, after the last question.",
            "If little time is left, the last fit takes fewer steps and the rows are drawn the fastest way. "
            "The time of measuring is not limited.",
            reads=float,
        ),
    )
    workload: WorkloadSpec = field(
        default=None,
        metadata=told(
            "Weights: income=5 for all pairs with a column, age,sex=2 for one pair.",
            'In Python ``{"income": 5, ("age", "sex"): 2}``: weights (0.001 to 1000) of all pairs with a '
            "column, or of the pairs within several; other pairs have weight 1.",
            reads=list,
        ),
    )
    target: str | None = field(
        default=None,
        metadata=told(
            "The column that others are to predict: its pairs get more of the budget.",
            "A shortcut for a ``workload`` of weight 10 for all pairs with it; where ``workload`` weighs a "
            "pair too, the larger weight applies. ``privbayes`` makes it a parent of every other column.",
        ),
    )
    slice: Slice | None = None
    """The rows of one window or partition (``source/slices.py``): for programs, so no option of the command,
    of YAML or of the help."""
    cumulative: tuple[str, ...] = ()
    """The labels of all periods of the calendar of ``slice``: the release is then a running total, and
    ``epsilon`` and ``delta`` are for all periods together. For programs too."""
    panel: tuple[str, ...] = ()
    """The same for a panel: rows of a period follow those of the same synthetic persons in the one before."""

    paths: ClassVar[tuple[str, ...]] = ("source", "into", "domain", "ledger")

    @classmethod
    def plain(cls, name: str, value: Any) -> Any:
        """A value of plain data, as a call would have it."""
        if name == "on_error" and value is None:
            return "null"  # the word, which YAML takes for no value
        if name == "workload" and isinstance(value, Mapping):
            return {members_of(key) if isinstance(key, str) else key: weight for key, weight in value.items()}
        return plain(name, value)

    @classmethod
    def is_path(cls, name: str, text: str) -> bool:
        """Whether the value of a field that can hold a path is one."""
        return name not in ("source", "into") or (looks_like_path(text) and not is_query(text))

    def __eq__(self, other: object) -> bool:
        """Data frames are equal only to themselves: their own ``==`` compares cell by cell."""
        if not isinstance(other, Request):
            return NotImplemented
        return all(same(getattr(self, item.name), getattr(other, item.name)) for item in fields(self))

    def __repr__(self) -> str:
        """What is not default; of values that are no text and no number their type alone."""
        told = self.given()
        if self.slice is not None:
            told.append(f"slice={self.slice!r}" if is_slice(self.slice) else f"slice={said(self.slice)}")
        if self.asks_total:
            told.append(f"cumulative={said(self.cumulative)}")
        if self.asks_panel:
            told.append(f"panel={said(self.panel)}")
        return f"Request({', '.join(told)})"

    @property
    def asks_total(self) -> bool:
        """Whether it asks for a running total; ``total`` refuses what is no tuple of labels."""
        return not isinstance(self.cumulative, tuple) or self.cumulative != ()

    def total(self) -> Total | None:
        """The running total that it asks for; None for the rows of its slice alone.

        Raises:
            InputError: as ``planning.running.total_of``.
        """
        if not self.asks_total:
            return None
        return total_of(
            self.cumulative,
            self.slice,
            name=self.name,
            version=self.version,
            rows=self.max_rows_per_unit,
            of_rows=self.unit().column is None,
            whole=self.budget(),
        )

    @property
    def asks_panel(self) -> bool:
        """Whether it asks for a period of a panel; ``of_panel`` refuses what is no tuple of labels."""
        return not isinstance(self.panel, tuple) or self.panel != ()

    def of_panel(self) -> Panel | None:
        """The period of a panel that it asks for; None for any other release.

        Raises:
            InputError: as ``planning.panel.panel_of``, or an option that no panel takes is given.
        """
        if not self.asks_panel:
            return None
        values = {name: getattr(self, name) for name in NOT_OF_A_PANEL}
        given = [name for name, value in values.items() if value not in (None, ()) and value is not False]
        if given:
            raise InputError(f"A panel takes no {given[0]}=: a period follows from those before it.")
        if self.unit().column is None or self.max_rows_per_unit != 1:
            raise InputError(
                "A panel follows persons: give privacy_unit= the column that identifies them, and leave "
                "max_rows_per_unit=1, since a person has one row in each period."
            )
        return panel_of(self.panel, self.slice, self.version, self.budget())

    def unit(self) -> PrivacyUnit:
        """The unit that the release protects."""
        given = self.privacy_unit
        column = None if given is None or given.lower() == "row" else given
        return PrivacyUnit(column, self.max_rows_per_unit, self.together, self.order)

    def form(self) -> CsvForm:
        """How a CSV source is written.

        Raises:
            InputError: one of the options that say so is not understood.
        """
        return csv_form(self.encoding, self.delimiter, self.decimal, self.quote)

    def check(self) -> None:
        """Refuse what can be refused without opening anything.

        Raises:
            InputError: naming the option, its value, and what is allowed.
        """
        self.check_common(
            names=("exclude", "public_tables"),
            flags=("replace", "new_debit", "trust_query", "discover", "together"),
        )
        check_integer("rows", self.rows, None)
        read_workload(self.workload, self.target)
        if not isinstance(self.on_error, str) or self.on_error not in ON_ERROR:
            raise InputError(f"on_error={said(self.on_error)} is not known; use one of {', '.join(ON_ERROR)}")
        self.form()
        check_slice(self.slice)
        self._check_places()
        self._check_unit()
        self.total()
        self.of_panel()

    def _check_places(self) -> None:
        source = self.source
        if source is not None and not isinstance(source, str | os.PathLike) and not is_frame(source):
            raise InputError(
                f"source={said(source)}: give a table, a path or a query as text, or a pandas or Polars data "
                "frame or an Arrow table (lazy ones after collect())"
            )
        if self.into is not None and not isinstance(self.into, str | os.PathLike):
            raise InputError(f"into={said(self.into)}: give the name of a table or a path, or None")

    def _check_unit(self) -> None:
        if self.privacy_unit is not None and not (isinstance(self.privacy_unit, str) and self.privacy_unit):
            raise InputError(f"privacy_unit={said(self.privacy_unit)}: give 'row' or the name of a column")
        check_integer("max_rows_per_unit", self.max_rows_per_unit, MOST_ROWS_PER_UNIT)
        if self.max_rows_per_unit < 1 or (self.unit().column is None and self.max_rows_per_unit != 1):
            raise InputError(
                f"max_rows_per_unit={self.max_rows_per_unit} is out of range: give 1 with "
                "privacy_unit='row', and 1 or more with a column; further rows of a unit are left out"
            )
        self._check_together()

    def _check_together(self) -> None:
        if self.order is not None and (not isinstance(self.order, str) or not self.order):
            raise InputError(f"order={said(self.order)}: give the name of a column, or None")
        if not self.together:
            if self.order is not None:
                raise InputError("order= orders the rows of a unit: give together=True too")
            return
        if self.unit().column is None:
            raise InputError(
                "together=True keeps the rows of a unit together: name its column, privacy_unit='customer_id'"
            )
        if self.max_rows_per_unit == 1:
            raise InputError(
                "together=True keeps several rows of a unit together, and max_rows_per_unit=1 leaves one: "
                "give max_rows_per_unit=16 or more (noise does not grow with it), or leave out together="
            )
        if self.asks_total:
            raise InputError(
                "together=True is not for running totals: sums of windows do not tell which rows are of one "
                "unit"
            )


OPTIONS: Mapping[str, Option] = options_of(Request)
"""By the names of the fields, in their order."""

DEFAULTS: Mapping[str, Any] = {item.name: item.default for item in fields(Request)}

explain_options(Request)
