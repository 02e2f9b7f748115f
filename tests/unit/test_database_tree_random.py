"""Random databases of up to six tables: the tree that is made of constraints is the one that they were made from."""

import random
import re
from dataclasses import dataclass, field

import duckdb
import pytest
import yaml

import dpsyn_sql
from dpsyn_sql.front.request import Request
from dpsyn_sql.front.tree import opened_tree
from dpsyn_sql.planning.tree import Reference
from dpsyn_sql.sqltext.fragments import ident

NAMES = [
    "a",
    "B",
    "a b",
    "a.b",
    'q"q',
    "straße",
    "日本",
    "SELECT",
    "x'y",
    "a..b",
    ".",
    '"',
    "A B C",
    "%s{{x}}",
]
TYPES = ["INTEGER", "VARCHAR", "UUID", "DATE", "DECIMAL(9,2)", "HUGEINT"]


@dataclass
class Made:
    """A table as it was made; ``parent`` and ``links`` are numbers of tables."""

    name: str
    key: list[tuple[str, str]]
    parent: int | None = None
    foreign: list[str] = field(default_factory=list)
    links: list[tuple[list[str], int]] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)


class Names:
    def __init__(self, dice):
        self.left = dice.sample(NAMES, len(NAMES))

    def new(self):
        return self.left.pop()


def database(dice):
    """Private tables in the order of their numbers, then whether the last ones are public."""
    names, tables = Names(dice), []
    for number in range(dice.randint(2, 6)):
        columns = Names(dice)
        parent = None if number == 0 else dice.randrange(number)
        foreign = [] if parent is None else [columns.new() for _ in tables[parent].key]
        key = [(columns.new(), dice.choice(TYPES)) for _ in range(dice.randint(1, 2))]
        one = Made(names.new(), key, parent, foreign)
        if parent is not None and dice.random() < 0.4:  # the parent's key is a part of its own
            kinds = [kind for _, kind in tables[parent].key]
            one.key = [*zip(foreign, kinds, strict=True), key[0]]
        if number and dice.random() < 0.3:  # to itself
            one.links.append(([columns.new() for _ in one.key], number))
        one.plain = [columns.new() for _ in range(dice.randint(0, 2)) if len(columns.left) > 3]
        tables.append(one)
    return tables, names


def statement(one, tables):
    types = dict(one.key)
    if one.parent is not None:
        types |= dict(zip(one.foreign, (kind for _, kind in tables[one.parent].key), strict=True))
    for columns, other in one.links:
        types |= dict(zip(columns, (kind for _, kind in tables[other].key), strict=True))
    types |= dict.fromkeys(one.plain, "INTEGER")

    def listed(columns):
        return ", ".join(ident(column) for column in columns)

    parts = [f"{ident(name)} {kind}" for name, kind in types.items()]
    parts.append(f"PRIMARY KEY ({listed(name for name, _ in one.key)})")
    links = [*one.links, *([] if one.parent is None else [(one.foreign, one.parent)])]
    for columns, other in links:
        named = listed(name for name, _ in tables[other].key)
        parts.append(f"FOREIGN KEY ({listed(columns)}) REFERENCES {ident(tables[other].name)} ({named})")
    return f"CREATE TABLE {ident(one.name)} ({', '.join(parts)})"


@pytest.mark.parametrize("seed", range(60))
def test_the_tree_is_the_one_that_was_made(seed):
    dice = random.Random(seed)
    tables, names = database(dice)
    public = Made(names.new(), [("k.k", "INTEGER")])
    bought = dice.randrange(1, len(tables))
    tables[bought].links.append((["bought"], len(tables)))
    most = {one.name: dice.randint(1, 12) for one in tables[1:] if dice.random() < 0.5}
    everything = [*tables, public]
    asked = dice.sample([ident(one.name) for one in tables], len(tables))
    with duckdb.connect() as con:
        con.execute(statement(public, everything))
        con.execute(f"INSERT INTO {ident(public.name)} VALUES (1), (2)")
        for one in tables:
            con.execute(statement(one, everything))
        request = Request(
            unit=ident(tables[0].name), source=asked, public_tables=[ident(public.name)], most=most
        )
        with opened_tree(con, request) as (_, session, made):
            check(made, tables, public, most)
            plain = made.tree
            for table in made.tree:
                session.engine.execute(f"FROM {table.relation.sql}", step="test")
        text = dpsyn_sql.init(con, public_tables=[ident(public.name)])
        form = yaml.safe_load(text)
        if "unit" not in form:  # tables that can be the unit are listed, and the owner chooses
            listed = re.findall(r"^# (unit: .*)$", text, re.MULTILINE)[1:]
            units, root = [yaml.safe_load(line)["unit"] for line in listed], tables[0].name
            form["unit"] = next(unit for unit in units if unit == root or unit.startswith(f"{root}."))
        with opened_tree(con, Request(domain=form, most=most)) as (_, _, made):
            check(made, tables, public, most)
            assert {table.name: table.key for table in made.tree} == {
                table.name: table.key for table in plain
            }


def check(made, tables, public, most):
    tree = made.tree
    assert {table.name for table in tree} == {one.name for one in tables}
    assert tree.root.name == tables[0].name
    seen = set()
    for table in tree:
        assert table.parent is None or table.parent in seen
        seen.add(table.name)
    for number, one in enumerate(tables):
        table = tree[one.name]
        assert table.key == tuple(name for name, _ in one.key)
        assert table.parent == (None if one.parent is None else tables[one.parent].name)
        assert table.foreign_key == tuple(one.foreign)
        assert table.most == (1 if one.parent is None else most.get(one.name, 16))
        expected = {
            Reference(
                tuple(columns),
                public.name if other == len(tables) else tables[other].name,
                "public" if other == len(tables) else "self" if other == number else "other",
            )
            for columns, other in one.links
        }
        assert set(table.references) == expected
        shape = made.shapes[one.name]
        assert sorted(shape.order) == sorted({*table.tied, *one.plain})
        assert {item.name for item in shape.measured} == {
            *one.plain,
            *(columns[0] for columns, _ in one.links),
        }
        assert {role.name for role in shape.roles} == table.tied
