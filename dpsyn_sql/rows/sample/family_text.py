"""Rows of families as SQL text, and the sampler in SQL."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from dpsyn_sql.attributes.attribute import Attribute, edge_ticks
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import IntArray
from dpsyn_sql.fit.model import Model, families_in
from dpsyn_sql.fit.network import Network
from dpsyn_sql.planning.families import MOMENT, PLACES, ROW, UNIT, Families
from dpsyn_sql.planning.limits import NO_DEADLINE, Deadline
from dpsyn_sql.rows.sample.batches import BATCH_ROWS
from dpsyn_sql.rows.sample.moments import Ticks, supports
from dpsyn_sql.rows.sample.sql_text import (
    MOST_NODES,
    WORD,
    Place,
    Script,
    Step,
    Tables,
    independent,
    last_of,
    share_table,
)
from dpsyn_sql.rows.sample.sql_text import low_variance as low_variance_query
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.sqltext.fragments import Fragment, string_literal, temporary_table
from dpsyn_sql.sqltext.render import render

# -- the sampler -------------------------------------------------------------------------------------

# Independent rows of a network, drawn by SQL inside the database into a staged table of codes.
#
# For numbers of rows whose sampling error is small anyway: nothing passes through Python, and every row is
# drawn by itself. The rows depend on the seed and their numbers only, not on the number of threads, the
# machine or the version of DuckDB. Memory is bounded by the size of a chunk.
#
# ``independent_rows`` says who draws the rows of a model: its own sampler, or SQL.

CHUNK_ROWS = 2**22
"""Rows of one statement: they are put in order in memory, and progress is told in between."""

_STEP = "sampling rows"
_LOADING = "loading the model"
_TIDYING = "tidying up after sampling"

_DISTRIBUTIONS = [Fragment(f"{name} NOT NULL") for name in ("node INTEGER", "parent BIGINT", "value BIGINT")]
_DISTRIBUTIONS.append(Fragment("weight UINTEGER NOT NULL"))
# As dpsyn.shares without the release.

_SLOTS = [Fragment(f"{name} NOT NULL") for name in ("node INTEGER", "position BIGINT", "threshold BIGINT")]
_SLOTS += [Fragment("value BIGINT"), Fragment("alias BIGINT")]


@contextlib.contextmanager
def alias_lists(engine: Engine, network: Network) -> Iterator[Fragment]:
    """A temporary table of one row, the alias tables of all nodes as lists; made once for all statements."""
    slots, lists = temporary_table("dpsyn_slots"), temporary_table("dpsyn_lists")
    try:
        load_slots(engine, network, slots)
        steps = Script(network, Fragment("0")).steps(Tables(slots, slots=slots))
        engine.execute(render("sample/list_table", table=lists, steps=steps), step=_LOADING)
    finally:
        engine.execute(render("sample/drop", table=slots), step=_TIDYING)
    try:
        yield lists
    finally:
        engine.execute(render("sample/drop", table=lists), step=_TIDYING)


def append_network(
    engine: Engine,
    network: Network,
    lists: Fragment,
    rows: int,
    seed: int,
    table: Fragment,
    *,
    first: int = 0,
    advance: Callable[[int], None] = lambda rows: None,
) -> int:
    """Draw independent rows of a network into a staged table (``write.staging``), in their order.

    Args:
        engine: the session that writes; it cannot reach the source.
        network: what is drawn from.
        lists: its alias tables (``alias_lists``).
        rows: how many; none if not positive.
        seed: 0 to 2^64 - 1; public. Another one than that of rows before.
        table: quoted name of the table, with the columns row, a0, a1, ...
        first: number of the first row.
        advance: is told the number of rows after each chunk.

    Returns:
        The number of rows staged.

    Raises:
        EngineFailure: the database failed.
        InternalError: a row was lost, which would mean a fault of ours.
    """
    if rows <= 0:
        return 0
    script = Script(network, Fragment(str(seed)))
    for start in range(first, first + rows, CHUNK_ROWS):
        count = min(first + rows - start, CHUNK_ROWS)
        query = script.iid(Fragment(str(count)), Tables(lists, lists=lists), start, ordered=1)
        engine.execute(render("sample/insert", staged=table, query=query), step=_STEP)
        advance(count)
    _check(engine, table, len(network.codes), first, rows)
    return rows


def load_slots(engine: Engine, network: Network, table: Fragment) -> None:
    """Make a temporary table of the slots of all nodes of a network, once for all chunks."""
    model = temporary_table("dpsyn_model")
    try:
        load_distributions(engine, network, model)
        engine.execute(render("sample/room", table=table, columns=_SLOTS), step=_LOADING)
        for query in Script(network, Fragment("0")).slots(Tables(model)):
            engine.execute(render("sample/insert", staged=table, query=query), step=_LOADING)
    finally:
        engine.execute(render("sample/drop", table=model), step=_TIDYING)


def load_distributions(engine: Engine, network: Network, table: Fragment) -> None:
    """Make a temporary table of the distributions of a network."""
    engine.execute(render("sample/room", table=table, columns=_DISTRIBUTIONS), step=_STEP)
    columns = share_table(network)
    if columns:
        engine.load(table, columns, step=_LOADING)


def check_statement(table: Fragment, attributes: int, first: int | Fragment) -> Fragment:
    """The query that counts rows (``found``) and those with every code (``complete``), from a number on."""
    columns = [Fragment(f"a{position}") for position in range(attributes)]
    return render("sample/check", table=table, first=first, columns=columns)


def _check(engine: Engine, table: Fragment, attributes: int, first: int, rows: int) -> None:
    """Every row came through every step, and has every code."""
    counted = engine.fetch(check_statement(table, attributes, first), step=_STEP)
    if (int(counted["complete"][0]), int(counted["found"][0])) != (rows, rows):
        raise InternalError("sampling in the database lost rows or codes")


MOST_LOW_VARIANCE_ROWS = 20_000_000
"""Up to this number rows are drawn with low variance. Above it the gain is small and the time is long."""

INDEPENDENTLY = "independently"
"""How SQL draws rows, in the words of certificates; ``Sampler.drawn`` has the words for other rows."""

_LOW_VARIANCE_PER_SECOND = 1e7
# Values, on two cores.


def independent_rows(model: Model, rows: int, deadline: Deadline = NO_DEADLINE) -> Network | None:
    """The network from which SQL draws so many rows, each independently. None if the sampler of the model
    draws them: few rows, a model that is not a network, one of too many variables, one whose counts are to be
    met (``exact``), or one of units."""
    seconds = rows * len(model.domain.attributes) / _LOW_VARIANCE_PER_SECOND
    # One batch takes no longer than to plan a query.
    if (
        rows <= BATCH_ROWS
        or getattr(model, "exact", False)
        or families_in(model) is not None
        or (rows <= MOST_LOW_VARIANCE_ROWS and seconds <= deadline.left)
    ):
        return None
    network = model.network()
    if network is None or len(network.nodes) > MOST_NODES:
        return None
    deadline.forbids(seconds, "rows were drawn independently")
    return network


# -- families ----------------------------------------------------------------------------------------

# The query that draws rows below others, as text: below persons, which the same network draws first, or below
# the rows of the table above. These are those of the same seed, so the tables of one seed fit together.
#
# Random bits come from the number parent * stride + p of the p-th row of a family, p from 1 on, and from the
# name of the table. Rows are independent given the row above. Or they are walks: moments are independent
# given the row above, and sorted, then a recursive query draws rows place by place. In the end rows are
# numbered from 0 on without holes, in the order of their parents.

_TICK = Fragment("tick")
_BESIDE = (_TICK, Fragment("in_bin"))
# Beside the words while rows are drawn: the tick of the row before; how many rows of the unit are in the bin,
# this one and later ones.
_ROW = 'CAST("row" AS UBIGINT)'


@dataclass(frozen=True, slots=True)
class Passed:
    """A whole number, of at most so many ``bits``, of the rows above that the query gives too: from column
    ``source`` of the rows of the parent, as ``column``."""

    source: str
    column: str
    bits: int = WORD


@dataclass(frozen=True)
class FamilyScript(Script):
    """A network with levels over the domain of ``families``, and a seed.

    ``above``: by the name of an attribute above, the column of the parent's rows with its code: of all that
    are evidence, and of the number of rows of a family. None of rows of persons, which are drawn. ``passed``:
    what tables below need of the rows above.
    """

    families: Families
    above: Mapping[str, str] | None = None
    passed: tuple[Passed, ...] = ()

    @cached_property
    def _places_passed(self) -> list[Place]:
        """Where what is passed is, in words of its own."""
        places, word, shift = list[Place](), len(super().words), 0
        for number in self.passed:
            if shift + number.bits > WORD:
                word, shift = word + 1, 0
            places.append(Place(word, shift, number.bits))
            shift += number.bits
        return places

    @property
    def words(self) -> list[Fragment]:
        """Names of the packed words; the last one is how many rows stand before the family."""
        used = max((place.word for place in self._places_passed), default=len(super().words) - 1) + 1
        return [Fragment(f"w{word}") for word in range(used + 1)]

    @property
    def stride(self) -> int:
        """What the number of a unit is multiplied by in those of its rows."""
        return int(edge_ticks(self._attribute(self.families.size))[-1])

    def _index(self, name: str) -> int:
        return self.families.domain.index(name)

    def _attribute(self, name: str) -> Attribute:
        return self.families.domain.attributes[self._index(name)]

    def _code(self, name: str) -> str:
        return f"CAST({self.value(self.network.codes[self._index(name)])} AS BIGINT)"

    def persons(self, units: Fragment, tables: Tables, *, low_variance: bool) -> Fragment:
        """So many persons: columns row, w0, w1, ..."""
        nodes = zip(self.network.nodes, self.network.levels, strict=True)
        steps = [self.step(place, node, tables) for place, (node, level) in enumerate(nodes) if level == UNIT]
        drawn = low_variance_query if low_variance else independent
        return drawn(units, self.words, steps, self.words)

    def below(self, parents: Fragment, tables: Tables, fresh: Fragment) -> Fragment:
        """One query for the rows: columns row, parent, rank, a0, a1, ... of all that is drawn, those of
        ``passed``, and t if rows are ordered.

        Args:
            parents: query of ``persons``; or of the rows above: row, and the columns of ``above`` and
                ``passed``.
            tables: where the distributions are.
            fresh: the tick of a row from its own code, ``own``, and ``row``.
        """
        families, size = self.families, self.families.size
        code = self._code(size) if self.above is None else _whole(self.above[size])
        words = [Fragment(word) for word in self._words_above()]
        given = render("sample/given", parents=parents, number=self._number(code), words=words)
        drawn = self._rows(given, tables, fresh)
        codes = [f"a{place}" for place in range(families.drawn)] + [number.column for number in self.passed]
        names = [Fragment(name) for name in (*codes, *(["t"] if families.order else []))]
        return render("sample/numbered", drawn=drawn, stride=self.stride, codes=names)

    def _words_above(self) -> Iterator[str]:
        """The words of a family before its rows are drawn."""
        terms: list[list[str]] = [[word] if self.above is None else [] for word in self.words]
        for name, column in (self.above or {}).items():
            variable = self._index(name)
            place = self.places[variable] if variable in self.network.evidence else None
            if place is not None:
                terms[place.word].append(self._evidence(variable, place, _whole(column)))
        for number, place in zip(self.passed, self._places_passed, strict=True):
            terms[place.word].append(f"(CAST({number.source} AS UBIGINT) << {place.shift})")
        terms[-1] = ["CAST(sofar AS UBIGINT)"]
        for word, summands in enumerate(terms):
            yield f"{' | '.join(summands) or 'CAST(0 AS UBIGINT)'} AS w{word}"

    def _rows(self, given: Fragment, tables: Tables, fresh: Fragment) -> Fragment:
        """The rows of families: ``given`` has the columns row, n (rows of the family), w0, w1, ..."""
        families = self.families
        started = render("sample/family_rows", given=given, words=self.words, stride=self.stride)
        if not (families.order or families.previous or families.place or families.since):
            return self._independent(started, self._steps(tables, ROW), self._written)
        moments = self._independent(started, self._steps(tables, MOMENT), self.words)
        steps = [
            replace(step, words=(*step.words, *_BESIDE), lists=Fragment(f"lists{number}"))
            for number, step in enumerate(self._steps(tables, ROW))
        ]
        sources = self._steps(tables, ROW)
        return render(
            "sample/walk",
            words=self.words,
            stride=self.stride,
            lists=[(step.lists, source.lists) for step, source in zip(steps, sources, strict=True)],
            moments=self._in_order(moments),
            drawn=self._timed(self._independent(self._next(), steps, [*self.words, *_BESIDE])),
            tick=self._tick(fresh),
            codes=[*self._written, *([Fragment("tick AS t")] if families.order else [])],
        )

    @staticmethod
    def _independent(started: Fragment, steps: Sequence[Step], codes: Sequence[Fragment]) -> Fragment:
        beside = render("sample/beside", rows=started, steps=steps)
        last = last_of(steps)
        return render("sample/iid", started=beside, steps=steps, codes=codes, last=last, ordered=0)

    def _steps(self, tables: Tables, level: int) -> list[Step]:
        """The steps of the nodes of a level, by themselves in a query."""
        first = sum(below < level for below in self.network.levels)
        return [
            self.step(number, node, tables, first)
            for number, node in enumerate(self.network.nodes)
            if self.network.levels[number] == level
        ]

    def _number(self, code: str) -> Fragment:
        """How many rows a unit has, by the code of its size: even within its bin."""
        edges = edge_ticks(self._attribute(self.families.size))
        first = self._listed(edges[:-1], code)
        if edges[-1] - edges[0] == len(edges) - 1:
            return Fragment(first)
        width = self._listed([high - low for low, high in pairwise(edges)], code)
        bits = self._bits(self.families.size, "rows")
        return Fragment(f"({first} + CAST((({bits} >> 32) * CAST({width} AS UBIGINT)) >> 32 AS BIGINT))")

    def _bits(self, name: str, purpose: str) -> str:
        """64 random bits of a row."""
        return f"hash(xor({_ROW}, hash({string_literal(f'{name}|{purpose}|')} || {self.seed})))"

    @staticmethod
    def _listed(values: Sequence[int] | IntArray, code: str) -> str:
        return f"(CAST([{', '.join(str(int(value)) for value in values)}] AS BIGINT[]))[{code} + 1]"

    @property
    def _written(self) -> list[Fragment]:
        """Codes that are drawn, and what is passed."""
        passed = [
            Fragment(f"CAST((w{at.word} >> {at.shift}) & {2**at.bits - 1} AS BIGINT) AS {number.column}")
            for number, at in zip(self.passed, self._places_passed, strict=True)
        ]
        sofar = Fragment(f"CAST({self.words[-1]} AS BIGINT) AS sofar")
        return [*self.codes[: self.families.drawn], *passed, sofar]

    def _in_order(self, moments: Fragment) -> Fragment:
        """Rows with their moments, numbered in the order of the moments."""
        words, moment = self.words, "0"
        if self.families.order:
            order = self._attribute(self.families.order)
            variable = self.network.codes[self._index(order.name)]
            moment, place = self._code(order.name), self.places[variable]
            if place is not None and (recoding := order.recoding) is not None:  # NULL, where it is but noise
                drawn = f"(({self._bits(order.name, 'instead')} >> 32) * {len(recoding.instead)}) >> 32"
                instead = self._listed(recoding.instead, f"CAST({drawn} AS BIGINT)")
                lost = ", ".join(map(str, recoding.codes))
                moment = f"CASE WHEN {moment} IN ({lost}) THEN {instead} ELSE {moment} END"
                others = 2**64 - 1 - (2**place.bits - 1 << place.shift)
                words[place.word] = Fragment(
                    f"(w{place.word} & CAST('{others}' AS UBIGINT)) | (CAST(own AS UBIGINT) << {place.shift})"
                )
        columns = [Fragment(f"{word} AS m{number}") for number, word in enumerate(words)]
        return render(
            "sample/moments", drawn=moments, own=Fragment(moment), columns=columns, stride=self.stride
        )

    def _next(self) -> Fragment:
        """Rows before they are drawn: numbers, the words of their unit and moment, what is known before."""
        terms = [[f"m{word}"] for word in range(len(self.words))]
        for variable, code in self._known():
            place = self.places[variable]
            if place is not None:
                terms[place.word].append(self._evidence(variable, place, code))
        words = [f"    {' | '.join(summands)} AS w{word}" for word, summands in enumerate(terms)]
        columns = ",\n".join([*words, *(f"    {column}" for column in _BESIDE)])
        return Fragment(
            f'SELECT\n{columns},\n    CAST(number AS UBIGINT) AS "row"\nFROM walk\n'
            'INNER JOIN moments\n    ON number = "row" + 1'
        )

    def _evidence(self, variable: int, place: Place, code: str) -> str:
        """What a code that is known puts into a word."""
        value = self._listed(self.network.evidence[variable], code)
        return f"(CAST({value} AS UBIGINT) << {place.shift})"

    def _known(self) -> list[tuple[int, str]]:
        """Evidence variables and the codes that are known of them, from the row before at its place."""
        families, place = self.families, f'("row" % {self.stride})'
        codes = list[tuple[int, str]]()
        for name, attribute in families.previous:
            none = self._attribute(name).size - 1
            code = f"CASE WHEN {place} = 0 THEN {none} ELSE {self._code(attribute)} END"
            codes.append((self._index(name), code))
        if families.place:
            only, first, middle, last = range(len(PLACES))
            code = (
                f"CASE WHEN n = 1 THEN {only} WHEN {place} = 0 THEN {first} WHEN {place} = n - 1 THEN {last} "
                f"ELSE {middle} END"
            )
            codes.append((self._index(families.place), code))
        return [(variable, f"({code})") for variable, code in codes]

    def _timed(self, drawn: Fragment) -> Fragment:
        """Drawn rows with the code of the ordering attribute as ``own``."""
        if not self.families.order:
            return drawn
        return Fragment(f"SELECT\n    *,\n    {self._code(self.families.order)} AS own\nFROM (\n{drawn}\n)")

    def _tick(self, fresh: Fragment) -> Fragment:
        """The tick of a row from that of the row before."""
        if not self.families.order:
            return _TICK
        regular = self._attribute(self.families.order).regular
        return Fragment(
            f"CAST(CASE WHEN own >= {regular} THEN tick ELSE {self._drawn_tick(fresh)} END AS BIGINT)"
        )

    def _drawn_tick(self, alone: Fragment) -> str:
        """The tick of a row, as of ``sample.moments``; ``alone``: that of a row with a bin for itself."""
        order, since = self._attribute(self.families.order), self.families.since
        bins = supports(order)
        start, high = (self._listed(ends, "own") for ends in zip(*bins, strict=True))
        first = f'"row" % {self.stride} = 1'
        bits, step = self._bits(order.name, "tick"), Ticks(order).step
        floor = f"(CASE WHEN {first} THEN {start} ELSE greatest({start}, tick) END)"
        lowest, number = self._multiples(floor, high, step)
        end = f"({lowest} + {step} * {_first_part(number)})"
        rest = self._between(floor, end, step, bits)
        drawn = (
            f"CASE WHEN ({first} OR tick < {start}) AND (in_bin = 1 OR {number} = 0) "
            f"THEN {alone} ELSE coalesce({rest}, {floor}) END"
        )
        if not since:
            return drawn
        spans, code = edge_ticks(self._attribute(since)), self._code(since)
        least = f"greatest({start}, tick + {self._listed(spans[:-1], code)})"
        most = f"least({end}, tick + {self._listed(spans[1:], code)})"
        inside = self._between(least, most, step, bits)
        unknown = f"{first} OR {code} >= {len(spans) - 1}"
        return f"CASE WHEN {unknown} THEN {drawn} ELSE coalesce({inside}, {drawn}) END"

    @staticmethod
    def _multiples(low: str, high: str, step: int) -> tuple[str, str]:
        """The first multiple of ``step`` from ``low`` on, and how many there are below ``high``."""
        first = f"({low})" if step == 1 else f"({low} + ((-({low})) % {step} + {step}) % {step})"
        return first, f"greatest((({high}) - {first} + {step - 1}) // {step}, 0)"

    @classmethod
    def _between(cls, low: str, high: str, step: int, bits: str) -> str:
        """A multiple of ``step`` from ``low`` on and below ``high``; NULL if there is none."""
        first, number = cls._multiples(low, high, step)
        drawn = f"CAST((CAST({bits} AS UHUGEINT) * CAST({number} AS UHUGEINT)) >> 64 AS BIGINT)"
        return f"CASE WHEN {number} > 0 THEN {first} + {drawn} * {step} END"


def _first_part(number: str) -> str:
    """``moments.first_part`` of so many places, for a row with ``in_bin`` rows left."""
    rest = f"({number}) % (in_bin + 1)"
    return f"(2 * (({number}) // (in_bin + 1)) + (2 * ({rest}) + in_bin) // (in_bin + 1))"


def seed_of(table: str, seed: Fragment) -> Fragment:
    """The seed of one table of a tree: rows of the same number in two tables share no random bits."""
    return seed if not table else Fragment(f"({string_literal(f'{table}|')} || {seed})")


def _whole(column: str) -> str:
    return f"CAST({column} AS BIGINT)"


def table_network(network: Network) -> Network:
    """A network without evidence that no node follows from."""
    used = {parent for node in network.nodes for parent in node.parents}
    return replace(network, evidence={v: bins for v, bins in network.evidence.items() if v in used})


def evidence_names(network: Network, families: Families) -> list[str]:
    """The attributes above that rows of a table follow from; the size of a family is one."""
    used = {parent for node in network.nodes for parent in node.parents} & set(network.evidence)
    names = [attribute.name for attribute in families.above]
    return [name for name in names if name == families.size or families.domain.index(name) in used]
