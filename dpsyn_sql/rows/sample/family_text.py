"""The query that draws units and their rows, as text.

A row of place p in its unit has the number unit * stride + p, p from 1 on: random bits come from it, as for
rows that are each by themselves. Rows are independent given their unit, or given the row before it, which a
recursive query draws place by place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from dpsyn_sql.domain.attributes import Attribute, edge_ticks
from dpsyn_sql.fit.arrays import IntArray
from dpsyn_sql.planning.families import PLACES, UNIT, Families
from dpsyn_sql.rows.sample.sql_text import CHUNK_BITS, Script, Step, Tables
from dpsyn_sql.sqltext.dialect import DUCKDB
from dpsyn_sql.sqltext.fragments import Fragment, string_literal
from dpsyn_sql.sqltext.render import render

_CARRIED = tuple(map(Fragment, ("n", "code", "highest", "tick")))
_ROW = 'CAST("row" AS UBIGINT)'


@dataclass(frozen=True)
class FamilyScript(Script):
    """A network with levels over the domain of ``families``, and a seed."""

    families: Families

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

    def query(self, units: Fragment, tables: Tables, *, low_variance: bool, fresh: Fragment) -> Fragment:
        """One query for the rows of all units, numbered as above: columns row, a0, a1, ..., and t if rows are
        ordered. ``fresh``: the tick of a first row from its ``code`` and ``row``."""
        families = self.families
        persons = self._persons(units, tables, low_variance=low_variance)
        shared: dict[str, Any] = {
            "persons": persons,
            "words": self.words,
            "stride": self.stride,
            "number": self._number(),
        }
        if not (families.order or families.previous or families.place or families.since):
            steps = self._rows(tables)
            return render(
                "sample/iid",
                started=render("sample/family_rows", **shared),
                steps=steps,
                codes=self._written,
                last=steps[-1].name if steps else Fragment("started"),
            )
        steps = [
            replace(step, words=(*step.words, *_CARRIED), lists=Fragment(f"lists{number}"))
            for number, step in enumerate(self._rows(tables))
        ]
        drawn = render(
            "sample/iid",
            started=self._next(),
            steps=steps,
            codes=[*self.words, *_CARRIED],
            last=steps[-1].name if steps else Fragment("started"),
        )
        lists = [(step.lists, own.lists) for step, own in zip(steps, self._rows(tables), strict=True)]
        return render(
            "sample/walk",
            **shared,
            lists=lists,
            drawn=self._raised(drawn),
            kept=self._kept(fresh),
            codes=self._walked,
        )

    def _persons(self, units: Fragment, tables: Tables, *, low_variance: bool) -> Fragment:
        """The units: columns row, w0, w1, ..."""
        numbers = (
            Fragment(f"range(0, {units})") if low_variance else render("sample/numbers", first=0, rows=units)
        )
        nodes = zip(self.network.nodes, self.network.levels, strict=True)
        steps = [self.step(place, node, tables) for place, (node, level) in enumerate(nodes) if level == UNIT]
        shared: dict[str, Any] = {
            "started": render("sample/start", numbers=numbers, words=self.words),
            "steps": steps,
            "codes": self.words,
            "last": steps[-1].name if steps else Fragment("started"),
        }
        if low_variance:
            return render("sample/low_variance", chunk_bits=CHUNK_BITS, **shared)
        return render("sample/iid", **shared)

    def _rows(self, tables: Tables) -> list[Step]:
        first = sum(level == UNIT for level in self.network.levels)
        return [
            self.step(first + place, node, tables, first)
            for place, node in enumerate(self.network.nodes[first:])
        ]

    def _number(self) -> Fragment:
        """How many rows a unit has: even within its bin."""
        edges, code = edge_ticks(self._attribute(self.families.size)), self._code(self.families.size)
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
        return self.codes[: self.families.written]

    @property
    def _walked(self) -> list[Fragment]:
        """The codes of a walk, the ordering attribute's raised to those before it; and its value."""
        codes = self._written
        if not self.families.order:
            return codes
        place = self._index(self.families.order)
        kind = DUCKDB.code_type(self._attribute(self.families.order).size)
        codes[place] = Fragment(f"CAST(code AS {kind}) AS a{place}")
        return [*codes, Fragment("tick AS t")]

    def _next(self) -> Fragment:
        """Rows before they are drawn: numbers, the words of their unit, and what is known before."""
        masks = [0] * len(self.words)
        for node, level in zip(self.network.nodes, self.network.levels, strict=True):
            for place in (self.places[v] for v in node.variables if level == UNIT):
                if place is not None:
                    masks[place.word] |= 2**place.bits - 1 << place.shift
        terms = [[f"w{word} & CAST('{mask}' AS UBIGINT)"] for word, mask in enumerate(masks)]
        for variable, code in self._known():
            place, bins = self.places[variable], self.network.evidence[variable]
            if place is not None:
                value = self._listed(bins, code)
                terms[place.word].append(f"(CAST({value} AS UBIGINT) << {place.shift})")
        words = [
            f"    {' | '.join(f'({term})' for term in own)} AS w{word}" for word, own in enumerate(terms)
        ]
        columns = ",\n".join([*words, *(f"    {name}" for name in _CARRIED)])
        return Fragment(
            f'SELECT\n{columns},\n    CAST("row" + 1 AS UBIGINT) AS "row"\nFROM walk\n'
            f'WHERE "row" % {self.stride} < n'
        )

    def _known(self) -> list[tuple[int, str]]:
        """Evidence variables and the codes that are known of them, from the row before at its place."""
        families, place = self.families, f'("row" % {self.stride})'
        found = list[tuple[int, str]]()
        for name, attribute in families.previous:
            own = "code" if attribute == families.order else self._code(attribute)
            none = self._attribute(name).size - 1
            found.append((self._index(name), f"CASE WHEN {place} = 0 THEN {none} ELSE {own} END"))
        if families.place:
            only, first, middle, last = range(len(PLACES))
            code = (
                f"CASE WHEN n = 1 THEN {only} WHEN {place} = 0 THEN {first} WHEN {place} = n - 1 THEN {last} "
                f"ELSE {middle} END"
            )
            found.append((self._index(families.place), code))
        return [(variable, f"({code})") for variable, code in found]

    def _raised(self, drawn: Fragment) -> Fragment:
        """Drawn rows with the code of the ordering attribute, raised to the highest before it, as ``own``."""
        if not self.families.order:
            return drawn
        order = self._attribute(self.families.order)
        code = self._code(order.name)
        if (recoding := order.recoding) is not None:  # NULL, where it is but noise
            drawn_one = f"(({self._bits(order.name, 'instead')} >> 32) * {len(recoding.instead)}) >> 32"
            instead = self._listed(recoding.instead, f"CAST({drawn_one} AS BIGINT)")
            code = (
                f"CASE WHEN {code} IN ({', '.join(map(str, recoding.codes))}) THEN {instead} ELSE {code} END"
            )
        own = f"CASE WHEN {code} < {order.regular} THEN greatest({code}, highest) ELSE {code} END AS own"
        return Fragment(f"SELECT\n    *,\n    {own}\nFROM (\n{drawn}\n)")

    def _kept(self, fresh: Fragment) -> list[Fragment]:
        """The columns code, highest and tick after a row is drawn."""
        if not self.families.order:
            return [*_CARRIED[1:]]
        regular = self._attribute(self.families.order).regular
        return [
            Fragment("own AS code"),
            Fragment(f"CASE WHEN own < {regular} THEN own ELSE highest END AS highest"),
            Fragment(
                f"CAST(CASE WHEN own >= {regular} THEN tick WHEN highest < 0 THEN {fresh} "
                f"ELSE {self._later(fresh)} END AS BIGINT) AS tick"
            ),
        ]

    def _later(self, fresh: Fragment) -> str:
        """The tick of a row after another, as of ``sample.ticks``."""
        order, since = self._attribute(self.families.order), self.families.since
        edges = edge_ticks(order)
        start, high = self._listed(edges[:-1], "own"), self._listed(edges[1:], "own")
        bits = self._bits(order.name, "tick")
        step = order.granularity if isinstance(order.granularity, int) else 1
        left = self._between("tick", high, step, bits)
        rest = f"CASE WHEN highest < own THEN {fresh} ELSE coalesce({left}, tick) END"
        if not since:
            return rest
        spans, code = edge_ticks(self._attribute(since)), self._code(since)
        least = f"greatest({start}, tick + {self._listed(spans[:-1], code)})"
        most = f"least({high}, tick + {self._listed(spans[1:], code)})"
        inside = self._between(least, most, step, bits)
        return f"CASE WHEN {code} < {len(spans) - 1} THEN coalesce({inside}, {rest}) ELSE {rest} END"

    @staticmethod
    def _between(low: str, high: str, step: int, bits: str) -> str:
        """A multiple of ``step`` from ``low`` on and below ``high``; NULL if there is none."""
        first, count = f"({low})", f"(({high}) - ({low}))"
        if step > 1:
            first = f"({low} + ((-({low})) % {step} + {step}) % {step})"
            count = f"(({high} - {first} + {step - 1}) // {step})"
        drawn = f"CAST((CAST({bits} AS UHUGEINT) * CAST(greatest({count}, 0) AS UHUGEINT)) >> 64 AS BIGINT)"
        return f"CASE WHEN {count} > 0 THEN {first} + {drawn} * {step} END"
