"""The query that draws the rows of a table of a tree, given those of the table above it, as text.

The rows of the parent are those of the same seed, so the tables of one seed fit together. Rows of a table are
numbered from 0 on without holes, in the order of their parents. Random bits come from the number of the
parent's row and the place in the family, and from the name of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from dpsyn_sql.fit.network import Network
from dpsyn_sql.planning.families import Families
from dpsyn_sql.rows.sample.family_text import FamilyScript
from dpsyn_sql.rows.sample.sql_text import WORD, Place, Tables
from dpsyn_sql.sqltext.fragments import Fragment, string_literal
from dpsyn_sql.sqltext.render import render


def seed_of(table: str, seed: Fragment) -> Fragment:
    """The seed of one table: rows of the same number in two tables share no random bits."""
    return Fragment(f"({string_literal(f'{table}|')} || {seed})")


@dataclass(frozen=True, slots=True)
class Passed:
    """A whole number, of at most so many ``bits``, of the rows above that the query gives too: from column
    ``source`` of the rows of the parent, as ``column``."""

    source: str
    column: str
    bits: int = WORD


@dataclass(frozen=True)
class TableScript(FamilyScript):
    """A network over the domain of ``families``, those of a table below another; as of ``table_network``.

    ``known``: by the name of an attribute above, the column of the parent's rows with its code: of all that
    are evidence, and of the size of a family. ``passed``: what tables below need of the rows above.
    """

    known: Mapping[str, str]
    passed: tuple[Passed, ...] = ()

    @cached_property
    def _kept(self) -> list[Place]:
        """Where what is passed is, in words of its own."""
        places, word, shift = list[Place](), len(super().words), 0
        for one in self.passed:
            if shift + one.bits > WORD:
                word, shift = word + 1, 0
            places.append(Place(word, shift, one.bits))
            shift += one.bits
        return places

    @property
    def words(self) -> list[Fragment]:
        """Names of the packed words; the last one is how many rows stand before the family."""
        used = max((place.word for place in self._kept), default=len(super().words) - 1) + 1
        return [Fragment(f"w{word}") for word in range(used + 1)]

    @property
    def _written(self) -> list[Fragment]:
        """Codes that are drawn, and what is passed."""
        passed = [
            Fragment(f"CAST((w{at.word} >> {at.shift}) & {2**at.bits - 1} AS BIGINT) AS {one.column}")
            for one, at in zip(self.passed, self._kept, strict=True)
        ]
        sofar = Fragment(f"CAST({self.words[-1]} AS BIGINT) AS sofar")
        return [*self.codes[: self.families.drawn], *passed, sofar]

    def below(self, parents: Fragment, tables: Tables, fresh: Fragment) -> Fragment:
        """One query for the rows of the table: columns row, parent, rank, a0, a1, ... of all that is drawn,
        those of ``passed``, and t if rows are ordered.

        Args:
            parents: query of the rows above: row, and the columns of ``known`` and ``passed``.
            tables: where the distributions are.
            fresh: as of ``query``.
        """
        families, words = self.families, [Fragment(word) for word in self._words()]
        number = self._number(_whole(self.known[families.size]))
        given = render("sample/given", parents=parents, number=number, words=words)
        drawn = self._rows(given, Fragment("n"), tables, fresh)
        codes = [f"a{place}" for place in range(families.drawn)] + [one.column for one in self.passed]
        names = [Fragment(name) for name in (*codes, *(["t"] if families.order else []))]
        return render("sample/numbered", drawn=drawn, stride=self.stride, codes=names)

    def _words(self) -> Iterator[str]:
        """The words of a family before its rows are drawn."""
        terms = [list[str]() for _ in self.words]
        for name, column in self.known.items():
            variable = self._index(name)
            place = self.places[variable] if variable in self.network.evidence else None
            if place is not None:
                terms[place.word].append(self._evidence(variable, place, _whole(column)))
        for one, place in zip(self.passed, self._kept, strict=True):
            terms[place.word].append(f"(CAST({one.source} AS UBIGINT) << {place.shift})")
        terms[-1] = ["CAST(sofar AS UBIGINT)"]
        for word, own in enumerate(terms):
            yield f"{' | '.join(own) or 'CAST(0 AS UBIGINT)'} AS w{word}"


def _whole(column: str) -> str:
    return f"CAST({column} AS BIGINT)"


def table_network(network: Network) -> Network:
    """A network without evidence that no node follows from."""
    used = {parent for node in network.nodes for parent in node.parents}
    return replace(network, evidence={v: bins for v, bins in network.evidence.items() if v in used})


def evidence_names(network: Network, families: Families) -> list[str]:
    """The attributes above that rows of a table follow from; the size of a family is one."""
    used = {parent for node in network.nodes for parent in node.parents} & set(network.evidence)
    names = [one.name for one in families.above]
    return [name for name in names if name == families.size or families.domain.index(name) in used]
