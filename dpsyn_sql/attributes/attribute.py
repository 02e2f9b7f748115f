"""The public shape of a table: attributes with their codes and values (no value of the source in it).

An attribute is a name, a size, ``code`` (SQL over a row of the source) and ``value`` (SQL over a code and
random bits of the row that is written). Which SQL that is, its kind says (``attributes/kinds.py``).

Codes of an attribute are 0..size-1, in this order: its labels (categorical) or its bins
(numeric, temporal); then ``__other__`` if it has one; then NULL if it is nullable.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from itertools import pairwise
from typing import Literal

from dpsyn_sql.attributes.kinds import kind_of
from dpsyn_sql.attributes.trees import HierarchyColumn, Leaves
from dpsyn_sql.attributes.types import Edge, SqlType, listed_number, supported_type, to_tick
from dpsyn_sql.errors import InternalError
from dpsyn_sql.sqltext.fragments import Fragment

Kind = Literal["categorical", "numeric", "temporal"]
Label = bool | int | str
Granularity = int | Decimal | Literal["month"]

OTHER = "__other__"
"""The value of rows that no label covers."""

ANY_REST = "*"
"""The end of a label that stands for all text that begins like it."""

MAX_SIZE = 131_072
"""Codes that an attribute can have at most."""

_AGAIN = 0x9E3779B97F4A7C15  # of the golden ratio: any number that no other text hashes with

FILL_PIECES = 8
"""Pieces of equal probability that describe the values inside a bin."""

Fill = tuple[tuple[Edge, ...], ...]


@dataclass(frozen=True, slots=True)
class Recoding:
    """``codes`` that are not written: their rows get one of ``instead``, each entry equally likely."""

    codes: tuple[int, ...]
    instead: tuple[int, ...]

    def written(self, code: Fragment, bits: Fragment) -> Fragment:
        """The code that is written. The bits are hashed again, so that positions in bins do not depend on
        it."""
        codes = ", ".join(map(str, self.codes))
        chosen = f"((hash(xor({bits}, {_AGAIN})) >> 32) * {len(self.instead)}) >> 32"
        instead = listed_number(self.instead, "BIGINT", chosen)
        return Fragment(f"(CASE WHEN {code} IN ({codes}) THEN {instead} ELSE CAST({code} AS BIGINT) END)")


@dataclass(frozen=True, slots=True)
class Coded:
    """The code of one row of the source, as the parts of a statement.

    ``code``: a total function of one row, of an integer type, over the columns that the others make:
    ``named``, values under neutral names (``<value> AS <name>``); ``keys``, expressions of these under a
    name; ``joins``, each of which keeps every row exactly once."""

    named: tuple[Fragment, ...]
    code: Fragment
    keys: tuple[Fragment, ...] = ()
    joins: tuple[Fragment, ...] = ()


@dataclass(frozen=True, slots=True)
class Valued:
    """The values of one code, as the parts of a statement.

    ``values``: by column of the output, in exactly its type, over the columns that the others make:
    ``places``, expressions of the code under a name; ``joins``, each of which keeps every row exactly once;
    ``facts``, columns of what is joined under a name."""

    values: Mapping[str, Fragment]
    places: tuple[Fragment, ...] = ()
    joins: tuple[Fragment, ...] = ()
    facts: tuple[Fragment, ...] = ()


@dataclass(frozen=True, slots=True)
class Attribute:
    """One discretised column.

    ``labels`` are the values of a categorical attribute in code order. ``edges`` are the k+1 cuts of a
    numeric or temporal one: bin i holds edges[i] <= v < edges[i+1]. For discrete types (integers, DATE) the
    last edge is one step past the upper bound; for continuous types the last bin also holds its upper edge.
    Values beyond the edges fall into the end bins. ``ordered`` says that neighbouring codes are alike (always
    so for bins). ``origin`` says who made the domain public. ``granularity`` says which values inside a bin
    are written: whole multiples of so many ticks (discrete types), of a number (FLOAT, DOUBLE), or first days
    of months; None: the type's own. ``fill`` says how the values of a bin are spread when they are written;
    which values have which code follows ``edges`` alone. Empty: every bin evenly over its edges. Otherwise
    one tuple of ascending cuts for each bin, inside or at its edges, in their units, upper ends exclusive as
    theirs: one cut is the value of every row (an atom); two cuts (a, b) spread the rows evenly over [a, b);
    ``FILL_PIECES`` + 1 cuts are pieces of equal probability, even within each; a piece of zero width is its
    value. ``prefixes`` are lengths, descending: text that no label equals has the code of the longest label
    that is its first so many characters followed by ``*``; see ``stems``. ``leaves``: codes stand for nodes
    of a hierarchy, over one or more columns of its own; ``labels`` are then their names, ``kind`` is
    categorical, ``sql_type`` VARCHAR, and rows outside the hierarchy are ``other``. ``beyond`` is the number
    of first and of last bins that lie outside of the range that discovery found: their counts are little but
    noise until a tail is fitted to them (``fit/tails.py``). ``named``: what each of the ``labels`` stands
    for, where these are the codes of a reference to other rows; people read it, and nothing is written with
    it. ``form`` is the line of ``KINDS`` that makes its codes and values; empty: labels, bins or leaves, as
    it has. ``source`` is the SQL expression of one row of the source that gives its values; None: the column
    of its name. ``recoding`` changes only what is written, never which rows have which code. ``type`` is
    ``sql_type`` parsed."""

    name: str
    sql_type: str
    kind: Kind
    labels: tuple[Label, ...] = ()
    edges: tuple[Edge, ...] = ()
    other: bool = False
    nullable: bool = False
    ordered: bool = False
    origin: Literal["declared", "catalog", "discovered"] = "declared"
    granularity: Granularity | None = None
    prefixes: tuple[int, ...] = ()
    source: Fragment | None = None
    fill: Fill = ()
    beyond: tuple[int, int] = (0, 0)
    recoding: Recoding | None = None
    leaves: Leaves | None = None
    named: tuple[str, ...] = ()
    form: str = ""
    type: SqlType = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raises:
        InternalError: the type is not supported, or the fill does not fit the bins.
        """
        object.__setattr__(self, "type", supported_type(self.sql_type, self.name))
        if self.fill and not _fits(self):
            raise InternalError(f"the fill of attribute {self.name!r} does not fit its bins")

    def code(self, slot: str, decimal: str = "", *, joined: bool = False) -> Coded:
        """The code of a row of the source.

        Args:
            slot: the name that the value gets, a plain column, because it is repeated.
            decimal: the decimal mark of a source whose columns are text that is cast; empty: they have types.
            joined: the statement can join; else there are joins only where nothing else gives the code.
        """
        return kind_of(self).code(self, slot, decimal, joined=joined)

    def value(self, code: str, bits: Fragment, slot: str = "") -> Valued:
        """The values of a row that is written.

        Args:
            code: an expression of any integer type; plain, because it is repeated.
            bits: 64 random bits of the row, as UBIGINT.
            slot: tells the names of this attribute from those of others in the statement.
        """
        plain = Fragment(code)
        written = plain if self.recoding is None else self.recoding.written(plain, bits)
        return kind_of(self).value(self, written, bits, slot)

    @property
    def columns(self) -> tuple[HierarchyColumn, ...]:
        """The columns of the source, and of the output, that it stands for: its own, or those of its
        hierarchies."""
        if self.leaves is None:
            return (HierarchyColumn(self.name, self.sql_type, self.source),)
        return tuple(column for hierarchy in self.leaves.hierarchies for column in hierarchy.columns)

    def stems(self, length: int) -> tuple[tuple[str, int], ...]:
        """The labels that stand for all text of a beginning, each with its code: ``length`` characters, then
        ``*``."""
        texts = ((label, code) for code, label in enumerate(self.labels) if isinstance(label, str))
        return tuple(
            (label, code) for label, code in texts if len(label) == length + 1 and label.endswith(ANY_REST)
        )

    @property
    def regular(self) -> int:
        """Number of codes that stand for a label or a bin."""
        return len(self.labels) if self.kind == "categorical" else len(self.edges) - 1

    @property
    def size(self) -> int:
        """Number of codes, ``__other__`` and NULL included."""
        return self.regular + self.other + self.nullable

    @property
    def written(self) -> int:
        """Number of codes that are written as themselves; of 1, all rows are written alike."""
        return self.size - (0 if self.recoding is None else len(self.recoding.codes))

    @property
    def found(self) -> slice:
        """The bins within the range that discovery found; all labels and declared bins."""
        return slice(self.beyond[0], self.regular - self.beyond[1])

    @property
    def other_code(self) -> int | None:
        """Code of values that no label covers, or None."""
        return self.regular if self.other else None

    @property
    def null_code(self) -> int | None:
        """Code of NULL, or None."""
        return self.regular + self.other if self.nullable else None

    @property
    def fallback_code(self) -> int:
        """Where a value goes that nothing else covers, so that encoding is a total function:
        ``__other__``, else NULL, else code 0."""
        if self.other_code is not None:
            return self.other_code
        return self.null_code if self.null_code is not None else 0


@dataclass(frozen=True, slots=True)
class Domain:
    """Attributes in the order of the source's columns; ``names`` are theirs, in order."""

    attributes: tuple[Attribute, ...]
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _positions: dict[str, int] = field(init=False, repr=False, compare=False)
    _sizes: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(attribute.name for attribute in self.attributes))
        object.__setattr__(self, "_positions", {name: position for position, name in enumerate(self.names)})
        object.__setattr__(self, "_sizes", {attribute.name: attribute.size for attribute in self.attributes})

    def __contains__(self, name: object) -> bool:
        return name in self._positions

    def __getitem__(self, name: str) -> Attribute:
        if name not in self._positions:
            raise InternalError(f"no attribute {name!r} in the domain")
        return self.attributes[self._positions[name]]

    def index(self, name: str) -> int:
        """Position of an attribute."""
        return self._positions[name]

    def shape(self, names: Iterable[str] | None = None) -> tuple[int, ...]:
        """Sizes of the named attributes (default: all), in the order given."""
        try:
            return tuple(map(self._sizes.__getitem__, self.names if names is None else names))
        except KeyError as error:
            raise InternalError(f"no attribute {error.args[0]!r} in the domain") from None

    def cells(self, names: Sequence[str]) -> int:
        """Number of cells of the marginal over the named attributes."""
        return math.prod(self.shape(names))


def named_value(attribute: Attribute, slot: str, decimal: str) -> tuple[Fragment, ...]:
    """The value of an attribute of one column under a neutral name, read as its type."""
    (column,) = attribute.columns
    return (Fragment(f"{column.read(decimal)} AS {slot}"),)


def or_missing(attribute: Attribute, column: Fragment, code: str) -> Fragment:
    """The code of a value that is there; NULL and NaN are decided before anything is compared."""
    missing = attribute.fallback_code if attribute.null_code is None else attribute.null_code
    absent = f"{column} IS NULL"
    if attribute.type.family == "float":
        absent += f" OR isnan({column})"
    return Fragment(f"CASE WHEN {absent} THEN {missing} ELSE {code} END")


def edge_ticks(attribute: Attribute) -> tuple[int, ...]:
    """The k+1 cuts of a discrete binned attribute in ticks: bin i holds ticks[i] <= t < ticks[i+1]."""
    kind = attribute.type
    return (*(to_tick(kind, edge) for edge in attribute.edges[:-1]), _end_tick(kind, attribute.edges[-1]))


def fill_ticks(attribute: Attribute) -> tuple[tuple[int, ...], ...]:
    """The cuts of the fill of a discrete binned attribute in ticks.

    Raises:
        ValueError: a cut is not a whole number of ticks.
    """
    kind, last = attribute.type, len(attribute.fill) - 1
    return tuple(
        (
            *(to_tick(kind, cut) for cut in cuts[:-1]),
            _end_tick(kind, cuts[-1]) if bin_ == last and len(cuts) > 1 else to_tick(kind, cuts[-1]),
        )
        for bin_, cuts in enumerate(attribute.fill)
    )


def _end_tick(kind: SqlType, last: Edge) -> int:
    """The tick of an exclusive upper end.

    The day after 9999-12-31 has no Python date, nor has the end of a day a Python time. An upper bound
    of the last one is therefore kept as the last edge itself and turned into the tick past it here.
    """
    if kind.family in ("date", "time"):
        marks_the_end = last in (date.max, time.max)
    else:
        marks_the_end = isinstance(last, datetime) and last.replace(tzinfo=None) == datetime.max
    return kind.high + 1 if marks_the_end else to_tick(kind, last)


def _fits(attribute: Attribute) -> bool:
    """Whether there are cuts for every bin, ascending, of the column's type, and inside the bin."""
    kind = attribute.type
    if attribute.kind == "categorical" or len(attribute.fill) != attribute.regular:
        return False
    if kind.family == "float":
        cuts = [[cut for cut in bin_cuts if isinstance(cut, float)] for bin_cuts in attribute.fill]
        edges = [edge for edge in attribute.edges if isinstance(edge, float)]
        all_floats = list(map(len, cuts)) == list(map(len, attribute.fill)) and all(map(math.isfinite, edges))
        if not all_floats or (
            kind.text == "FLOAT" and not all(_is_single(cut) for bin_cuts in cuts for cut in bin_cuts)
        ):
            return False
        ends = [*edges[1:-1], math.nextafter(edges[-1], math.inf)]  # the last bin holds its upper edge
        return all(map(_inside, cuts, edges[:-1], ends))
    try:
        ticks, bins = fill_ticks(attribute), edge_ticks(attribute)
    except ValueError:
        return False
    return all(map(_inside, ticks, bins[:-1], bins[1:]))


def _inside(cuts: Sequence[float], low: float, end: float) -> bool:
    """Whether the cuts of one bin have the right number and order, and no value is outside [low, end)."""
    if len(cuts) not in (1, 2, FILL_PIECES + 1) or (len(cuts) == 2 and cuts[0] == cuts[1]):
        return False
    ascending = all(before <= after for before, after in pairwise(cuts))
    values = (cuts[0], *(after for before, after in pairwise(cuts) if before == after))
    return ascending and low <= cuts[0] and cuts[-1] <= end and all(value < end for value in values)


def _is_single(value: float) -> bool:
    """Whether a double is a value of FLOAT."""
    try:
        return bool(struct.unpack("f", struct.pack("f", value))[0] == value)
    except OverflowError:
        return False
