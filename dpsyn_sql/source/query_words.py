"""Words of a query that is checked: of the parser, and of the engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import sqlglot.expressions as exp

from dpsyn_sql.source.names import fold, shorten
from dpsyn_sql.source.traces import ORDERED, WINDOW_FUNCTIONS

# -- the words of SQL --------------------------------------------------------------------------------

# What a checked query may hold, and how its refusals are worded.
#
# Lists of what is allowed decide; lists of what is refused only make the message better. Anything in neither
# is refused under its own name.


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ALLOWED_EXPRESSIONS: tuple[type[Any], ...] = (
    exp.Column,
    exp.Identifier,
    exp.Star,
    exp.Literal,
    exp.HexString,
    exp.Boolean,
    exp.Null,
    exp.Alias,
    exp.Paren,
    exp.Case,
    exp.If,
    exp.Cast,
    exp.TryCast,
    exp.DataType,
    exp.DataTypeParam,
    exp.Interval,
    exp.IntervalSpan,
    exp.Var,
    exp.In,
    exp.Between,
    exp.Not,
    exp.Neg,
    exp.BitwiseNot,
    exp.Binary,
    exp.AtTimeZone,
    exp.Tuple,
    exp.Func,
    exp.Order,
    exp.Ordered,
    exp.Where,
    exp.Bracket,
    exp.Slice,
    exp.Dot,
    exp.Lambda,
    exp.Comprehension,
    # Of ->> with the name of a key or the place in an array.
    exp.JSONPath,
    exp.JSONPathRoot,
    exp.JSONPathKey,
    exp.JSONPathSubscript,
)

# Queries, relations and clauses with what may be set of each; DISTINCT of a UNION and kinds of joins are
# judged apart.
ALLOWED_CLAUSES: tuple[tuple[type[Any], tuple[str, ...]], ...] = (
    (exp.Select, ("expressions", "from", "joins", "where", "order", "with", "exclude")),
    (exp.Union, ("this", "expression", "by_name", "with", "order", "distinct")),
    (exp.Values, ("expressions", "alias")),
    (exp.Subquery, ("this", "alias", "joins", "with", "order")),
    (exp.Table, ("this", "db", "catalog", "alias", "joins")),
    (exp.Join, ("this", "on", "using", "side", "kind", "method")),
    (exp.From, ("this",)),
    (exp.With, ("expressions",)),
    (exp.CTE, ("this", "alias", "materialized")),
    (exp.Qualify, ("this",)),
)

# Subclasses of what is allowed above that are refused all the same, with the words for each;
# and what is not allowed anyhow, where the bare name of the class would not help.
REFUSED_EXPRESSIONS: tuple[tuple[type[Any], str], ...] = (
    (exp.Window, "a window function"),
    (exp.WithinGroup, "an ordered-set aggregate"),
    (exp.AggFunc, "an aggregate"),
    (exp.Filter, "an aggregate with FILTER"),
    (exp.Distinct, "DISTINCT"),
    (exp.Exists, "an EXISTS subquery"),
    (exp.Query, "a subquery inside an expression"),
    (exp.UDTF, "UNNEST or another table function"),
    (exp.Explode, "UNNEST"),
    (exp.GenerateSeries, "generate_series"),
    # It prints json_extract as an arrow, which is the old form of a lambda too.
    (exp.JSONExtract, "json_extract or -> (write ->>)"),
    (exp.Kwarg, "a named argument"),
    (exp.PropertyEQ, "a named argument"),
    (exp.Placeholder, "a parameter"),
    (exp.Parameter, "a parameter"),
    (exp.SessionParameter, "a session setting"),
    (exp.Collate, "COLLATE"),
    # They print a quoted text without its quotes.
    (exp.ObjectInsert, "OBJECT_INSERT"),
    (exp.NextValueFor, "NEXT VALUE FOR"),
    (exp.Rand, "the non-deterministic function random"),
    (exp.Uuid, "the non-deterministic function uuid"),
)

# By class name: sqlglot adds such classes from release to release.
REFUSED_PREFIXES = (
    *("Current", "Localtime", "SessionUser", "Columns", "Unnest", "Rand", "Random"),
    "DynamicIdentifier",  # it prints a quoted text without its quotes
)

ARGUMENT_WORDS = {
    "limit": "LIMIT or FETCH",
    "offset": "OFFSET",
    "distinct": "DISTINCT",
    "group": "GROUP BY",
    "having": "HAVING",
    "qualify": "QUALIFY",
    "windows": "a WINDOW clause",
    "sample": "a SAMPLE clause",
    "pivots": "PIVOT or UNPIVOT",
    "laterals": "a LATERAL join",
    "lateral": "a LATERAL join",
    "into": "SELECT INTO",
    "locks": "FOR UPDATE",
    "when": "AT (VERSION or TIMESTAMP)",
    "recursive": "a recursive CTE",
    "using_key": "a recursive CTE",
    "key_expressions": "a recursive CTE",
    "match": "MATCH_RECOGNIZE",
    "ordinality": "WITH ORDINALITY",
}

# What the printer writes without quotes, such as a unit of time: it may come from a quoted text.
PLAIN_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# Pseudo-columns that tell a row's place in the table, which depends on other rows.
POSITIONAL_COLUMNS = frozenset({"rowid", "file_row_number", "file_index", "row_id"})
# Columns of files that * leaves out.
HIDDEN_COLUMNS = frozenset({"filename"})
# Words that are functions where no column has that name.
CLOCK_COLUMNS = frozenset(
    {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}
)

# Aggregates whose value of a list is decided by the values and their order in it. Not among them are those
# that draw samples or estimate, and those whose result shows how it was counted (histogram).
_LIST_AGGREGATES = _words("""
    any_value avg bit_and bit_or bit_xor bool_and bool_or count first kurtosis kurtosis_pop last max median
    min mode product sem skewness stddev_pop stddev_samp string_agg sum var_pop var_samp
""")

# Internal macros that are row-wise expressions; the catalog does not say so of macros.
ROWWISE_MACROS = _words("""
    nullif if fdiv fmod date_add split_part days_in_month round_even roundbankers
    array_append array_pop_back array_pop_front array_prepend array_push_back array_push_front array_reverse
    array_to_string list_append list_prepend list_reverse map_contains_entry map_contains_value
""") | {f"list_{name}" for name in _LIST_AGGREGATES}

# They take the name of an aggregate as text: list_aggregate(l, 'sum') is read as list_sum(l).
NAMING_FUNCTIONS = _words("aggregate array_aggr array_aggregate list_aggr list_aggregate")

# They call a lambda for each element of a list. Elsewhere an arrow is an operator of JSON.
LAMBDA_FUNCTIONS = _words("""
    apply array_apply array_filter array_reduce array_transform filter list_apply list_filter list_reduce
    list_transform reduce
""")
# Later lines of DuckDB call these consistent within a query where a value has a time zone: they read the
# session's TimeZone, which nobody changes while a source is open, and nothing else.
ZONED_FUNCTIONS = _words("""
    + - century date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname
    dayofmonth dayofweek dayofyear decade era hour isodow isoyear julian last_day make_timestamptz
    microsecond millennium millisecond minute month monthname quarter second strftime time_bucket timezone
    timezone_hour timezone_minute week weekday weekofyear year yearweek
""")
# The catalog calls these consistent on some line of DuckDB, but they read the clock, the session,
# the physical layout or aggregate states, or stop the query. What some of them say of a value is a fact of
# its type, and a type can be made from the rows.
NEVER_FUNCTIONS = _words("""
    age ago combine current_localtime current_localtimestamp current_setting cast_to_type create_sort_key
    enum_code enum_first enum_last enum_range enum_range_boundary error finalize get_type getenv
    getvariable hash index_key json_deserialize_sql json_serialize_plan json_serialize_sql make_type
    replace_type sleep_ms stats to_aggregate_state typeof vector_type write_log
""")
# Classes of expression in DuckDB's own syntax tree that a checked query may hold; operators by their type.
ENGINE_CLASSES = _words("""
    BETWEEN CASE CAST COLUMN_REF COMPARISON CONJUNCTION CONSTANT FUNCTION LAMBDA STAR TYPE ARRAY_EXTRACT
    ARRAY_SLICE COMPARE_IN COMPARE_NOT_IN OPERATOR_COALESCE OPERATOR_IS_NOT_NULL OPERATOR_IS_NULL
    OPERATOR_NOT OPERATOR_NULLIF STRUCT_EXTRACT
""")
# Nodes, relations, joins and clauses of the same tree. Whatever is set and not listed is refused.
ENGINE_CLAUSES = frozenset(
    {
        "SELECT_NODE",
        "SET_OPERATION_NODE",
        "UNION ALL",
        "UNION_BY_NAME ALL",
        "ORDER_MODIFIER",
        "BASE_TABLE",
        "EMPTY",
        "EXPRESSION_LIST",
        "JOIN",
        "SUBQUERY",
        # join type and how it is written
        "INNER REGULAR",
        "INNER CROSS",
        "LEFT REGULAR",
        "SEMI REGULAR",
        "ANTI REGULAR",
    }
)

# Types that a cast may name beside a window function. They show no more of a value than its place in an order
# and its text do. BIT shows which NaN a double is, and VARIANT the type that a number was written with.
# Nobody can make another type of one of these names; of JSON, which an extension makes, one can.
TYPES_BESIDE_WINDOWS = _words("""
    array bigint binary blob bool boolean bpchar bytea char date datetime dec decimal double enum float
    float4 float8 hugeint int int1 int128 int16 int2 int32 int4 int64 int8 integer interval list logical
    long map null nvarchar numeric oid real row short signed smallint string struct text time time_ns
    timestamp timestamp_ms timestamp_ns timestamp_s timestamp_us timestamptz timetz tinyint ubigint uhugeint
    uint128 uint16 uint32 uint64 uint8 uinteger usmallint utinyint uuid varbinary varchar
""") | {f"{kind} {zone} time zone" for kind in ("time", "timestamp") for zone in ("with", "without")}

TRUST_IT = (
    "If each row of the result is computed from the rows of one privacy unit and public tables only, "
    "add trust_query=True. This is your statement: it is printed in the plan and the certificate, and "
    "it is not checked."
)
HOW_TO_GO_ON = (
    "Allowed are projections, filters, row-wise deterministic expressions, CTEs, UNION ALL, ORDER BY, and "
    "INNER, LEFT, CROSS, SEMI and ANTI joins of one private table with tables named in public_tables=; with "
    "unit='u' also window functions with PARTITION BY u alone, such as lead, and QUALIFY. "
    f"{TRUST_IT}"
)

TABLE_FUNCTIONS_WITHOUT_FILES = frozenset({"range", "generate_series", "unnest"})
"""Their columns are known without reading anything; allowed where the owner answers for the query."""


# -- the syntax of the engine ------------------------------------------------------------------------

# What the database's own parser sees in a text, and whether a check has accepted that.
#
# A check reads a query with its own parser and prints the text that runs. This module judges the text once
# more, as the database reads it. It refuses a text that the printer garbled, or that two parsers read in two
# ways.

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
    for kind in sorted(syntax.types - TYPES_BESIDE_WINDOWS if syntax.windows else ()):
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
    for kind in sorted(syntax.classes - ENGINE_CLASSES - judged):
        return kind.replace("_", " ").lower()
    for function in sorted(syntax.functions):
        if fold(function) in NEVER_FUNCTIONS or not rowwise(function):
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
    for clause in sorted(syntax.clauses - ENGINE_CLAUSES - judged):
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
        if kind == "TABLE_FUNCTION" and function and fold(function) not in TABLE_FUNCTIONS_WITHOUT_FILES:
            return f"the table function {shorten(function)}"
        if clause in ("SHOW_REF", "PIVOT"):
            return clause.replace("_", " ")
    return tables_fault(syntax, private)


def is_one_expression(syntax: Syntax) -> bool:
    """Whether ``SELECT`` and a text make a single expression over nothing."""
    return syntax.statements == 1 and syntax.columns == 1 and syntax.clauses <= {"SELECT_NODE", "EMPTY"}
