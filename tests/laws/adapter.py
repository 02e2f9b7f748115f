"""The one way from the laws to the package: a case goes in, kept rows, codes, counts and statements come out.

Whoever replaces the encoders changes this file, and no law.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from laws.trees import BOUNDED, EDGES, PERSONS, SINGLE, TREE, KeptRow, Meaning

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.planning.families import families_of
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.planning.row_labels import class_costs
from dpsyn_sql.planning.tree import Table, Tree
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.rows.kept import Bound, KeptRows
from dpsyn_sql.private.rows.relations import sliced_source
from dpsyn_sql.source.relation import Column, PrivacyUnit, Relation
from dpsyn_sql.source.slices import Window
from dpsyn_sql.sqltext.fragments import Fragment, ident

SETTINGS = "SET threads = 1; SET default_collation = 'nocase'"
"""Of the connection: keys and labels that differ in case alone differ all the same."""

_SOURCE = "Private "
# How the names of source tables begin, and of nothing else.


@dataclass(frozen=True)
class Statements:
    """What ran until all rows were kept (of one table: until the first counts of rows), and then, without the
    source. ``sources``: by table, how statements name it."""

    reading: list
    later: list
    sources: dict


def fill(con, case):
    """Make the source tables."""
    for table in case.tables:
        columns = ", ".join(f"{ident(column.name)} {column.sql_type}" for column in _columns(table))
        con.execute(f"CREATE OR REPLACE TEMP TABLE {ident(_SOURCE + table.name)} ({columns})")
        if table.rows:
            rows = [(*row.key, *row.owner, *row.values, row.at) for row in table.rows]
            read = ", ".join(f"unnest(?::{column.sql_type}[])" for column in _columns(table))
            con.execute(
                f"INSERT INTO {ident(_SOURCE + table.name)} SELECT {read}",
                [list(one) for one in zip(*rows, strict=True)],
            )


def sensitivity(case):
    """What a unit adds to a table of counts at most: the number that is charged."""
    units = {SINGLE: PrivacyUnit(), TREE: PrivacyUnit("a key", 99, together=True)}
    return units[case.shape].sensitivity if case.shape in units else _unit(case).sensitivity


def kept_rows(con, case):
    """By table, the rows that are counted, with their weights and parents; the root first."""
    fill(con, case)
    if case.shape != TREE:
        return {case.root.name: list(_rows_of_one_table(con, case))}
    rows, by_rowid = {}, {}
    with _encoder(DuckDBEngine(con), case) as encoder:
        encoder.keep()
        for table in case.tables:
            parent = "NULL" if table.parent is None else "parent"
            sql = f"SELECT rowid, {parent}, p0, w, n FROM {encoder._tables[table.name]}"
            for rowid, above, number, weight, siblings in con.execute(sql).fetchall():
                up = None if above is None else by_rowid[table.parent, above]
                row = KeptRow(table.name, number, weight, siblings, up)
                by_rowid[table.name, rowid] = row
                rows.setdefault(table.name, []).append(row)
            rows.setdefault(table.name, [])
    return rows


def _rows_of_one_table(con, case):
    packs = [(place,) for place in range(len(case.root.attributes))]
    for codes in con.execute(_codes_query(case, packs)).fetchall():
        siblings, weight = codes[-2:] if case.shape == PERSONS else (None, 1)
        yield KeptRow(case.root.name, codes[0], weight, siblings)


def codes(con, case):
    """By table, the codes of each of its attributes in every kept row."""
    fill(con, case)
    if case.shape == TREE:
        with _encoder(DuckDBEngine(con), case) as encoder:
            return {
                table.name: _columns_of(
                    con,
                    encoder.encoding(
                        table.name,
                        families.domain,
                        [(place,) for place in range(len(families.domain.names))],
                    ).query,
                    families.domain,
                )
                for table in case.tables
                for families in [encoder.families(table.name)]
            }
    domain = _domain(case) if case.shape != PERSONS else _families(case).domain
    query = _codes_query(case, [(place,) for place in range(len(domain.names))])
    return {case.root.name: _columns_of(con, query, domain)}


def _columns_of(con, query, domain):
    columns = con.execute(query).fetchnumpy()
    return {name: np.ma.asarray(columns[f"p{place}"]) for place, name in enumerate(domain.names)}


def _codes_query(case, packs):
    """Of one table: the statement that gives the codes of its kept rows."""
    relation, bound = _relation(case), None
    if case.shape != SINGLE:
        bound = Bound("owner0", case.root.most, case.secret)
    families = _families(case) if case.shape == PERSONS else None
    domain = _domain(case) if families is None else families.domain
    rows = KeptRows.of_table(DuckDBEngine(None), relation.sql, domain, bound=bound, families=families)
    return rows.encoding("", domain, packs, numbered=families is not None).query


def counts(con, case, questions):
    """The exact counts of questions, int64 of full shape, in their order."""
    fill(con, case)
    return _counted(DuckDBEngine(con), case, questions)


def statements(con, case, questions):
    """The statements of ``counts``, asked twice. The source is dropped when all rows are kept."""
    fill(con, case)
    engine, ran = DuckDBEngine(con), []
    engine.trace = ran.append
    sources = {table.name: ident(_SOURCE + table.name) for table in case.tables}
    if case.shape == TREE:
        with _encoder(engine, case) as encoder:
            encoder.keep()
            read = _dropped(con, sources, ran)
            for _ in range(2):
                _count_tables(engine, case, encoder, questions)
    else:
        with _counter(engine, case, questions) as ask:
            ask([question for question in questions if question.kind == "rows"])
            read = _dropped(con, sources, ran)
            for _ in range(2):
                ask(questions)
    return Statements(ran[:read], ran[read:], sources)


def _dropped(con, sources, ran):
    """Without the source tables from here on; how many statements ran so far."""
    for name in sources.values():
        con.execute(f"DROP TABLE {name}")
    return len(ran)


def meanings(case):
    """By table and by the name of an attribute, what it is."""
    if case.shape in (SINGLE, BOUNDED):
        own = {one.name: Meaning("column", one, column) for column, one in enumerate(case.root.attributes)}
        return {case.root.name: own}
    if case.shape == PERSONS:
        return {case.root.name: _meanings_of_a_person(_families(case))}
    described = {}
    with _encoder(None, case) as encoder:
        for table in case.tables:
            described[table.name] = _meanings_of_a_table(encoder.families(table.name), described)
    return described


# -- today's entry points ------------------------------------------------------------------------------


def _columns(table):
    names = [
        *(f"key{place}" for place in range(table.key_columns)),
        *(f"owner{place}" for place in range(table.owner_columns)),
    ]
    own = (Column(attribute.name, attribute.sql_type) for attribute in table.attributes)
    return (*(Column(name, "VARCHAR") for name in names), *own, Column("at", "DATE"))


def _relation(case):
    """The rows of the one table that are in its window."""
    relation = _whole(case.root)
    if case.window is None:
        return relation
    window = Window("at", "month", EDGES, case.window.index, most=case.window.most)
    return sliced_source(relation, _unit(case), window, Shape(())).relation


def _whole(table):
    return Relation(table.name, "table", ident(_SOURCE + table.name), _columns(table))


def _domain(case):
    return Domain(case.root.attributes)


def _unit(case):
    if case.shape == SINGLE:
        return PrivacyUnit()
    together = case.shape == PERSONS
    return PrivacyUnit("owner0", case.root.most, together, case.root.order or None)


def _families(case):
    families = families_of(_domain(case), _unit(case), case.per_unit)
    return families.grouped([_class_of(case.root, "class")]) if case.root.classed else families


def _class_of(table, name, *more):
    """A class of two that depends on the last column, and on further attributes."""
    laws, generator = [], np.random.default_rng(3)
    for attribute in (table.attributes[-1], *more):
        laws.append((attribute.name, generator.dirichlet(np.ones(attribute.size) * 2, 2)))
    return class_costs(name, np.full(2, 0.5), laws)


@contextmanager
def _encoder(engine, case) -> Iterator[KeptRows]:
    """All tables of a tree with their classes; without an engine only to say what they are."""
    tables = tuple(
        Table(
            table.name,
            _whole(table),
            tuple(f"key{place}" for place in range(table.key_columns)),
            table.parent,
            tuple(f"owner{place}" for place in range(table.owner_columns)),
            table.most,
            table.order,
        )
        for table in case.tables
    )
    domains = {table.name: Domain(table.attributes) for table in case.tables}
    orders = {table.name: table.order for table in case.tables if table.order}
    encoder = KeptRows(engine or DuckDBEngine(None), Tree(tables), domains, orders, case.secret)
    for table in reversed(case.tables):
        if table.parent is not None:
            families = encoder.families(table.name)
            below = families.domain.attributes[families.written : families.drawn]
            group = [_class_of(table, "class", *below)] if table.classed else []
            encoder.attach(table.name, group)
    try:
        yield encoder
    finally:
        encoder.close()


def _counted(engine, case, questions):
    if case.shape != TREE:
        with _counter(engine, case, questions) as ask:
            return ask(questions)
    with _encoder(engine, case) as encoder:
        return _count_tables(engine, case, encoder, questions)


def _count_tables(engine, case, encoder, questions):
    tables = {}
    for name in dict.fromkeys(question.table for question in questions):
        asked = [question for question in questions if question.table == name]
        families = encoder.families(name)
        with _asking(
            engine,
            Fragment("nothing"),
            families.domain,
            asked,
            siblings=True,
            rows=encoder,
            table=name,
        ) as ask:
            tables |= dict(zip(asked, ask(asked), strict=True))
    return [tables[question] for question in questions]


def _counter(engine, case, questions):
    settings, domain = {}, _domain(case)
    if case.shape != SINGLE:
        settings = {"unit": _unit(case), "key": case.secret}
    if case.shape == PERSONS:
        settings["families"] = _families(case)
        domain = settings["families"].domain
        settings["siblings"] = True
    return _asking(engine, _relation(case).sql, domain, questions, **settings)


@contextmanager
def _asking(engine, relation, domain, questions, **settings):
    """A function that counts questions of one table, and pairs of rows of any attributes."""
    singles = [MarginalQuery((name,)) for name in domain.names]
    planned = [MarginalQuery(question.names) for question in questions if question.kind == "rows"]
    counter = SqlCounter(engine, relation, domain, list(dict.fromkeys([*singles, *planned])), **settings)

    def ask(asked):
        tables = {}
        for kind, count in (("rows", counter.count), ("pairs", counter.siblings)):
            own = [question for question in asked if question.kind == kind]
            if own:
                tables |= dict(zip(own, count([MarginalQuery(one.names) for one in own]), strict=True))
        return [tables[question] for question in asked]

    try:
        yield ask
    finally:
        counter.close()


def _meanings_of_a_person(families):
    described, index = {}, families.domain.index
    for place, attribute in enumerate(families.domain.attributes[: families.written]):
        what = "most frequent" if attribute.name in families.persons else "column"
        described[attribute.name] = Meaning(what, attribute, place)
    size = families.domain[families.size]
    described[size.name] = Meaning("rows of the unit", size)
    if families.differing:
        columns = tuple(index(name) for name in families.shared)
        described[families.differing] = Meaning(
            "differ", families.domain[families.differing], columns=columns
        )
    described |= _meanings_in_order(families)
    described |= {group.attribute.name: Meaning("class", group.attribute) for group in families.groups}
    return {name: described[name] for name in families.domain.names}


def _meanings_of_a_table(families, described):
    domain, own = families.domain, {}
    for place, attribute in enumerate(domain.attributes[: families.written]):
        own[attribute.name] = Meaning("column", attribute, place)
    for one in families.below:
        own[one.name] = Meaning("number" if one.group is None else "class", domain[one.name], table=one.table)
    for one in families.above:
        above = described[one.table][one.attribute]
        own[one.name] = Meaning("above", domain[one.name], table=one.table, of=above)
    return own | _meanings_in_order(families)


def _meanings_in_order(families):
    domain = families.domain
    if not families.order:
        return {}
    before = {
        name: Meaning("before", domain[name], domain.index(followed)) for name, followed in families.previous
    }
    place, since = domain[families.place], domain[families.since]
    return before | {place.name: Meaning("rank", place), since.name: Meaning("since", since)}
