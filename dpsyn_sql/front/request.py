"""What a release is asked to do, as one value: the only place that spells its options.

The signatures and the help of ``release()`` and ``plan()``, the keys of a YAML file and the options of the
command are made from the fields of ``Request``. A connection or a secret is never part of a request.
"""

from __future__ import annotations

import numbers
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsyn_sql.accounting.budget import Budget, Number
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.planning.limits import Limits, is_duration, memory_in_bytes
from dpsyn_sql.planning.running import MOST_ROWS_PER_UNIT, Total, total_of
from dpsyn_sql.planning.workload import WorkloadSpec, members_of, read_workload
from dpsyn_sql.source.files import looks_like_path
from dpsyn_sql.source.frames import DataFrame, Frame, is_frame, same
from dpsyn_sql.source.names import is_query, near_matches
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.source.slices import Slice, check_slice, is_slice

if TYPE_CHECKING:  # the command shows its help without what these load
    from dpsyn_sql.domain.file import DomainSpec
    from dpsyn_sql.ledger.sqlite import SqliteLedger
    from dpsyn_sql.methods.recipe import Recipe

ON_ERROR = ("null", "fail")
"""What happens to CSV text that cannot be read as its column's type."""

_SEEDS = 2**64
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Option:
    """How a field is explained, and how the command spells it.

    ``help`` is for everybody; ``more`` is added for readers of Python. ``reads``: type of the command's
    value; a list is an option that may be repeated. ``flags``: the names of the option, if they are
    more than the name of the field with dashes.
    """

    help: str
    more: str = ""
    reads: type = str
    flags: tuple[str, ...] = ()


def _told(help: str, more: str = "", *, reads: type = str, flags: tuple[str, ...] = ()) -> dict[str, Option]:
    return {"option": Option(help, more, reads, flags)}


@dataclass(frozen=True, slots=True, repr=False)
class Request:
    """All options of a release; ``release(con, request)`` carries it out, ``plan`` explains it.

    It is a value: change it with ``dataclasses.replace``. It is checked when it is used, or by ``check``.
    """

    source: str | os.PathLike[str] | DataFrame | Frame | None = field(
        default=None,
        metadata=_told(
            "A table or view, a CSV or Parquet path or glob, or a query.",
            "Or a data frame of pandas, Polars or Spark or an Arrow table; then ``name`` stands for the data "
            "in the ledger.",
        ),
    )
    _: KW_ONLY
    into: str | os.PathLike[str] | None = field(
        default=None,
        metadata=_told(
            "Table, or file ending in .parquet, .csv or .csv.gz. Default: SOURCE_synthetic, beside it.",
            flags=("--into", "-o"),
        ),
    )
    epsilon: Number = field(
        default=1.0, metadata=_told("Privacy loss; smaller is more private.", flags=("--epsilon", "-e"))
    )
    delta: Number = field(
        default=1e-9,
        metadata=_told("0 (pure differential privacy) to 1e-6.", "With 0 the noise is that of Laplace."),
    )
    method: str | Recipe | Mapping[str, Any] = field(
        default="auto",
        metadata=_told(
            "A method.",
            "A name, a value of ``dpsyn_sql.methods`` (each is described there), or a mapping with its "
            "``name`` and settings. ``auto`` is the most accurate method for the number of columns.",
            flags=("--method", "-m"),
        ),
    )
    domain: DomainSpec = field(
        default=None,
        metadata=_told(
            "YAML file with the public domain of the columns; see 'dpsyn init'.",
            "Or a mapping. It has what is public about the columns: bounds, categories, roles.",
            reads=Path,
        ),
    )
    privacy_unit: str = field(
        default="row",
        metadata=_told(
            "row, or the column that identifies the unit (customer_id).",
            "With a column, all rows of one value are protected together, and rows without a value are left "
            "out. The output has fresh values in this column.",
        ),
    )
    max_rows_per_unit: int = field(
        default=1, metadata=_told("The most rows of a unit that count; more rows, more noise.", reads=int)
    )
    together: bool = field(
        default=False,
        metadata=_told(
            "Keep the rows of a unit together: how many they are, and what they share.",
            "Each unit counts the same, however many rows it has: noise does not grow with "
            "``max_rows_per_unit``. Columns with ``per_unit: true`` in the domain have one value per unit.",
        ),
    )
    order: str | None = field(
        default=None,
        metadata=_told(
            "With --together, the column that orders the rows of a unit, such as visit_date.",
            "A date, a timestamp or a whole number with bounds. What follows what is kept.",
        ),
    )
    name: str | None = field(
        default=None,
        metadata=_told(
            "Release name in the ledger. Default: the output.",
            "The output is named relative to the ledger's folder.",
        ),
    )
    version: str | None = field(
        default=None,
        metadata=_told(
            "Public label of the data (batch, period); a new label measures again.",
            "The same name and version replays the stored answers at no cost.",
        ),
    )
    account: str | None = field(
        default=None,
        metadata=_told(
            "Account of the ledger to charge.", "Default: the account that the source is charged to."
        ),
    )
    ledger: SqliteLedger | str | os.PathLike[str] | None = field(
        default=None,
        metadata=_told(
            "Ledger file. Default: DPSYN_LEDGER, else beside the source.",
            "Or an open ledger. The debit is recorded in it. The default ledger of a database in memory ends "
            "with the connection.",
            reads=Path,
        ),
    )
    rows: int | None = field(
        default=None,
        metadata=_told(
            "Rows to write; with --together units. Default: the noisy total.",
            "At most a million if that is nothing but noise.",
            reads=int,
        ),
    )
    seed: int | None = field(
        default=None,
        metadata=_told(
            "Seed of the sampling; the noise has none.",
            "0 to 2^64 - 1; default: derived from the release id.",
            reads=int,
        ),
    )
    exclude: Sequence[str] = field(
        default=(), metadata=_told("Column to leave out.", "A list of them.", reads=list)
    )
    replace: bool = field(default=False, metadata=_told("Overwrite an existing output."))
    new_debit: bool = field(
        default=False,
        metadata=_told(
            "Pay again for a release with other settings or another output.",
            "It allows a release of the same name and version with other settings, and one of the same "
            "settings to another output. Without it neither is charged.",
        ),
    )
    trust_query: bool = field(
        default=False,
        metadata=_told(
            "State that every row of the query comes from one row of the source.",
            "The owner states that each of its rows belongs to one unit.",
        ),
    )
    public_tables: Sequence[str] = field(
        default=(),
        metadata=_told(
            "Table without private data that a query joins.",
            "A list of them.",
            reads=list,
            flags=("--public-table",),
        ),
    )
    discover: bool = field(
        default=True,
        metadata=_told(
            "Learn domains that are not public (at most a tenth of the budget), or refuse such columns.",
            "A domain is public if ``domain`` or the catalog gives it. False refuses other columns.",
            flags=("--discover/--no-discover",),
        ),
    )
    on_error: str = field(
        default="null",
        metadata=_told(
            "CSV text that is not a value of its type: null, or fail (depends on a row: not private).",
            "``fail`` stops the release; that it stopped is outside the promise.",
        ),
    )
    memory_limit: str | int | None = field(
        default=None,
        metadata=_told(
            "Memory of the process, such as 4GB; the model shrinks to fit.",
            "Or bytes, at least 512MiB, for files and paths of databases: the database spills earlier. A "
            "connection that you pass has its own setting.",
        ),
    )
    time_limit: float | None = field(
        default=None,
        metadata=_told(
            "Seconds for the fit and the sample, after the last question.",
            "If little time is left, the last fit takes fewer steps and the rows are drawn the fastest way. "
            "The time of measuring is not limited.",
            reads=float,
        ),
    )
    workload: WorkloadSpec = field(
        default=None,
        metadata=_told(
            "Weights: income=5 for all pairs with a column, age,sex=2 for one pair.",
            'In Python ``{"income": 5, ("age", "sex"): 2}``: weights (0.001 to 1000) of all pairs with a '
            "column, or of the pairs within several; other pairs have weight 1.",
            reads=list,
        ),
    )
    target: str | None = field(
        default=None,
        metadata=_told(
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

    def __post_init__(self) -> None:
        """A whole number is a label by its decimal text."""
        for name in _LABELS:
            value = getattr(self, name)
            if isinstance(value, numbers.Integral) and not isinstance(value, bool):
                object.__setattr__(self, name, str(int(value)))

    @classmethod
    def from_mapping(
        cls, mapping: Mapping[str, Any], *, folder: str | os.PathLike[str] | None = None
    ) -> Request:
        """A request from plain data, as YAML and JSON have it; the values are checked when it is used.

        Keys of ``workload`` are names as in a line of CSV: ``income``, or ``age,sex``.

        Args:
            mapping: values by the names of the fields; a missing field has its default.
            folder: where relative paths begin; default: the folder of the process. ``domain`` and ``ledger``
                are paths; ``source`` and ``into`` are paths if they have a slash or end in .parquet, .csv
                or .csv.gz, otherwise names of tables. Paths within a query stay unchanged.

        Raises:
            InputError: not a mapping, unknown keys, or a label that is not text.
        """
        if not isinstance(mapping, Mapping):
            raise InputError(f"A request must be a mapping of options to values, not {said(mapping)}.")
        _refuse_unknown(mapping)
        given = {name: _plain(name, value) for name, value in mapping.items()}
        if folder is not None:
            given |= {name: _below(folder, name, given[name]) for name in _PATHS if name in given}
        return cls(**given)

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> Request:
        """A request from a YAML file; relative paths in it begin at the file's folder.

        Raises:
            InputError: it cannot be read, is no YAML, or as for ``from_mapping``.
        """
        from dpsyn_sql.domain.document import load_yaml  # loads much

        if not isinstance(path, str | os.PathLike):
            raise InputError(f"A request is read from the path of a YAML file, not from {said(path)}.")
        file = Path(path)
        return cls.from_mapping(load_yaml(file, "request", InputError), folder=file.parent)

    def __eq__(self, other: object) -> bool:
        """Data frames are equal only to themselves: their own ``==`` compares cell by cell."""
        if not isinstance(other, Request):
            return NotImplemented
        return all(same(getattr(self, item.name), getattr(other, item.name)) for item in fields(self))

    def __repr__(self) -> str:
        """What is not default; of values that are no text and no number their type alone."""
        given = {name: getattr(self, name) for name in OPTIONS}
        told = [f"{name}={said(given[name])}" for name in OPTIONS if not _is_default(name, given[name])]
        if self.slice is not None:
            told.append(f"slice={self.slice!r}" if is_slice(self.slice) else f"slice={said(self.slice)}")
        if self.asks_total:
            told.append(f"cumulative={said(self.cumulative)}")
        return f"Request({', '.join(told)})"

    def budget(self) -> Budget:
        """The budget of (epsilon, delta).

        Raises:
            BudgetError: epsilon or delta out of range.
        """
        return Budget.of_release(self.epsilon, self.delta)

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

    def limits(self) -> Limits:
        """How much memory there is.

        Raises:
            InputError: ``memory_limit`` is not understood or too small.
        """
        return Limits(memory_in_bytes(self.memory_limit))

    def unit(self) -> PrivacyUnit:
        """The unit that the release protects."""
        column = None if self.privacy_unit.lower() == "row" else self.privacy_unit
        return PrivacyUnit(column, self.max_rows_per_unit, self.together, self.order)

    def check(self) -> None:
        """Refuse what can be refused without opening anything.

        Raises:
            InputError: naming the option, its value, and what is allowed.
        """
        self.budget()
        _check_integer("rows", self.rows, None)
        _check_integer("seed", self.seed, _SEEDS)
        for name in ("exclude", "public_tables"):
            _check_names(name, getattr(self, name))
        for name in ("replace", "new_debit", "trust_query", "discover", "together"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name}={said(getattr(self, name))}: give True or False")
        for name in _LABELS:
            _check_label(name, getattr(self, name))
        self.limits()
        if self.time_limit is not None and not is_duration(self.time_limit):
            raise InputError(
                f"time_limit={said(self.time_limit)}: give a positive number of seconds, or None"
            )
        read_workload(self.workload, self.target)
        if not isinstance(self.on_error, str) or self.on_error not in ON_ERROR:
            raise InputError(f"on_error={said(self.on_error)} is not known; use one of {', '.join(ON_ERROR)}")
        check_slice(self.slice)
        self._check_places()
        self._check_unit()
        self.total()

    def _check_places(self) -> None:
        source = self.source
        if source is not None and not isinstance(source, str | os.PathLike) and not is_frame(source):
            raise InputError(
                f"source={said(source)}: give a table, a path or a query as text, or a pandas or Polars data "
                "frame or an Arrow table (lazy ones after collect())"
            )
        if self.into is not None and not isinstance(self.into, str | os.PathLike):
            raise InputError(f"into={said(self.into)}: give the name of a table or a path, or None")
        if self.domain is not None and not isinstance(self.domain, str | os.PathLike | Mapping):
            raise InputError(f"domain={said(self.domain)}: give a YAML file, a mapping, or None")
        if not _is_ledger(self.ledger):
            raise InputError(f"ledger={said(self.ledger)}: give the path of a file, an open ledger, or None")

    def _check_unit(self) -> None:
        if not isinstance(self.privacy_unit, str) or not self.privacy_unit:
            raise InputError(f"privacy_unit={said(self.privacy_unit)}: give 'row' or the name of a column")
        _check_integer("max_rows_per_unit", self.max_rows_per_unit, MOST_ROWS_PER_UNIT)
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


OPTIONS: Mapping[str, Option] = {
    item.name: item.metadata["option"] for item in fields(Request) if "option" in item.metadata
}
"""By the names of the fields, in their order."""

DEFAULTS: Mapping[str, Any] = {item.name: item.default for item in fields(Request)}

_LABELS = ("name", "version", "account")
_PATHS = ("source", "into", "domain", "ledger")


def explained() -> str:
    """The options for a docstring, one entry each."""
    entries = [f"{name}: {option.help} {option.more}".rstrip() for name, option in OPTIONS.items()]
    entry = textwrap.TextWrapper(_WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8)
    entry.break_on_hyphens = False
    return "\n".join(entry.fill(text) for text in entries)


Request.__doc__ = f"{Request.__doc__ or ''}\n    Args:\n{textwrap.indent(explained(), ' ' * 4)}\n    "


def _is_default(name: str, value: Any) -> bool:
    return type(value) is type(DEFAULTS[name]) and bool(value == DEFAULTS[name])


# -- plain data --------------------------------------------------------------------------------


def _refuse_unknown(mapping: Mapping[Any, Any]) -> None:
    unknown = [key for key in mapping if key not in OPTIONS]
    if not unknown:
        return
    told, allowed = [], False
    for key in unknown:
        close = near_matches(key, OPTIONS) if isinstance(key, str) else []
        if key in ("con", "database"):
            told.append(f"{key!r} (the database is no part of a request: con=, or --database)")
        elif close:
            told.append(f"{said(key)} (did you mean {', '.join(map(repr, close))}?)")
        else:
            told.append(said(key))
            allowed = True
    listed = f" Allowed are {', '.join(OPTIONS)}." if allowed else ""
    raise InputError(f"The request has the unknown key{'s' * (len(told) > 1)} {', '.join(told)}.{listed}")


def _plain(name: str, value: Any) -> Any:
    """A value as a call would have it."""
    if is_frame(value):
        raise InputError(f"{name}={said(value)} is no plain data: make Request(source=...) instead")
    if name in _LABELS and (isinstance(value, bool) or not isinstance(value, str | numbers.Integral | None)):
        raise InputError(f"{name}={said(value)} is no text: write it in quotes")
    if name == "on_error" and value is None:
        return "null"  # the word, which YAML takes for no value
    if name == "workload" and isinstance(value, Mapping):
        return {members_of(key) if isinstance(key, str) else key: weight for key, weight in value.items()}
    return tuple(value) if isinstance(value, list) else value


def _below(folder: str | os.PathLike[str], name: str, value: Any) -> Any:
    """A relative path, from ``folder``; anything else as it is."""
    if not isinstance(value, str) or not value:
        return value
    if name in ("source", "into") and (is_query(value) or not looks_like_path(value)):
        return value
    return Path(folder, value)


# -- single values -----------------------------------------------------------------------------


def _check_names(name: str, value: Any) -> None:
    if (
        isinstance(value, str)
        or not isinstance(value, Sequence)
        or not all(isinstance(x, str) for x in value)
    ):
        raise InputError(f"{name}={said(value)}: give a list of names")


def _check_label(name: str, value: Any) -> None:
    """A label must survive a ledger, a message and a terminal."""
    if value is None:
        return
    if not isinstance(value, str) or not value or not value.isprintable():
        raise InputError(f"{name}={said(value)} is not a usable label: give some printable text, or None")


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
