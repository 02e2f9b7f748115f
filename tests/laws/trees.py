"""Random trees of tables, and what is true of their rows by the definitions of docs/privacy.md: no SQL.

The smallest trees are one table of single rows, and rows of a person. Every table has a column ``number``, other
in all rows but exact copies, so that a kept row can be named. A secret hash chooses among rows that are more than
are kept: which it takes is no matter here. Given the chosen rows, everything else follows.
"""

import random
from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from itertools import permutations

import numpy as np
from hypothesis import strategies as st

from dpsyn_sql.attributes.attribute import Attribute

WEIGHT = 2**20
LAST = float("inf")
"""The moment of a row without one."""

SINGLE, BOUNDED, PERSONS, TREE = "single rows", "bounded rows of a person", "rows of a person", "tables"
SHAPES = (SINGLE, BOUNDED, PERSONS, TREE)
EDGES = ("2013-01-01", "2013-02-01", "2013-03-01", "2013-04-01")

_ENDS = [-(2**63), 2**63 - 1]
COLUMNS = (
    (
        Attribute("color", "VARCHAR", "categorical", labels=("x", "X"), other=True),
        ["x", "X", "x ", "", "\x00", None],
    ),
    (
        Attribute("ward", "VARCHAR", "categorical", labels=("ear", "eye"), nullable=True),
        ["ear", "eye", "Eye", None],
    ),
    (
        Attribute("kind", "BIGINT", "categorical", labels=(3, 1, 7), other=True, nullable=True),
        [1, 3, 7, 2, *_ENDS, None],
    ),
    (Attribute("flag", "BOOLEAN", "categorical", labels=(False, True)), [False, True, None]),
    (
        Attribute("size", "BIGINT", "numeric", edges=(0, 2, 5, 9), nullable=True),
        [*range(-1, 10), *_ENDS, None],
    ),
    (
        Attribute("share", "DOUBLE", "numeric", edges=(0.0, 0.5, 1.0)),
        [-1.0, 0.0, 0.5, 1.0, float("inf"), float("nan"), None],
    ),
)
"""Attributes, and values inside and outside of their domains."""

DAY = Attribute("day", "BIGINT", "numeric", edges=(0, 2, 4, 6, 8), nullable=True, ordered=True)
DAYS = [*range(-1, 10), _ENDS[1], None]


@dataclass(frozen=True)
class Row:
    """A source row: its key, the key of the row above it (or its person), its values, the day of its window."""

    key: tuple
    owner: tuple
    values: tuple
    at: date | None

    @property
    def number(self):
        return self.values[0]


@dataclass(frozen=True)
class TableCase:
    """``key_columns``: 0 of a table without a key. ``classed``: its rows have a class, one more code above."""

    name: str
    attributes: tuple
    rows: tuple
    parent: str | None = None
    most: int = 1
    key_columns: int = 0
    owner_columns: int = 0
    order: str = ""
    classed: bool = False

    @cached_property
    def by_number(self):
        return {row.number: row for row in self.rows}

    def codes(self, number):
        return tuple(
            code_of(attribute, value)
            for attribute, value in zip(self.attributes, self.by_number[number].values, strict=True)
        )

    def moment(self, number):
        """The clipped value that orders a row among those of one parent."""
        if not self.order:
            return 0
        names = [attribute.name for attribute in self.attributes]
        value = self.by_number[number].values[names.index(self.order)]
        return LAST if value is None else min(max(value, DAY.edges[0]), DAY.edges[-1] - 1)

    def in_order(self, number):
        return (self.moment(number), self.codes(number))


@dataclass(frozen=True)
class WindowCase:
    """The window ``EDGES[index]`` up to the next; a unit counts in its first ``most`` windows, if not None."""

    index: int
    most: int | None


@dataclass(frozen=True)
class Case:
    """``per_unit``: columns that all rows of a person share. ``secret``: of all draws."""

    shape: str
    tables: tuple
    secret: int
    window: WindowCase | None = None
    per_unit: tuple = ()

    @property
    def root(self):
        return self.tables[0]

    def __getitem__(self, name):
        return next(table for table in self.tables if table.name == name)

    def children(self, name):
        return [table for table in self.tables if table.parent == name]

    def is_inner(self, name):
        return self.shape == TREE and (name == self.root.name or bool(self.children(name)))


def code_of(attribute, value):
    """Labels or bins in turn, then every other value, then NULL. Values without a code have that of every other
    value, else that of NULL, else the first."""
    regular = len(attribute.labels) if attribute.kind == "categorical" else len(attribute.edges) - 1
    null = regular + attribute.other if attribute.nullable else 0
    other = regular if attribute.other else null
    if value is None or value != value:
        return null if attribute.nullable else other
    if attribute.kind == "categorical":
        return attribute.labels.index(value) if value in attribute.labels else other
    return bisect_right(attribute.edges[1:-1], value)


def key_of(values):
    """The bytes of a key: of several columns the length and the text of each; None names nothing."""
    if any(value is None for value in values):
        return None
    texts = [value.encode() for value in values]
    return texts[0] if len(texts) == 1 else b"".join(b"%d:" % len(text) + text for text in texts)


# -- random trees ------------------------------------------------------------------------------------

KEYS = ("ann", "Ann", "", "é", "1:")


def cases(shapes=SHAPES):
    """Small trees of these shapes: empty tables, repeated keys, NULLs, rows of nobody, exact copies."""
    return st.builds(random_case, st.randoms(use_true_random=False), st.sampled_from(shapes))


def dense(shape, seed=7):
    """A tree of full families, the same each time."""
    return random_case(random.Random(f"{shape} {seed}"), shape, rows=22, tables=4, most=3)


def random_case(dice, shape, rows=7, tables=0, most=0):
    """``tables`` and ``most``: how many tables, and rows of a parent; 0: random."""
    secret = dice.randrange(2**64)
    if shape == TREE:
        return Case(shape, _tree(dice, rows, tables or 1 + dice.randrange(4), most), secret)
    window = None
    if dice.randrange(2):
        window = WindowCase(
            dice.randrange(len(EDGES) - 1), dice.choice([None, 1, *([] if shape == SINGLE else [2])])
        )
    ordered = shape == PERSONS and bool(most or dice.randrange(2))
    attributes = _attributes(dice, ordered=ordered)
    people = [(key,) for key in (*KEYS[:3], None)]
    table = TableCase(
        "visits",
        attributes,
        _rows(dice, attributes, 2 * rows, [()], [()] if shape == SINGLE else people),
        most=most + 1 if most else 1 + dice.randrange(4),
        owner_columns=int(shape != SINGLE),
        order="day" if ordered else "",
        classed=shape == PERSONS and bool(most or dice.randrange(2)),
    )
    shared = [one.name for one in attributes[1:] if one.name != "day"]
    per_unit = tuple(shared[: dice.randrange(len(shared) + 1)]) if shape == PERSONS else ()
    return Case(shape, (replace(table, attributes=attributes),), secret, window, per_unit)


def _tree(dice, rows, number, most):
    parents = [None, *(dice.randrange(place) for place in range(1, number))]
    if most:  # a chain of three tables, and a second child of the root
        parents = [None, 0, 1, 0]
    names, widths, keys, drawn = [f"t{place}" for place in range(number)], {}, {}, []
    for place, parent in enumerate(parents):
        inner = place in parents or parent is None
        pool = 4 if not most else 6 if place else 2  # few units of many rows are full, at every level
        widths[place] = 1 + dice.randrange(2) if inner else 0
        texts = KEYS if not most else (*KEYS, *"abcdefgh")
        keys[place] = [tuple(dice.choice(texts) for _ in range(widths[place])) for _ in range(pool)]
        nulls = [(None, *key[1:]) for key in keys[place][:1]] if inner else []
        owners = [()]
        if parent is not None:
            width = widths[parent]
            owners = [*keys[parent], ("nobody",) * width, (*("ann",) * (width - 1), None)]
        ordered = parent is not None and bool(most or dice.randrange(2))
        attributes = _attributes(dice, ordered=ordered)
        drawn.append(
            TableCase(
                names[place],
                attributes,
                _rows(dice, attributes, rows, [*keys[place], *nulls] if inner else [()], owners),
                None if parent is None else names[parent],
                1 if parent is None else most or 1 + dice.randrange(3),
                widths[place],
                0 if parent is None else widths[parent],
                "day" if ordered else "",
                classed=parent is not None and bool(most or dice.randrange(2)),
            )
        )
    return tuple(drawn)


def _attributes(dice, *, ordered):
    columns = [attribute for attribute, _ in dice.sample(COLUMNS, 1 + dice.randrange(2))]
    number = Attribute("number", "BIGINT", "categorical", labels=tuple(range(64)))
    return (number, *columns, *([DAY] if ordered else []))


def _rows(dice, attributes, most, keys, owners):
    """Up to ``most`` rows, of which some are there twice."""
    values = {attribute.name: values for attribute, values in COLUMNS} | {"day": DAYS}
    rows, days = [], [None, *(date(2013, month, day) for month in (1, 2, 3, 4) for day in (1, 28))]
    for number in range(dice.randrange(most + 1) if most < 22 else most):
        own = [dice.choice(values[attribute.name]) for attribute in attributes[1:]]
        row = Row(dice.choice(keys), dice.choice(owners), (number, *own), dice.choice(days))
        rows += [row] * (2 if dice.randrange(8) == 7 else 1)
    return tuple(rows)


# -- units -------------------------------------------------------------------------------------------


def units(case):
    """All units, in order: keys of the root, persons, or numbers of rows."""
    if case.shape == SINGLE:
        return sorted({row.number for row in case.root.rows})
    named = (row.key if case.shape == TREE else row.owner for row in case.root.rows)
    return sorted({key_of(name) for name in named} - {None})


def without(case, unit):
    """The neighbour that lacks a unit and all rows that belong to it alone; rows of nobody stay."""
    if case.shape == SINGLE:
        rows = list(case.root.rows)
        rows.remove(case.root.by_number[unit])
        return replace(case, tables=(replace(case.root, rows=tuple(rows)),))
    owners = [{key_of(row.key if case.shape == TREE else row.owner)} for row in case.root.rows]
    belonging = {case.root.name: owners}
    for table in case.tables[1:]:
        above = defaultdict(set)
        for row, whose in zip(case[table.parent].rows, belonging[table.parent], strict=True):
            above[key_of(row.key)] |= whose
        above.pop(None, None)
        belonging[table.name] = [above.get(key_of(row.owner), set()) - {None} for row in table.rows]
    tables = (
        replace(
            table,
            rows=tuple(
                row for row, whose in zip(table.rows, belonging[table.name], strict=True) if whose != {unit}
            ),
        )
        for table in case.tables
    )
    return replace(case, tables=tuple(tables))


def shuffled(case, seed):
    """The same tables with their rows in another order."""
    dice = random.Random(seed)
    tables = (replace(table, rows=tuple(dice.sample(table.rows, len(table.rows)))) for table in case.tables)
    return replace(case, tables=tuple(tables))


def nameless(case):
    """The same tables, but the number of every row is 0: other columns and keys alone tell rows apart."""
    tables = (
        replace(table, rows=tuple(replace(row, values=(0, *row.values[1:])) for row in table.rows))
        for table in case.tables
    )
    return replace(case, tables=tuple(tables))


def recoded(case):
    """The same tables, but rows that have rows below them have the values of one another; keys stay."""
    tables = []
    for table in case.tables:
        if case.is_inner(table.name):
            values = [row.values for row in table.by_number.values()]
            others = dict(zip(table.by_number, [*values[1:], *values[:1]], strict=True))
            table = replace(table, rows=tuple(replace(row, values=others[row.number]) for row in table.rows))
        tables.append(table)
    return replace(case, tables=tuple(tables))


def alike(case):
    """The same tables without a window, but in those without rows below every parent, or person, has the same
    rows, of which few are kept."""
    tables = []
    for table in case.tables:
        owners = dict.fromkeys(row.owner for row in table.rows)
        if not case.is_inner(table.name):
            same = tuple(replace(row, owner=owner) for owner in owners for row in table.rows[:8])
            table = replace(table, rows=same, most=min(2, table.most))
        tables.append(table)
    return replace(case, tables=tuple(tables), window=None)


# -- kept rows ---------------------------------------------------------------------------------------


@dataclass(eq=False)
class KeptRow:
    """A row that was chosen. ``siblings``: rows of its family, itself included; None where nothing says it."""

    table: str
    number: int
    weight: int
    siblings: int | None
    parent: "KeptRow | None" = None
    below: dict = field(default_factory=lambda: defaultdict(list), repr=False)

    @property
    def path(self):
        """Names it, its weights included, by what does not depend on other units."""
        return (*(self.parent.path if self.parent else ()), (self.number, self.weight, self.siblings))


@dataclass(frozen=True)
class Family:
    """The rows among which some are chosen: numbers of candidates, the chosen rows, how many these may be, and
    what they weigh together (None: each weighs 1)."""

    candidates: Counter
    rows: list
    most: int
    weight: int | None


class Forest:
    """The kept rows of a case, by table, against its source rows."""

    def __init__(self, case, rows):
        self.case, self.rows = case, rows
        for row in (row for table in rows.values() for row in table if row.parent):
            row.parent.below[row.table].append(row)

    def unit(self, row):
        while row.parent is not None:
            row = row.parent
        source = self.case[row.table].by_number[row.number]
        if self.case.shape == SINGLE:
            return source.number
        return key_of(source.key if self.case.shape == TREE else source.owner)

    def keys(self, row):
        """The key of a row of an inner table, after those of the rows above it."""
        return (*(self.keys(row.parent) if row.parent else ()), self.key(row))

    def relatives(self, row):
        """The kept rows of a row's family."""
        if row.parent is not None:
            return row.parent.below[row.table]
        if self.case.shape in (SINGLE, TREE):
            return [row]
        return self._by_unit[self.unit(row)]

    @cached_property
    def _by_unit(self):
        sorted_rows = defaultdict(list)
        for row in self.rows[self.case.root.name]:
            sorted_rows[self.unit(row)].append(row)
        return sorted_rows

    def families(self, table):
        """Every family of a table, those without rows too."""
        if self.case.shape == SINGLE:
            numbers = Counter(row.number for row in self.windowed())
            yield Family(numbers, self.rows[table.name], numbers.total(), None)
        elif table.parent is not None:
            yield from self._below(table)
        elif self.case.shape == TREE:
            for key, numbers in self._sources(table, "key").items():
                least = min(numbers, key=table.codes)
                yield Family(Counter([least]), self._by_unit.get(key, []), 1, WEIGHT)
        else:
            weight = WEIGHT if self.case.shape == PERSONS else None
            by_person = self._sources(table, "owner")
            for person in by_person | self._by_unit:
                numbers = by_person.get(person, Counter())
                yield Family(numbers, self._by_unit.get(person, []), table.most, weight)

    def _sources(self, table, name):
        """Numbers of the source rows by one of their keys; rows without it are nobody's."""
        by_key = defaultdict(Counter)
        for row in self.windowed() if table is self.case.root else table.rows:
            if key_of(getattr(row, name)) is not None:
                by_key[key_of(getattr(row, name))][row.number] += 1
        return by_key

    def windowed(self):
        """The rows of the root in the window."""
        window, rows = self.case.window, self.case.root.rows
        if window is None:
            return rows
        edges = [date.fromisoformat(edge) for edge in EDGES]
        numbers = {row: bisect_right(edges, row.at) - 1 for row in rows if row.at is not None}
        met = defaultdict(set)
        for row, number in numbers.items():
            if 0 <= number < len(edges) - 1:
                met[key_of(row.owner)].add(number)
        inside = [row for row in rows if numbers.get(row) == window.index]
        if window.most is None or self.case.shape == SINGLE:
            return inside
        return [row for row in inside if window.index in sorted(met[key_of(row.owner)])[: window.most]]

    def _below(self, table):
        """The families of one table: the rows of each row of the parent."""
        sources, candidates = self._sources(table, "owner"), {}
        parents = self.rows[table.parent]
        for parent in parents:
            key = self.key(parent)
            candidates[parent] = Counter(sources.get(key, Counter())) if key is not None else Counter()
        if self.case.is_inner(table.name):
            self._one_of_each_key(table, candidates)
        for parent in parents:
            yield Family(candidates[parent], parent.below[table.name], table.most, parent.weight)

    def key(self, row):
        return key_of(self.case[row.table].by_number[row.number].key)

    def _one_of_each_key(self, table, candidates):
        """Of the rows of a unit with one key only the one with the least key of the parent, then codes, stays."""
        by_key = defaultdict(list)
        for parent, numbers in candidates.items():
            for number in numbers:
                key = key_of(table.by_number[number].key)
                if key is not None:
                    by_key[self.unit(parent), key].append((self.key(parent), table.codes(number), parent))
        stays = {
            (parent, codes[0])
            for rows in by_key.values()
            for _, codes, parent in [min(rows, key=lambda row: row[:2])]
        }
        for parent, numbers in candidates.items():
            candidates[parent] = Counter(number for number in numbers if (parent, number) in stays)

    # -- attributes of a kept row ----------------------------------------------------------------------

    def code(self, row, meaning):
        """The code of an attribute, by what it means (``Meaning``)."""
        table, relatives = self.case[row.table], self.relatives(row)
        match meaning.what:
            case "column":
                return table.codes(row.number)[meaning.column]
            case "number":
                return code_of(meaning.attribute, len(row.below[meaning.table]))
            case "rows of the unit":
                return code_of(meaning.attribute, len(relatives))
            case "above":
                while row.table != meaning.table:
                    row = row.parent
                return self.code(row, meaning.of)
            case "most frequent":
                codes = Counter(table.codes(other.number)[meaning.column] for other in relatives)
                return min(codes, key=lambda code: (-codes[code], code))
            case "differ":
                several = [
                    len({table.codes(other.number)[column] for other in relatives}) > 1
                    for column in meaning.columns
                ]
                return (
                    len(several) + 1 if sum(several) > 1 else (several.index(True) + 1 if any(several) else 0)
                )
        return self._after(row, meaning, sorted(relatives, key=lambda other: table.in_order(other.number)))

    def _after(self, row, meaning, series):
        """What follows from the row before. Copies of a row are equal, and any of them may be this one."""
        table, rank = self.case[row.table], series.index(row)
        if meaning.what == "rank":
            return 0 if len(series) == 1 else 1 if rank == 0 else 3 if rank == len(series) - 1 else 2
        if rank == 0:
            return code_of(meaning.attribute, None)
        before = series[rank - 1]
        if meaning.what == "before":
            return table.codes(before.number)[meaning.column]
        passed, now = None, table.moment(row.number)
        if now != LAST:
            passed = now - table.moment(before.number)
        return code_of(meaning.attribute, passed)

    def counts(self, question, meanings):
        """The weights of the rows, or of ordered pairs of rows of one family, by codes: int64 of full shape.

        ``meanings``: of the attributes of the question.
        """
        table = np.zeros([meaning.attribute.size for meaning in meanings], np.int64)
        if question.kind == "rows":
            for row in self.rows[question.table]:
                table[tuple(self.code(row, meaning) for meaning in meanings)] += row.weight
            return table
        families = {id(rows): rows for rows in map(self.relatives, self.rows[question.table])}
        for pair in (pair for rows in families.values() for pair in permutations(rows, 2)):
            cell = tuple(self.code(row, meaning) for row, meaning in zip(pair, meanings, strict=True))
            table[cell] += pair[0].weight // (len(self.relatives(pair[0])) - 1)
        return table


@dataclass(frozen=True)
class Meaning:
    """What an attribute of a kept row is. ``what``: a "column" of the table; the "number" of rows in a child
    ``table``; a "class" of these; what stands "above", the meaning ``of`` a row of ``table``; a column of the
    row "before"; the time "since" it; the "rank" in the family; and of the rows of a person their number
    ("rows of the unit"), the "most frequent" code of a column, and which ``columns`` "differ"."""

    what: str
    attribute: Attribute
    column: int = 0
    table: str = ""
    of: "Meaning | None" = None
    columns: tuple = ()

    @property
    def drawn(self):
        """Whether a secret hash decides on it."""
        return self.what == "class" or (self.of is not None and self.of.drawn)


@dataclass(frozen=True)
class Question:
    """Counts of the "rows" of a table, or of "pairs" of rows of one family (two attributes)."""

    table: str
    kind: str
    names: tuple
