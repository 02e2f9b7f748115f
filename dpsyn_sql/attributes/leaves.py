"""Columns whose codes are nodes of a tree: the codes and the values of leaves; and leaves as JSON.

A code is an interval of keys, because its leaves are neighbours and ascend. Few codes are found by
comparisons with where each begins; many by a join that keeps every row exactly once. Text is compared as
bytes: no collation changes the order.

Leaves of a code are drawn in proportion to their rows: a code followed by 32 random bits is a place on a line
that the leaves cut up, so one join finds the leaf and what is to be known of it. ``__other__`` is a leaf of
its own: text says so, other values are NULL, or anywhere in the tree where NULL cannot occur.

Anybody can edit a stored release, so what is read back is checked as if it were new. The SQL expressions that
gave the values are not read back: nothing may read the source again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Attribute, Coded, Valued
from dpsyn_sql.attributes.leaf_values import LeafColumn, LeafFact, by_level, drawn_number
from dpsyn_sql.attributes.points import Points
from dpsyn_sql.attributes.taxonomy import Taxonomy
from dpsyn_sql.attributes.text import Texts
from dpsyn_sql.attributes.trees import Hierarchy, HierarchyColumn, Leaves, NodeId, absent
from dpsyn_sql.errors import InternalError
from dpsyn_sql.sqltext.fragments import Fragment, by_cuts, last_start, literal, text_bytes

_COMPARED = 256  # codes; a tree of comparisons is slower than a join from here on
_PLACES = 2**32  # on the line of one code
_FEW = 64  # leaves of a code that are compared one by one
_LEAF, _VALUE = 1, 2  # purposes of bits; the values of further columns have the numbers after it


def node_array(hierarchy: Hierarchy, nodes: tuple[int | str, ...]) -> NDArray[Any]:
    """Ids as the hierarchy takes them: int64, or object for text."""
    return np.array(nodes, dtype=object if hierarchy.text else np.int64)


def finished_leaves(leaves: Leaves) -> list[bool]:
    """Whether each leaf of one or more hierarchies is written whole: no text in it is a beginning alone."""
    finished = np.ones(len(leaves.codes), dtype=bool)
    for hierarchy, levels, nodes in zip(leaves.hierarchies, leaves.levels, leaves.nodes, strict=True):
        if not isinstance(hierarchy, Texts):
            continue
        ids = node_array(hierarchy, nodes)
        for level, indices in by_level(levels).items():
            finished[indices] &= hierarchy.finished(ids[indices], level)
    flags: list[bool] = finished.tolist()
    return flags


def code_starts(hierarchy: Hierarchy, leaves: Leaves) -> list[int] | list[str]:
    """The least key of each code 0, 1, ..., ascending. The leaves are those of one hierarchy.

    Raises:
        InternalError: the leaves do not ascend in keys, or a code has none.
    """
    codes = np.array(leaves.codes, dtype=np.int64)
    firsts = np.flatnonzero(np.diff(codes, prepend=-1))
    levels = tuple(leaves.levels[0][first] for first in firsts)
    nodes = node_array(hierarchy, tuple(leaves.nodes[0][first] for first in firsts))
    starts = np.empty(len(firsts), dtype=nodes.dtype)
    for level, indices in by_level(levels).items():
        starts[indices] = hierarchy.lowest(nodes[indices], level)
    listed: list[Any] = starts.tolist()
    steady = codes[firsts].tolist() == list(range(len(firsts)))
    if not listed or not steady or any(before >= after for before, after in pairwise(listed)):
        raise InternalError("the leaves of a hierarchy do not ascend, or a code has none")
    return listed


# -- codes -------------------------------------------------------------------------------------------


def code(attribute: Attribute, slot: str, decimal: str, *, joined: bool) -> Coded:
    """As ``Attribute.code``: the values are named ``<slot>_0``, ``<slot>_1``, ..., and the key of a row, a
    whole number or text as bytes, ``slot``. Many codes are joined wherever the statement is."""
    hierarchy = _only_hierarchy(attribute)
    columns = attribute.columns
    values = [Fragment(f"{slot}_{place}") for place in range(len(columns))]
    named = tuple(
        Fragment(f"{column.read(decimal)} AS {value}") for column, value in zip(columns, values, strict=True)
    )
    key = hierarchy.key(values)
    keys = (Fragment(f"{text_bytes(key) if hierarchy.text else key} AS {slot}"),)
    starts, joins = _code_starts(attribute, hierarchy), tuple[Fragment, ...]()
    if attribute.regular > _COMPARED:
        joins = (last_start(f"[{', '.join(starts)}]", len(starts), f"l{slot}", slot),)
        inside = f"COALESCE(l{slot}.code, {attribute.fallback_code})"
    else:
        inside = by_cuts(slot, starts[1:], [str(code) for code in range(len(starts))])
    return Coded(named, _or_elsewhere(attribute, hierarchy, slot, values, inside), keys, joins)


def _or_elsewhere(
    attribute: Attribute, hierarchy: Hierarchy, slot: str, values: Sequence[Fragment], inside: str
) -> Fragment:
    """Rows without a value and rows outside are decided before keys are compared."""
    outside = f"WHEN {slot} IS NULL THEN {attribute.fallback_code}"
    if attribute.null_code is None:
        return Fragment(f"CASE {outside} ELSE {inside} END")
    missing = absent(hierarchy, values)
    return Fragment(f"CASE WHEN {missing} THEN {attribute.null_code} {outside} ELSE {inside} END")


def _code_starts(attribute: Attribute, hierarchy: Hierarchy) -> list[str]:
    """The least key of each code, as keys are spelled."""
    starts = code_starts(hierarchy, _leaves(attribute))
    if len(starts) != attribute.regular:
        raise InternalError(f"attribute {attribute.name!r} has another number of codes than its leaves")
    return [str(text_bytes(literal(start))) if hierarchy.text else str(start) for start in starts]


def _leaves(attribute: Attribute) -> Leaves:
    if attribute.leaves is None:
        raise InternalError(f"attribute {attribute.name!r} has no leaves")
    return attribute.leaves


def _only_hierarchy(attribute: Attribute) -> Hierarchy:
    """Codes of several hierarchies have no interval of keys."""
    hierarchies = _leaves(attribute).hierarchies
    if len(hierarchies) != 1:
        raise InternalError("leaves of several hierarchies have no codes that rows are counted by")
    return hierarchies[0]


# -- values ------------------------------------------------------------------------------------------


def value(attribute: Attribute, code: Fragment, bits: Fragment, slot: str) -> Valued:
    """As ``Attribute.value``. Its columns begin with ``w``, ``l``, ``i`` and ``v``, followed by the slot."""
    columns = _leaf_columns(attribute)
    # Before the join: DuckDB takes no parameter of a macro in the condition of an ASOF join.
    drawn = f"CAST({_other_bits(bits, _LEAF)} >> 32 AS BIGINT)"
    place = Fragment(f"CAST({code} AS BIGINT) * {_PLACES} + {drawn} AS w{slot}")
    facts, values = list[Fragment](), dict[str, Fragment]()
    for number, (column, written) in enumerate(zip(attribute.columns, columns, strict=True)):
        if written.ids:
            facts.append(Fragment(f"i{slot}_{number}.id AS v{slot}_id{number}"))
        else:
            facts += [Fragment(f"l{slot}.{fact.name} AS v{slot}_{fact.name}") for fact in written.facts]
        values[column.name] = written.value(f"v{slot}_", _other_bits(bits, _VALUE + number))
    joins = tuple(_leaf_joins(attribute, slot, columns, bits))
    return Valued(values, (place,), joins, tuple(facts))


def _other_bits(bits: Fragment, purpose: int) -> Fragment:
    """Other bits for each purpose, so that leaf and values do not depend on each other."""
    return Fragment(f"hash(xor({bits}, CAST({purpose} AS UBIGINT)))")


def _leaf_columns(attribute: Attribute) -> list[LeafColumn]:
    """One for each of ``attribute.columns``; the values of facts are those of the leaves, then of
    ``__other__``, then of NULL."""
    leaves, columns = _leaves(attribute), list[LeafColumn]()
    for hierarchy, levels, nodes in zip(leaves.hierarchies, leaves.levels, leaves.nodes, strict=True):
        columns += hierarchy.leaf_columns(
            levels, node_array(hierarchy, nodes), len(columns), nullable=attribute.nullable
        )
    return columns


def _leaf_joins(
    attribute: Attribute, slot: str, columns: Sequence[LeafColumn], bits: Fragment
) -> Iterator[Fragment]:
    """The leaf of a row, and the ids that are drawn below it."""
    starts, places = _starts(attribute)
    facts = [LeafFact("start", "BIGINT", starts.tolist())]
    facts += [
        LeafFact(fact.name, fact.sql_type, [fact.values[place] for place in places.tolist()])
        for column in columns
        for fact in column.facts
    ]
    codes = starts // _PLACES
    if int(np.bincount(codes).max()) <= _FEW:  # a join by code reads rows once; ASOF sorts them all in memory
        facts += [LeafFact("code", "BIGINT", codes.tolist())]
        facts += [LeafFact("stop", "BIGINT", [*starts[1:].tolist(), (int(codes[-1]) + 1) * _PLACES])]
        how, among = "LEFT", f"placed.w{slot} >> 32 = l{slot}.code AND placed.w{slot} < l{slot}.stop AND "
    else:
        how, among = "ASOF LEFT", ""
    listed = ", ".join(fact.unnested for fact in facts)
    yield Fragment(f"{how} JOIN (SELECT {listed}) AS l{slot} ON {among}placed.w{slot} >= l{slot}.start")
    for number, column in enumerate(columns):
        if column.ids:
            ids = LeafFact("id", "VARCHAR", column.ids).unnested
            low, high = column.facts
            drawn = drawn_number(f"l{slot}.", low, high, _other_bits(bits, _VALUE + number))
            yield Fragment(
                f"LEFT JOIN (SELECT {ids}, unnest(range({len(column.ids)})) AS number) AS i{slot}_{number} "
                f"ON i{slot}_{number}.number = {drawn}"
            )


def _starts(attribute: Attribute) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each leaf begins on the line of all codes, ascending, and its place among the values of facts.

    After the leaves come ``__other__`` and NULL, which are one place each, whatever has their code.
    """
    leaves = _leaves(attribute)
    codes = np.array(leaves.codes, dtype=np.int64)
    rows = np.array(leaves.rows, dtype=np.float64)
    size = attribute.regular
    if len(codes) == 0 or len(rows) != len(codes) or not (np.isfinite(rows) & (rows >= 0)).all():
        raise InternalError(f"the leaves of attribute {attribute.name!r} have no numbers of rows")
    empty = np.bincount(codes, rows, size)[codes] == 0
    weights = np.where(empty, 1.0, rows)
    kept = np.flatnonzero(weights > 0)
    codes, weights = codes[kept], weights[kept]
    before = np.cumsum(weights) - weights
    firsts = np.searchsorted(codes, codes)
    within = (before - before[firsts]) / np.bincount(codes, weights, size)[codes]
    starts = codes * _PLACES + np.minimum((within * _PLACES).astype(np.int64), _PLACES - 1)
    extra = [code for code in (attribute.other_code, attribute.null_code) if code is not None]
    last = len(leaves.codes)
    places = [last if code == attribute.other_code else last + 1 for code in extra]
    starts = np.append(starts, np.array(extra, dtype=np.int64) * _PLACES)
    kept = np.append(kept, np.array(places, dtype=np.int64))
    wide = np.append(np.diff(starts) > 0, True)
    return starts[wide], kept[wide]


# -- leaves as JSON ----------------------------------------------------------------------------------

_DECIMALS = 3  # of numbers of rows: more are noise


def leaves_facts(leaves: Leaves) -> dict[str, Any]:
    """Everything about leaves, JSON-ready: ``levels``, ``nodes``: a list by leaf for each hierarchy."""
    return {
        "hierarchies": [_facts(hierarchy) for hierarchy in leaves.hierarchies],
        "levels": [list(levels) for levels in leaves.levels],
        "nodes": [list(nodes) for nodes in leaves.nodes],
        "rows": [round(rows, _DECIMALS) for rows in leaves.rows],
        "codes": list(leaves.codes),
    }


def leaves_of(facts: Mapping[str, Any]) -> Leaves:
    """The leaves that ``leaves_facts`` describes.

    Raises:
        InternalError, KeyError, TypeError, ValueError: it describes none.
    """
    hierarchies = tuple(_hierarchy(hierarchy) for hierarchy in facts["hierarchies"])
    levels = tuple(tuple(map(int, of_hierarchy)) for of_hierarchy in facts["levels"])
    nodes = tuple(
        tuple(_node(hierarchy, node) for node in of_hierarchy)
        for hierarchy, of_hierarchy in zip(hierarchies, facts["nodes"], strict=True)
    )
    rows, codes = tuple(map(float, facts["rows"])), tuple(map(int, facts["codes"]))
    lengths = {len(rows), len(codes), *map(len, levels), *map(len, nodes)}
    if len(lengths) > 1 or not rows or len(levels) != len(hierarchies):
        raise InternalError("stored leaves do not fit together")
    for hierarchy, of_hierarchy in zip(hierarchies, levels, strict=True):
        if not all(0 <= level <= hierarchy.depth for level in of_hierarchy):
            raise InternalError("stored leaves are deeper than their hierarchy")
    return Leaves(hierarchies, levels, nodes, rows, codes)


def _facts(hierarchy: Hierarchy) -> dict[str, Any]:
    """What ``named`` has; of a taxonomy, which that has by its hash, the ids and nodes too."""
    facts = dict(hierarchy.named())
    if isinstance(hierarchy, Taxonomy):
        facts |= {
            "ids": list(hierarchy.ids),
            "nodes": [list(map(list, level_nodes)) for level_nodes in hierarchy.nodes],
        }
    return facts


def _hierarchy(facts: Mapping[str, Any]) -> Hierarchy:
    kind, nullable = facts["kind"], bool(facts.get("nullable", False))
    if kind == "point":
        columns = tuple(
            HierarchyColumn(column_facts["name"], column_facts["type"]) for column_facts in facts["columns"]
        )
        lows, highs = (
            tuple(_end(column_facts[end]) for column_facts in facts["columns"]) for end in ("low", "high")
        )
        return Points(facts["name"], columns, lows, highs, facts["depth"], nullable)
    column = HierarchyColumn(facts["name"], facts["type"])
    if kind == "string":
        return Texts(column, facts["alphabet"], tuple(facts["lengths"]), facts["longest"], nullable)
    if kind == "taxonomy":
        nodes = tuple(
            tuple((int(first), str(label)) for first, label in level_nodes) for level_nodes in facts["nodes"]
        )
        return Taxonomy(column, tuple(map(str, facts["ids"])), nodes, nullable)
    raise InternalError("a stored hierarchy is of an unknown kind")


def _node(hierarchy: Hierarchy, stated: int | str) -> NodeId:
    return str(stated) if hierarchy.text else int(stated)


def _end(stated: int | str) -> int | float:
    """An end of a box: a tick, or a double as text."""
    return stated if isinstance(stated, int) else float(stated)
