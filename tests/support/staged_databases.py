"""Random databases: trees of tables with keys of all kinds, and rows of codes that are staged by hand."""

from dataclasses import dataclass, field

import numpy as np

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.planning.tree import PublicTable, Reference, Table, Tree, roles_of
from dpsyn_sql.rows.sample.tables import table_seed
from dpsyn_sql.rows.write.publish import WrittenTable
from dpsyn_sql.rows.write.staging import GroupedRows, PublicRows, load_codes, make_room
from dpsyn_sql.source.relation import Column, Relation
from dpsyn_sql.sqltext.fragments import Fragment, ident, qualified

KINDS = ("INTEGER", "BIGINT", "SMALLINT", "UBIGINT", "VARCHAR", "UUID", "DATE", "TIMESTAMP", "DECIMAL(12,2)")


def relation_of(name, kinds, database="memory"):
    columns = tuple(Column(column, kind) for column, kind in kinds.items())
    return Relation(f"{database}.main.{name}", "table", qualified(database, "main", name), columns)


@dataclass
class Database:
    """A tree with its shapes, codes, parents and ranks by table; public rows, and lookups by table."""

    tree: Tree = None
    kinds: dict = field(default_factory=dict)
    shapes: dict = field(default_factory=dict)
    codes: dict = field(default_factory=dict)
    parents: dict = field(default_factory=dict)
    ranks: dict = field(default_factory=dict)
    public: list = field(default_factory=list)
    lookups: dict = field(default_factory=dict)

    def staged(self, engine, seed):
        """The tables, staged anew in a session."""
        found = []
        for table in self.tree:
            shape, name = self.shapes[table.name], Fragment(f"temp.{ident('staged ' + table.name)}")
            engine.execute(f"DROP TABLE IF EXISTS {name}", step="test")
            make_room(engine, shape.domain, name, ("parent", "rank"))
            rows = np.arange(len(self.codes[table.name]), dtype=np.int64)
            beside = {"parent": self.parents[table.name], "rank": self.ranks[table.name]}
            if rows.size:
                load_codes(engine, shape.domain, [self.codes[table.name]], name, rows, beside)
            own = table_seed(seed, table.name)
            found.append(WrittenTable(table.name, shape, name, own, lookups=self.lookups.get(table.name, {})))
        return found


def random_database(random, most_rows=300):
    """Up to six private tables and two public ones."""
    made = Database()
    public = [_public(random, made, name) for name in ("goods", "places")[: random.integers(0, 3)]]
    tables = []
    for number in range(random.integers(1, 7)):
        parent = tables[random.integers(0, number)] if number else None
        tables.append(_table(random, made, f"t{number}", parent, tables, public))
    made.tree = Tree(tuple(tables), tuple(public))
    for table in tables:
        _fill(random, made, table, most_rows)
    return made


def _public(random, made, name):
    kinds = {f"{name}_{place}": random.choice(KINDS[:5]) for place in range(random.integers(1, 3))}
    key = tuple(kinds)
    kinds |= {"note": "VARCHAR", "price": "DOUBLE"}
    rows = int(random.integers(1, 30))
    values = {column: np.array([str(i + 1) for i in range(rows)], dtype=object) for column in kinds}
    values["note"][0] = None
    table = PublicTable(name, relation_of(name, kinds), key)
    made.public.append(PublicRows(table, values))
    made.kinds[name] = kinds
    return table


def _table(random, made, name, parent, before, public):
    kinds, foreign = {}, ()
    if parent is not None:
        foreign = tuple(f"{name} of {column}" for column in parent.key)
        kinds |= {own: made.kinds[parent.name][key] for own, key in zip(foreign, parent.key, strict=True)}
    form = random.choice(
        ["single", "pair"] if parent is None else ["single", "pair", "within", "twice", "same"]
    )
    own = tuple(f"{name} key {place}" for place in range({"single": 1, "within": 1, "same": 0}.get(form, 2)))
    kinds |= dict.fromkeys(own, "INTEGER") | {column: str(random.choice(KINDS)) for column in own}
    key = own + foreign if random.integers(2) else foreign + own
    key = key if form in ("within", "twice", "same") else own
    references = []
    if random.integers(2) and public:
        chosen = public[random.integers(len(public))]
        references.append(_reference(made, kinds, name, chosen.name, chosen.key, "public"))
    if random.integers(2) and before:
        chosen = before[random.integers(len(before))]
        references.append(_reference(made, kinds, name, chosen.name, chosen.key, "other"))
    made.kinds[name] = kinds
    if random.integers(2) and len(key) == len(own):
        references.append(_reference(made, kinds, name, name, key, "self"))
    most = 1 if form == "same" or parent is None else int(random.integers(1, 6))
    up = None if parent is None else parent.name
    return Table(name, relation_of(name, kinds), key, up, foreign, most, references=tuple(references))


def _reference(made, kinds, name, other, key, kind):
    columns = tuple(f"{name} {kind} {column}" for column in key)
    types = made.kinds.get(other, kinds)
    kinds |= {own: types[column] for own, column in zip(columns, key, strict=True)}
    return Reference(columns, other, kind)


def _fill(random, made, table, most_rows):
    name, attributes = table.name, [Attribute("x y", "INTEGER", "numeric", edges=(0, 10, 20), nullable=True)]
    for reference in table.references:
        labels, nullable = (1,), bool(random.integers(2))
        if reference.kind == "public":
            rows = next(one for one in made.public if one.table.name == reference.table)
            groups = np.sort(random.integers(0, 4, len(rows.values["note"])))
            keys = {column: rows.values[column] for column in rows.table.key}
            made.lookups.setdefault(name, {})[reference.columns[0]] = GroupedRows(groups, keys)
            labels = tuple(range(int(groups.max()) + 1))
        attributes.append(
            Attribute(reference.columns[0], "INTEGER", "categorical", labels=labels, nullable=nullable)
        )
    if table.parent is None:
        parents = np.zeros(int(random.integers(0, most_rows + 1)), np.int64)
        ranks = np.zeros(parents.size, np.int64)
    else:
        above = len(made.codes[table.parent])
        numbers = random.integers(0, table.most + 1, above)
        parents = np.repeat(np.arange(above), numbers)[:most_rows]
        ranks = (np.arange(numbers.sum()) - np.repeat(np.cumsum(numbers) - numbers, numbers))[:most_rows]
    rows = parents.size
    codes = np.zeros((rows, len(attributes)), np.int64)
    for place, attribute in enumerate(attributes):
        codes[:, place] = random.integers(0, attribute.size, rows)
    roles = roles_of(made.tree, name, made.kinds[name])
    order = ("x y", *made.kinds[name])
    not_null = tuple(column for column in table.key if random.integers(2))
    made.shapes[name] = Shape(
        tuple(attributes), roles, tuple(random.permutation(order).tolist()), (), not_null
    )
    made.codes[name], made.parents[name], made.ranks[name] = (
        codes,
        parents.astype(np.int64),
        ranks.astype(np.int64),
    )


def check_joined(made, written):
    """No key is without its row, keys tell rows apart, rows are those of their parents.

    ``written``: rows of each table as dictionaries, in order.
    """
    keys = {
        table.name: [tuple(row[column] for column in table.key) for row in written[table.name]]
        for table in made.tree
    }
    for table in made.tree:
        rows, own = written[table.name], keys[table.name]
        assert len(rows) == len(made.codes[table.name])
        assert len(set(own)) == len(own) and all(None not in key for key in own)
        if table.parent is not None:
            above = keys[table.parent]
            for row, parent, rank in zip(rows, made.parents[table.name], made.ranks[table.name], strict=True):
                assert tuple(row[column] for column in table.foreign_key) == above[parent]
                if set(table.foreign_key) < set(table.key):
                    part = next(column for column in table.key if column not in table.foreign_key)
                    if made.kinds[table.name][part] in ("INTEGER", "BIGINT", "SMALLINT", "UBIGINT"):
                        assert row[part] == rank + 1
        for reference in table.references:
            _check_reference(made, table, reference, rows, keys)


def _check_reference(made, table, reference, rows, keys):
    attributes = made.shapes[table.name].domain.attributes
    place = [one.name for one in attributes].index(reference.columns[0])
    codes, empty = made.codes[table.name][:, place], attributes[place].null_code
    named = [tuple(row[column] for column in reference.columns) for row in rows]
    for number, (key, code) in enumerate(zip(named, codes, strict=True)):
        assert len({part is None for part in key}) == 1  # all columns of a key or none
        if code == empty:
            assert key[0] is None
        elif reference.kind == "public":
            lookup = made.lookups[table.name][reference.columns[0]]
            rows_of_group = np.flatnonzero(lookup.groups == code)
            there = {tuple(texts[i] for texts in lookup.keys.values()) for i in rows_of_group}
            assert (key[0] is None and not there) or tuple(str(part).split(".")[0] for part in key) in there
        elif reference.kind == "self":
            assert (key[0] is None) == (number == 0)
            assert number == 0 or key in keys[table.name][:number]
        else:
            assert (key[0] is None and not keys[reference.table]) or key in set(keys[reference.table])
    assert set(made.tree.links(table.name))


def shop(customers=20, key="INTEGER"):
    """Customers with two orders each, of three items that name goods; without lookups the items name none."""
    made, goods = Database(), PublicTable("goods", relation_of("goods", {"gid": "INTEGER"}), ("gid",))
    made.kinds = {
        "customers": {"cid": key},
        "orders": {"oid": "BIGINT", "cid": key},
        "items": {"oid": "BIGINT", "line": "INTEGER", "gid": "INTEGER"},
    }
    tables = (
        Table("customers", relation_of("customers", made.kinds["customers"]), ("cid",)),
        Table("orders", relation_of("orders", made.kinds["orders"]), ("oid",), "customers", ("cid",), 2),
        Table(
            *("items", relation_of("items", made.kinds["items"]), ("oid", "line"), "orders", ("oid",), 3),
            references=(Reference(("gid",), "goods", "public"),),
        ),
    )
    made.tree = Tree(tables, (goods,))
    made.public = [PublicRows(goods, {"gid": np.array(["5", "6"], dtype=object)})]
    made.lookups = {"items": {"gid": GroupedRows(np.arange(2), {"gid": made.public[0].values["gid"]})}}
    for table, each, above in (
        (tables[0], 1, customers),
        (tables[1], 2, customers),
        (tables[2], 3, 2 * customers),
    ):
        name, attributes = table.name, [Attribute("x", "INTEGER", "categorical", labels=(1, 2))]
        attributes += [Attribute("gid", "INTEGER", "categorical", labels=(0, 1))] * (name == "items")
        rows = np.arange(above * each)
        made.parents[name], made.ranks[name] = rows // each, rows % each
        made.codes[name] = np.tile(rows[:, None] % 2, len(attributes))
        roles = roles_of(made.tree, name, made.kinds[name])
        made.shapes[name] = Shape(tuple(attributes), roles, ("x", *made.kinds[name]), (), table.key)
    return made
