"""Small hierarchies for tests: whole numbers by halves, and text over two letters, both for NumPy and SQL."""

from dataclasses import dataclass

import numpy as np

from dpsyn_sql.attributes.trees import HierarchyColumn
from dpsyn_sql.sqltext.fragments import Fragment, fits_pattern

END = "\x03"


@dataclass(frozen=True)
class Halves:
    """0 ... 2^depth - 1 of an INTEGER column, by halves."""

    name: str
    depth: int
    nullable: bool = False
    branching = 2
    text = False

    @property
    def columns(self):
        return (HierarchyColumn(self.name, "INTEGER"),)

    def root(self):
        return np.zeros(1, dtype=np.int64)

    def children(self, nodes, level):
        places = np.repeat(np.arange(len(nodes)), 2)
        return 2 * nodes[places] + np.tile([0, 1], len(nodes)), places

    def lowest(self, nodes, level):
        return nodes << (self.depth - level)

    def labels(self, nodes, level):
        return [f"{level}:{node}" for node in nodes.tolist()]

    def key(self, values):
        (value,) = values
        return Fragment(
            f"CASE WHEN {value} >= 0 AND {value} < {2**self.depth} THEN CAST({value} AS BIGINT) END"
        )

    def at(self, key, level):
        return Fragment(f"({key} >> {self.depth - level})")

    def named(self):
        return {"kind": "halves", "name": self.name, "depth": self.depth, "nullable": self.nullable}

    def key_of(self, value):
        return value if value is not None and 0 <= value < 2**self.depth else None

    def node_of(self, key, level):
        return key >> (self.depth - level)


@dataclass(frozen=True)
class Letters:
    """Text over ``alphabet`` of up to ``depth`` letters, letter by letter; text that ends has no children."""

    name: str
    depth: int
    alphabet: str = "Aa"
    nullable: bool = False
    text = True

    @property
    def branching(self):
        return len(self.alphabet) + 1

    @property
    def columns(self):
        return (HierarchyColumn(self.name, "VARCHAR"),)

    def root(self):
        return np.array([""], dtype=object)

    def children(self, nodes, level):
        found = [
            (node + letter, place)
            for place, node in enumerate(nodes)
            if not node.endswith(END)
            for letter in END + self.alphabet
        ]
        ids = np.array([node for node, _ in found], dtype=object)
        return ids, np.array([place for _, place in found], dtype=np.int64)

    def lowest(self, nodes, level):
        return np.array([self._first(node) for node in nodes], dtype=object)

    def _first(self, node):
        return node if node.endswith(END) or len(node) == self.depth else node + END

    def labels(self, nodes, level):
        return [node.removesuffix(END) + ("" if node.endswith(END) else "*") for node in nodes]

    def key(self, values):
        (value,) = values
        ended = f"CASE WHEN length({value}) < {self.depth} THEN {value} || chr(3) ELSE substr({value}, 1, {self.depth}) END"
        return Fragment(f"CASE WHEN {fits_pattern(value, f'[{self.alphabet}]*')} THEN {ended} END")

    def at(self, key, level):
        return Fragment(f"substr({key}, 1, {level})")

    def named(self):
        return {"kind": "letters", "name": self.name, "depth": self.depth, "alphabet": self.alphabet}

    def key_of(self, value):
        if value is None or set(value) - set(self.alphabet):
            return None
        return value + END if len(value) < self.depth else value[: self.depth]

    def node_of(self, key, level):
        return key[:level]
