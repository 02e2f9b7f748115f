"""PRIVATE side: the label of a row as SQL over its codes. Total, in integers, and of one row alone."""

from __future__ import annotations

from collections.abc import Mapping

from dpsyn_sql.planning.row_labels import NearestLabel, Node, RowLabel, TreeLabel
from dpsyn_sql.sqltext.dialect import Dialect
from dpsyn_sql.sqltext.fragments import Fragment


def label_expression(label: RowLabel, codes: Mapping[str, Fragment], dialect: Dialect) -> Fragment:
    """The code of a label that ``check_labels`` has accepted.

    ``codes``: of each of its attributes a plain reference to a BIGINT column, because it is repeated.
    """
    if isinstance(label, TreeLabel):
        return Fragment(_leaf(label, 0, codes, dialect))
    return Fragment(_nearest(label, codes, dialect))


def _nearest(label: NearestLabel, codes: Mapping[str, Fragment], dialect: Dialect) -> str:
    """No two ranks are equal: they differ modulo the size, which gives the class of the least."""
    offsets, scores = label.ranked()
    ranks = [
        " + ".join(
            [
                f"CAST({offset} AS BIGINT)",
                *(dialect.of_places(table[j], codes[name]) for name, table in scores),
            ]
        )
        for j, offset in enumerate(offsets)
    ]
    return f"(LEAST({', '.join(ranks)}) % {label.size})"


def _leaf(label: TreeLabel, place: int, codes: Mapping[str, Fragment], dialect: Dialect) -> str:
    if place < 0:
        return str(-1 - place)
    node = label.nodes[place]
    below = _leaf(label, node.below, codes, dialect)
    above = _leaf(label, node.above, codes, dialect)
    return f"CASE WHEN {_goes_right(node, codes[node.attribute], dialect)} THEN {above} ELSE {below} END"


def _goes_right(node: Node, code: Fragment, dialect: Dialect) -> str:
    """A comparison if the codes from one on go right, else a list of the codes."""
    first = node.right.index(True) if True in node.right else len(node.right)
    if all(node.right[first:]):
        return f"{code} >= {first}"
    return f"{dialect.of_places([int(side) for side in node.right], code)} = 1"
