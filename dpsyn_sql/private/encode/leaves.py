"""The code of a row from its key: which of the codes of a hierarchy's leaves holds it, as SQL.

A code is an interval of keys, because its leaves are neighbours and ascend. Few codes are found by
comparisons with where each begins; many by a join that keeps every row exactly once. Text is compared as
bytes: no collation changes the order.
"""

from __future__ import annotations

from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.domain.hierarchies.base import Hierarchy, Leaves, absent
from dpsyn_sql.domain.hierarchies.leaves import code_starts
from dpsyn_sql.errors import InternalError
from dpsyn_sql.sqltext.dialect import Dialect
from dpsyn_sql.sqltext.fragments import Fragment, by_cuts, literal

_COMPARED = 256  # codes; a tree of comparisons is slower than a join from here on


def has_join(attribute: Attribute) -> bool:
    """Whether its codes come from a join, which only a statement can make."""
    return attribute.leaves is not None and attribute.regular > _COMPARED


def value_columns(attribute: Attribute, column: str, dialect: Dialect, *, csv: bool) -> list[Fragment]:
    """The values of a row that its key is made of, under the names ``<column>_0``, ``<column>_1``, ...;
    text of CSV files is read as their types."""
    made = []
    for place, one in enumerate(attribute.columns):
        read = csv and one.type.family != "text"
        value = dialect.text_as(one.value, one.type.sql) if read else one.value
        made.append(Fragment(f"{value} AS {column}_{place}"))
    return made


def key_column(attribute: Attribute, column: str, dialect: Dialect) -> Fragment:
    """The key of a row under the name ``column``, from ``value_columns``: a whole number, or text as bytes;
    NULL outside the hierarchy and without a value."""
    hierarchy = _hierarchy(_leaves(attribute))
    key = hierarchy.key(_values(attribute, column), dialect)
    return Fragment(f"{dialect.text_bytes(key) if hierarchy.text else key} AS {column}")


def leaf_code(attribute: Attribute, column: str, dialect: Dialect) -> Fragment:
    """The code of a row by comparisons of ``key_column``."""
    starts = _starts(attribute, dialect)
    found = by_cuts(column, starts[1:], [str(code) for code in range(len(starts))])
    return _or_elsewhere(attribute, column, found)


def joined_code(attribute: Attribute, column: str, name: str) -> Fragment:
    """The code of a row by the join ``leaf_join`` of this name."""
    return _or_elsewhere(attribute, column, f"COALESCE({name}.code, {attribute.fallback_code})")


def leaf_join(attribute: Attribute, column: str, name: str, dialect: Dialect) -> Fragment:
    """A join that gives the code ``<name>.code``; it neither drops nor doubles a row."""
    starts = _starts(attribute, dialect)
    return dialect.last_start(list(zip(starts, range(len(starts)), strict=True)), name, column)


def _or_elsewhere(attribute: Attribute, column: str, found: str) -> Fragment:
    """Rows without a value and rows outside are decided before keys are compared."""
    outside = f"WHEN {column} IS NULL THEN {attribute.fallback_code}"
    if attribute.null_code is None:
        return Fragment(f"CASE {outside} ELSE {found} END")
    missing = absent(_hierarchy(_leaves(attribute)), _values(attribute, column))
    return Fragment(f"CASE WHEN {missing} THEN {attribute.null_code} {outside} ELSE {found} END")


def _values(attribute: Attribute, column: str) -> list[Fragment]:
    return [Fragment(f"{column}_{place}") for place in range(len(attribute.columns))]


def _starts(attribute: Attribute, dialect: Dialect) -> list[str]:
    """The least key of each code, as ``key_column`` spells keys."""
    leaves = _leaves(attribute)
    starts = code_starts(_hierarchy(leaves), leaves)
    if len(starts) != attribute.regular:
        raise InternalError(f"attribute {attribute.name!r} has another number of codes than its leaves")
    texts = _hierarchy(leaves).text
    return [str(dialect.text_bytes(literal(start))) if texts else str(start) for start in starts]


def _leaves(attribute: Attribute) -> Leaves:
    if attribute.leaves is None:
        raise InternalError(f"attribute {attribute.name!r} has no leaves")
    return attribute.leaves


def _hierarchy(leaves: Leaves) -> Hierarchy:
    """The only hierarchy; codes of several have no interval of keys."""
    if len(leaves.hierarchies) != 1:
        raise InternalError("leaves of several hierarchies have no codes that rows are counted by")
    return leaves.hierarchies[0]
