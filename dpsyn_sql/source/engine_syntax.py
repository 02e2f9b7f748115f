"""What the database's own parser sees in a text, and whether a check has accepted that.

A check reads a query with its own parser and prints the text that runs. This module judges the text once
more, as the database reads it. It refuses a text that the printer garbled, or that two parsers read in
two ways.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from dpsyn_sql.source import query_words as words
from dpsyn_sql.source.names import fold, shorten
from dpsyn_sql.source.traces import ORDERED, WINDOW_FUNCTIONS

Name = tuple[str, ...]
"""The parts of a table's name as they are written, one to three."""


@dataclass(frozen=True, slots=True)
class Join:
    """The tables below the two sides of a join or a set operation, and its kind (``"INNER CROSS"``)."""

    left: frozenset[Name]
    right: frozenset[Name]
    kind: str


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A window function. ``unit``: the folded column by whose bytes alone it partitions, None if it is by
    anything else. ``whole``: its order ends with all that its SELECT can see of the row. ``rows``: its frame
    counts rows. ``plain``: without DISTINCT, FILTER, EXCLUDE and other additions."""

    function: str
    unit: str | None
    whole: bool
    rows: bool
    plain: bool


@dataclass(frozen=True, slots=True)
class Syntax:
    """What the engine's own parser sees in a query.

    ``classes`` are its kinds of expression, ``clauses`` its kinds of nodes, relations and joins and
    the clauses that are set; ``tables`` are all that it reads but CTEs; ``columns`` counts the items of
    the outermost SELECT. ``types`` are those that casts name (folded). ``windows`` are its window functions;
    every row of the result has the columns ``carried`` (folded names) unchanged from each of them.
    """

    statements: int
    columns: int
    classes: frozenset[str]
    functions: frozenset[str]
    clauses: frozenset[str]
    tables: frozenset[Name]
    joins: tuple[Join, ...]
    types: frozenset[str] = frozenset()
    windows: tuple[WindowCall, ...] = ()
    carried: frozenset[str] = frozenset()


def windows_fault(syntax: Syntax, unit: str, is_macro: Callable[[str], bool]) -> str | None:
    """The first window that may give a row something of another unit's rows; else None.

    Args:
        syntax: the whole text that would run.
        unit: the column of the result that tells whose row it is.
        is_macro: whether a user-defined macro has this name.
    """
    for call in syntax.windows:
        if call.function not in WINDOW_FUNCTIONS or is_macro(call.function) or not call.plain:
            return f"{shorten(call.function)} OVER a window"
        if call.unit != fold(unit):
            return f"a window function whose partitions are not those of {shorten(unit)}"
        if not call.whole and (call.function in ORDERED or call.rows):
            return (
                f"{shorten(call.function)} OVER a window, with ties in its order (name a hidden column, such "
                "as filename, in a subquery first)"
            )
    for kind in sorted(syntax.types - words.TYPES_BESIDE_WINDOWS if syntax.windows else ()):
        return (
            f"the type {shorten(kind)} beside a window function, where it may tell rows apart that tie in "
            "its order"
        )
    if len(syntax.windows) and fold(unit) not in syntax.carried:
        return (
            f"a window function whose column {shorten(unit)} does not reach the result by itself: let every "
            "SELECT from there on read one relation, without a join or UNION ALL, pass that column on under "
            "its name (first of all, if it ends in a digit), and name what it computes with AS"
        )
    return None


def expressions_fault(syntax: Syntax, rowwise: Callable[[str], bool], *, windows: bool = False) -> str | None:
    """The first kind of expression or function that may not stand in an admitted text; else None.

    ``windows``: they are judged by ``windows_fault``.
    """
    judged = frozenset({"WINDOW"}) if windows else frozenset()
    for kind in sorted(syntax.classes - words.ENGINE_CLASSES - judged):
        return kind.replace("_", " ").lower()
    for function in sorted(syntax.functions):
        if fold(function) in words.NEVER_FUNCTIONS or not rowwise(function):
            return (
                f"the function {shorten(function)} (an aggregate, a macro, a user-defined or a "
                "non-deterministic function)"
            )
    return None


def structure_fault(
    syntax: Syntax, private: Callable[[Name], bool | None], *, windows: bool = False
) -> str | None:
    """The first clause, table or join that may not stand in an admitted query; else None.

    Args:
        syntax: the whole text that would run.
        private: whether a table holds private rows; None for one that the check has not seen.
        windows: they are judged by ``windows_fault``; a filter on them is allowed.
    """
    judged = frozenset({"QUALIFY"}) if windows else frozenset()
    for clause in sorted(syntax.clauses - words.ENGINE_CLAUSES - judged):
        return clause.replace("_", " ")
    fault = tables_fault(syntax, private)
    if fault is not None:
        return fault
    for join in syntax.joins:
        left, right = any(map(private, join.left)), any(map(private, join.right))
        if join.kind != "UNION" and left and right:
            return "a join of two private tables, or of one with itself"
        kind = join.kind.split()[0]
        if right and kind not in ("UNION", "INNER"):
            return f"the join {kind} with the private table on its right side"
    return None


def multiplies(syntax: Syntax, source: Callable[[Name], Hashable | None]) -> bool:
    """Whether one row of a private table can become several rows of the result.

    Args:
        syntax: the whole text that would run.
        source: which private table or file a name means; None for one that holds no private rows. A UNION ALL
            gives a row twice only where both sides read the same.
    """
    for join in syntax.joins:
        left, right = ({source(name) for name in side} - {None} for side in (join.left, join.right))
        if join.kind == "UNION":
            several = bool(left & right)
        else:
            several = bool(left | right) and not join.kind.startswith(("SEMI ", "ANTI "))
        if several:
            return True
    return False


def tables_fault(syntax: Syntax, private: Callable[[Name], bool | None]) -> str | None:
    """A table that the check has not seen; else None."""
    for name in sorted(syntax.tables):
        if private(name) is None:
            return f"{shorten('.'.join(name))}, which the database reads and this check does not see"
    return None


def trusted_fault(
    syntax: Syntax, private: Callable[[Name], bool | None], is_macro: Callable[[str], bool]
) -> str | None:
    """What would read tables or files that are not charged, in a query the owner answers for; else None."""
    for function in sorted(syntax.functions):
        if is_macro(function):
            return f"the macro {shorten(function)}"
    for clause in sorted(syntax.clauses):
        kind, _, function = clause.partition(" ")
        if (
            kind == "TABLE_FUNCTION"
            and function
            and fold(function) not in words.TABLE_FUNCTIONS_WITHOUT_FILES
        ):
            return f"the table function {shorten(function)}"
        if clause in ("SHOW_REF", "PIVOT"):
            return clause.replace("_", " ")
    return tables_fault(syntax, private)


def is_one_expression(syntax: Syntax) -> bool:
    """Whether ``SELECT`` and a text make a single expression over nothing."""
    return syntax.statements == 1 and syntax.columns == 1 and syntax.clauses <= {"SELECT_NODE", "EMPTY"}
