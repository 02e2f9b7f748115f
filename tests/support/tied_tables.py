"""Small databases of tables tied by keys, and what is kept of them, by the definitions in plain Python."""

import random
from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np
from hypothesis import strategies as st

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.types import MAX_TICK
from dpsyn_sql.planning.families import families_of_table
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.planning.row_labels import DRAW_BITS, MOST_CLASSES, class_costs, gumbel_costs
from dpsyn_sql.planning.tree import Table, Tree
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.rows.kept import KeptRows
from dpsyn_sql.source.relation import WEIGHT, Column, Relation
from dpsyn_sql.sqltext.fragments import Fragment, code_type, ident, lot

KEY = 5
CLASSES_OF_A_TABLE = 1_000


def code(name, size):
    return Attribute(name, "BIGINT", "categorical", labels=tuple(range(size)))


def moment(name):
    return Attribute(name, "BIGINT", "numeric", edges=(0, 2, 4, 6, 8), nullable=True, ordered=True)


COLUMNS = {
    "customers": {"id": "VARCHAR", "a": "BIGINT"},
    "orders": {"oid": "BIGINT", "cid": "VARCHAR", "b": "BIGINT", "d": "BIGINT"},
    "cards": {"cid": "VARCHAR", "kind": "BIGINT"},
    "items": {"oid": "BIGINT", "line": "VARCHAR", "q": "BIGINT"},
    "returns": {"oid": "BIGINT", "line": "VARCHAR", "why": "BIGINT", "r": "BIGINT"},
}
"""Four levels; customers and orders are keyed by one column, items by two; orders and cards are children of one
table; customers have cards and orders, orders items, items returns."""

DOMAINS = {
    "customers": Domain((code("a", 3),)),
    "orders": Domain((code("b", 3), moment("d"))),
    "cards": Domain((code("kind", 3),)),
    "items": Domain((code("q", 3),)),
    "returns": Domain((code("why", 2), moment("r"))),
}
ORDERS = {"orders": "d", "returns": "r"}

TREE = Tree(
    (
        Table("customers", None, ("id",)),
        Table("orders", None, ("oid",), "customers", ("cid",), 3),
        Table("cards", None, (), "customers", ("cid",), 2),
        Table("items", None, ("oid", "line"), "orders", ("oid",), 2),
        Table("returns", None, (), "items", ("oid", "line"), 2),
    )
)


def tree_of(columns=COLUMNS, tree=TREE):
    """The tree over tables of these names."""

    def relation(name):
        made = tuple(Column(one, kind) for one, kind in columns[name].items())
        return Relation(name, "table", ident(name), made)

    tables = (
        Table(t.name, relation(t.name), t.key, t.parent, t.foreign_key, t.most, t.order) for t in tree.tables
    )
    return Tree(tuple(tables))


_IDS = st.sampled_from(["ann", "Ann", "bob", "", None])
_OIDS = st.sampled_from([1, 2, 3, None])
_LINES = st.sampled_from(["1", "2", None])
_CODE, _DAY = st.integers(0, 2), st.none() | st.integers(-1, 9)


def lists(*columns, most):
    return st.lists(st.tuples(*columns), max_size=most)


DATABASES = st.fixed_dictionaries(
    {
        "customers": lists(_IDS, _CODE, most=5),
        "orders": lists(_OIDS, _IDS | st.just("nobody"), _CODE, _DAY, most=12),
        "cards": lists(_IDS | st.just("nobody"), _CODE, most=8),
        "items": lists(_OIDS | st.just(9), _LINES, _CODE, most=14),
        "returns": lists(_OIDS | st.just(9), _LINES, st.integers(0, 1), _DAY, most=14),
    }
)
"""Duplicate keys, keys of two units, NULLs, keys of nobody, tables without rows."""


def fill(con, data, columns=COLUMNS):
    for name, kinds in columns.items():
        listed = ", ".join(f"{column} {kind}" for column, kind in kinds.items())
        con.execute(f"CREATE OR REPLACE TEMP TABLE {name} ({listed})")
        if data.get(name):
            values = [list(column) for column in zip(*data[name], strict=True)]
            read = ", ".join(f"unnest(?::{kind}[])" for kind in kinds.values())
            con.execute(f"INSERT INTO {name} SELECT {read}", values)


def classes_of(names, sizes, number, seed=3):
    generator = np.random.default_rng(seed)
    laws = [
        (name, generator.dirichlet(np.ones(size) * 2, number))
        for name, size in zip(names, sizes, strict=True)
    ]
    return class_costs("group", np.full(number, 1 / number), laws)


GROUPS = (
    ("returns", (classes_of(("why",), (2,), 2),)),
    (
        "items",
        (
            classes_of(
                ("q", "number of returns", "group of returns", "orders.b", "customers.a"), (3, 3, 2, 3, 3), 3
            ),
        ),
    ),
    ("cards", (classes_of(("kind",), (3,), 2),)),
    (
        "orders",
        (
            classes_of(("b", "group of items", "customers.a"), (3, 3, 3), 2),
            classes_of(("d",), (5,), 3, seed=4),
        ),
    ),
)
"""In the order in which they are attached."""


def codes_of(engine, tree=None, groups=GROUPS, domains=DOMAINS, orders=ORDERS, key=KEY):
    made = KeptRows(engine, tree or tree_of(), domains, orders, key)
    for name, own in groups:
        made.attach(name, own)
    return made


def counter_of(engine, codes, name, queries):
    families = codes.families(name)
    return SqlCounter(
        engine, Fragment("nothing"), families.domain, queries, siblings=True, rows=codes, table=name
    )


def questions_of(families):
    """All attributes, and pairs that mix own, below, above and before."""
    names = families.domain.names
    ways = [MarginalQuery((name,)) for name in names]
    last = names[families.drawn - 1]
    pairs = [
        MarginalQuery((one, name)) for one in dict.fromkeys((names[0], last)) for name in names if name != one
    ]
    return [*ways, *pairs]


def pairs_of(families):
    own = families.domain.names[: families.drawn]
    return [MarginalQuery((own[0], other)) for other in own] + [MarginalQuery((own[-1], own[-1]))]


def tables(engine, **settings):
    """Every table of every leg: by name and question."""
    codes, found = codes_of(engine, **settings), {}
    for table in codes._tree:
        families = codes.families(table.name)
        asked, paired = questions_of(families), pairs_of(families)
        counter = counter_of(engine, codes, table.name, [*asked])
        counts = [*counter.count(asked), *counter.siblings(paired)]
        counter.close()
        kinds = [("rows", query.attrs) for query in asked] + [("pairs", query.attrs) for query in paired]
        found |= {(table.name, *kind): count for kind, count in zip(kinds, counts, strict=True)}
    codes.close()
    return found


@dataclass(eq=False)
class Kept:
    """A kept row."""

    table: str
    unit: bytes
    parent: "Kept | None"
    key: bytes | None
    codes: tuple
    moment: int
    lot: int
    n: int = 1
    weight: int = WEIGHT
    below: dict = field(default_factory=lambda: defaultdict(list))

    @property
    def in_order(self):
        return (self.moment, self.codes, self.lot, self.key)


def key_of(values):
    if any(value is None for value in values):
        return None
    texts = [str(value) for value in values]
    if len(texts) == 1:
        return texts[0].encode()
    return "".join(f"{len(text.encode())}:{text}" for text in texts).encode()


class Reference:
    """The kept rows of a database, with their attributes."""

    def __init__(self, con, data, tree=None, groups=GROUPS, domains=DOMAINS, orders=ORDERS, columns=COLUMNS):
        self.con, self.tree, self.domains, self.orders = con, tree or tree_of(), domains, orders
        self.columns, self.groups, self.known, self.values = columns, dict(groups), {}, {}
        self.rows = {}
        for table in self.tree:
            rows = list(self.read(table, data.get(table.name, [])))
            self.rows[table.name] = list(self.kept(table, rows))
        self.families = {}
        for table in self.tree:
            children = [(child.name, child.most) for child in self.tree.children(table.name)]
            parent = self.families.get(table.parent)
            self.families[table.name] = families_of_table(
                table.name,
                domains[table.name],
                parent,
                children,
                groups=self.groups,
                order=orders.get(table.name, ""),
            )

    def read(self, table, rows):
        """(owner, key, codes, moment) of each row."""
        names = list(self.columns[table.name])
        for row in rows:
            values = dict(zip(names, row, strict=True))
            codes = tuple(own_code(one, values[one.name]) for one in self.domains[table.name].attributes)
            order = self.orders.get(table.name)
            when = 0 if order is None else values[order]
            when = MAX_TICK if when is None else min(max(when, 0), 7) if order else 0
            owner = key_of([values[name] for name in table.foreign_key]) if table.parent else None
            yield owner, key_of([values[name] for name in table.key]) if table.key else None, codes, when

    def lot(self, drawn, unit):
        """As the database hashes typed literals."""
        text = str(lot(drawn, unit, KEY))
        if text not in self.known:
            self.known[text] = self.con.execute(f"SELECT {text}").fetchone()[0]
        return self.known[text]

    def kept(self, table, rows):
        if table.parent is None:
            yield from self.roots(table, rows)
            return
        parents = defaultdict(list)
        for parent in self.rows[table.parent]:
            parents[parent.key].append(parent)
        met = [(parent, row) for row in rows if row[0] is not None for parent in parents[row[0]]]
        inner = bool(self.tree.children(table.name))
        families = defaultdict(list)
        for one in self.singles(table, met) if inner else self.copies(table, met):
            families[one.parent].append(one)
        for parent, family in families.items():
            family.sort(key=lambda one: (one.lot, one.key if inner else (one.codes, one.moment)))
            family = family[: table.most]
            for one in family:
                one.n, one.weight = len(family), parent.weight // len(family)
                parent.below[table.name].append(one)
                yield one

    def roots(self, table, rows):
        for key in dict.fromkeys(row[1] for row in rows if row[1] is not None):
            _, _, codes, when = min((row for row in rows if row[1] == key), key=lambda row: row[2:])
            yield Kept(table.name, key, None, key, codes, when, self.lot([blob(key)], blob(key)))

    def singles(self, table, met):
        """One row of each key of a unit."""
        by_key = defaultdict(list)
        for parent, row in met:
            if row[1] is not None:
                by_key[parent.unit, row[1]].append((parent, row))
        for (unit, key), rows in by_key.items():
            parent, row = min(rows, key=lambda one: (one[0].key, *one[1][2:]))
            lot = self.lot([blob(key)], number(parent.lot))
            yield Kept(table.name, unit, parent, key, *row[2:], lot)

    def copies(self, table, met):
        seen = Counter()
        for parent, (_, _, codes, when) in met:
            seen[parent, codes, when] += 1
            sizes = [one.size for one in self.domains[table.name].attributes]
            drawn = [f"CAST({own} AS {code_type(size)})" for own, size in zip(codes, sizes, strict=True)]
            drawn += [f"CAST({when} AS BIGINT)"] * (table.name in self.orders)
            drawn.append(f"CAST({seen[parent, codes, when]} AS BIGINT)")
            lot = self.lot(drawn, number(parent.lot))
            yield Kept(table.name, parent.unit, parent, None, codes, when, lot)

    def value(self, row, name):
        """The code of an attribute in a kept row."""
        if (row, name) not in self.values:
            self.values[row, name] = self.computed(row, name)
        return self.values[row, name]

    def computed(self, row, name):
        families = self.families[row.table]
        place = families.domain.index(name)
        if place < families.written:
            return row.codes[place]
        if place < families.drawn:
            one = families.below[place - families.written]
            family = row.below[one.table]
            return len(family) if one.group is None else self.class_of(row, one.table, one.group, family)
        if place < families.drawn + len(families.above):
            one, at = families.above[place - families.drawn], row
            while at.table != one.table:
                at = at.parent
            return self.value(at, one.attribute)
        return self.before(row, families, name)

    def before(self, row, families, name):
        family = sorted(row.parent.below[row.table], key=lambda one: one.in_order) if row.parent else [row]
        at, null = family.index(row), families.domain[name].null_code
        if name == families.place:
            return 0 if row.n == 1 else 1 if at == 0 else 3 if at == row.n - 1 else 2
        if at == 0:
            return null
        if name == families.since:
            edges, passed = families.domain[name].edges, row.moment - family[at - 1].moment
            return null if row.moment == MAX_TICK else min(bisect_right(edges, passed), len(edges) - 1) - 1
        return self.value(family[at - 1], dict(families.previous)[name])

    def class_of(self, row, table, group, family):
        """The least class of the least cost, its draw included."""
        place = next(n for n, one in enumerate(self.tree) if one.name == table)
        first = (place * CLASSES_OF_A_TABLE + self.groups[table].index(group)) * MOST_CLASSES
        costs, draws = [], gumbel_costs()
        for j, offset in enumerate(group.costs.offsets):
            lot = self.lot([f"CAST({first + j} AS BIGINT)"], number(row.lot))
            total = offset + draws[lot >> (64 - DRAW_BITS)]
            for name, scores in group.costs.scores:
                total += sum(scores[j][self.value(one, name)] for one in family)
            costs.append(total)
        return costs.index(min(costs))

    def table(self, name, kind, attrs):
        families = self.families[name]
        found = np.zeros([families.domain[one].size for one in attrs], np.int64)
        if kind == "rows":
            for row in self.rows[name]:
                found[tuple(self.value(row, one) for one in attrs)] += row.weight
            return found
        for parent in {id(row.parent): row.parent for row in self.rows[name] if row.parent}.values():
            for pair in permutations(parent.below[name], 2):
                cell = tuple(self.value(row, one) for row, one in zip(pair, attrs, strict=True))
                found[cell] += pair[0].weight // (pair[0].n - 1)
        return found


def own_code(attribute, value):
    if attribute.kind == "categorical":
        return value
    return attribute.null_code if value is None else min(max(value, 0), 7) // 2


def blob(content):
    return f"from_hex('{content.hex()}')" if content else "''::BLOB"


def number(lot):
    return f"CAST({lot} AS UBIGINT)"


def dense(seed, units=12):
    """A database where families are full, keys are there twice and rows tie."""
    draw = random.Random(seed)
    ids = [f"u{i}" for i in range(units)]
    some = [*ids, None, "nobody"]
    orders = [
        (draw.randrange(3 * units), draw.choice(some), draw.randrange(3), draw.choice([None, *range(9)]))
        for _ in range(5 * units)
    ]
    numbers = [row[0] for row in orders] + [None, -1]
    items = [
        (draw.choice(numbers), draw.choice(["1", "2", "3", None]), draw.randrange(3))
        for _ in range(9 * units)
    ]
    lines = [row[:2] for row in items]
    returns = [
        (*draw.choice(lines), draw.randrange(2), draw.choice([None, *range(9)])) for _ in range(15 * units)
    ]
    return {
        "customers": [(one, draw.randrange(3)) for one in [*ids, *ids[:3], None]],
        "orders": orders,
        "cards": [(draw.choice(some), draw.randrange(3)) for _ in range(4 * units)],
        "items": items,
        "returns": returns,
    }


def without(data, unit):
    """The database without what belongs to a unit and to no other (rows of nobody stay)."""
    of = {"customers": [{key_of(row[:1])} - {None} for row in data["customers"]]}
    for table in TREE.tables[1:]:
        names, above = list(COLUMNS[table.name]), list(COLUMNS[table.parent])
        parents = defaultdict(set)
        for row, units in zip(data[table.parent], of[table.parent], strict=True):
            parents[key_of([row[above.index(name)] for name in TREE[table.parent].key])] |= units
        parents.pop(None, None)
        of[table.name] = [
            parents.get(key_of([row[names.index(name)] for name in table.foreign_key]), set())
            for row in data[table.name]
        ]
    return {
        name: [row for row, units in zip(rows, of[name], strict=True) if units != {unit}]
        for name, rows in data.items()
    }
