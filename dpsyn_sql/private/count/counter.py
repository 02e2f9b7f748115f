"""PRIVATE: exact counts of the source; nothing here may reach a method or a message.

Its user is ``measure``, which adds noise before anything leaves the door; ``front`` only hands it over.
Methods ask for the same marginals several times: distances in each round, then the chosen tables. The
counts of one source are the same each time, so they are made once and kept until the last question. That
releases nothing: the door adds fresh noise to every answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.common.progress import phase
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.families import Families
from dpsyn_sql.planning.queries import Map, MarginalQuery
from dpsyn_sql.planning.row_labels import NearestLabel, labelled
from dpsyn_sql.private.count.passes import (
    BinnedMarginals,
    Tables,
    counted,
    is_one_pass,
    repack,
    scans,
    sibling_tables,
)
from dpsyn_sql.private.count.planner import CountingPlan, counted_ahead, groups_for, plan_counting
from dpsyn_sql.private.count.sums import scatter
from dpsyn_sql.private.rows.kept import Bound, KeptRows
from dpsyn_sql.source.engine import Encoding, SourceEngine
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment, temporary_table

_STEM = "dpsyn_codes"

MAX_KEPT_CELLS = 3 * 2**24
"""Planned marginals are kept up to this number of cells: 400 MB."""


class SqlCounter:
    """Counts marginals by GROUP BY where the rows lie, or by reading their codes.

    Everything planned is counted at the first question and kept, further marginals when they are asked for.
    If no others can be asked for, the encoded table is dropped at once, else by ``close``. Plans of more than
    ``most`` cells are counted question by question and not kept: the public domain decides this, not the
    source. Where rows lie in parts, and one call asks all that can be asked, codes are made in passing: one
    pass over the rows.

    Args:
        engine: holds the rows of the source.
        relation_sql: the text after FROM.
        domain: the public domain.
        queries: the marginals that will be asked for; they decide how to count.
        decimal: the decimal mark of a source whose columns are text that is cast; empty: they have types.
        unit: with a column, at most ``unit.max_rows`` rows of one unit are counted, and no rows without
            a unit; the source is then always encoded. ``check_unit`` accepts the column.
        key: of the draw among a unit's rows, 0 to 2**64 - 1; fresh unless a test needs to know it.
        further: whether other marginals of attributes of ``queries`` may be asked for as well.
        most: the most cells to keep.
        families: rows of a unit stay together, and have weights; ``domain`` is that of the families.
        siblings: whether pairs of rows of one unit may be asked for.
        rows: the kept rows, of which those of ``table`` are counted; None: those of ``relation_sql`` alone.
            ``unit`` then has no say; single rows are still read from ``relation_sql``.
        table: its name.

    Raises:
        PlanTooLarge: more cells than the limit.
        InternalError: a ``key`` or ``families`` beside ``rows``.
    """

    def __init__(
        self,
        engine: SourceEngine,
        relation_sql: Fragment,
        domain: Domain,
        queries: Sequence[MarginalQuery],
        decimal: str = "",
        unit: PrivacyUnit = PrivacyUnit(),  # noqa: B008 - frozen
        key: int | None = None,
        further: bool = False,
        most: int = MAX_KEPT_CELLS,
        families: Families | None = None,
        siblings: bool = False,
        rows: KeptRows | None = None,
        table: str = "",
    ) -> None:
        self._engine = engine
        self._relation = relation_sql
        self._domain = domain
        self._decimal = decimal
        if rows is not None and (key is not None or families is not None):
            raise InternalError("kept rows have a secret and families of their own")
        if rows is None:
            bound = Bound.of(unit, key)
            rows = KeptRows.of_table(
                engine, relation_sql, domain, decimal=decimal, bound=bound, families=families, name=table
            )
        self._rows = rows
        self._table = table
        families = rows.families(table)
        self._families = families
        self._siblings = siblings and families is not None
        self._carried = () if families is None else (Fragment("w"),)
        self._planned = dict.fromkeys(counted_ahead(queries))
        self._plan = self._planned_for(list(self._planned), domain, bounded=not rows.single)
        self._keeps = self._plan.cells <= most
        self._tables: Tables = {}
        self._further = further or any(query.original not in self._planned for query in queries)
        self._encoding: Encoding | None = None
        self._encoded = False

    def __repr__(self) -> str:
        return f"SqlCounter({self._plan.strategy})"

    def _planned_for(
        self, queries: Sequence[MarginalQuery], domain: Domain, *, bounded: bool
    ) -> CountingPlan:
        weighted = self._families is not None
        return plan_counting(
            queries, domain, bounded=bounded, in_parts=self._engine.in_parts, weighted=weighted
        )

    @property
    def plan(self) -> CountingPlan:
        """The way of counting; public."""
        return self._plan

    def count(
        self, queries: Sequence[MarginalQuery], labels: Sequence[NearestLabel] = ()
    ) -> Iterator[NDArray[np.int64]]:
        """Exact counts, made at once and handed out one by one. PRIVATE.

        A table over bins is summed from its original codes if these are planned.

        ``labels``: further attributes of these queries, which were accepted (``check_labels``). Marginals
        with labels are further ones, and are not kept: labels of one name differ from question to question.

        Returns:
            For each query a read-only int64 array of the marginal's full shape, axes in the query's
            order, zero for cells without rows.

        Raises:
            InternalError: a query was not announced, or a code is wrong.
            EngineFailure: a statement failed.
            PlanTooLarge: further marginals have more cells than the limit.
        """
        names = {label.name for label in labels}
        with_labels = dict.fromkeys(query for query in queries if not names.isdisjoint(query.attrs))
        others = [query for query in queries if query not in with_labels]
        counts = self._counted_once([self._counted_as(query) for query in others]) if others else {}
        if with_labels:
            counts = counts | _read_only(self._group_further(list(with_labels), labels))
        return (
            counts[query] if query in counts else aggregated(counts[query.original], query.maps)
            for query in queries
        )

    def _counted_as(self, query: MarginalQuery) -> MarginalQuery:
        """The marginal over original codes if it was planned; else the query itself, over its bins."""
        return query.original if query.original in self._planned else query

    def _counted_once(self, queries: Sequence[MarginalQuery]) -> Tables:
        """Tables without labels, which are kept; with all that were planned if one of these is missing."""
        wanted = dict.fromkeys(query for query in queries if query not in self._tables)
        if self._keeps and not self._planned.keys().isdisjoint(wanted):
            wanted = self._planned | wanted
        found: Tables = {}
        # Bins are counted in the database only for marginals whose original codes nobody needs.
        if not self._planned.keys() >= wanted.keys():
            found = self._group_further(list(wanted))
        elif wanted and self._plan.strategy == "scan" and not self._further:
            found = self._scan(list(wanted))
        elif wanted:
            found = self._group_planned(list(wanted))
        known = self._tables | _read_only(found)
        if self._keeps:
            self._tables = known
            if not self._further and not self._siblings:
                self._drop_codes()
        return known

    def siblings(self, queries: Sequence[MarginalQuery]) -> list[NDArray[np.int64]]:
        """Exact weights of ordered pairs of distinct rows of one family. PRIVATE.

        ``queries``: two attributes each, which may be the same. Nothing is kept but the codes.

        Returns:
            For each query an int64 array of its full shape; a unit of two rows or more adds up to ``WEIGHT``.

        Raises:
            InternalError: siblings or attributes that were not announced, or a wrong code.
            EngineFailure: a statement failed.
        """
        held = {self._domain.names[attribute] for pack in self._plan.packs for attribute in pack}
        if not self._siblings or not held.issuperset(name for query in queries for name in query.attrs):
            raise InternalError("pairs of rows are counted that were not planned")
        encoding = self._codes()
        if self._engine.in_parts:  # parts of codes that were kept may be any rows
            encoding = replace(encoding, table=temporary_table(_STEM))
        else:
            self._keep(encoding)
        return sibling_tables(self._engine, encoding, self._domain, self._plan.packs, queries)

    def close(self) -> None:
        """Forget the counts and drop the codes; may be called twice."""
        self._tables = {}
        self._drop_codes()

    def _drop_codes(self) -> None:
        if self._encoded and self._encoding is not None:
            self._engine.drop(self._encoding.table, step="dropping the encoded table")
            self._encoded = False

    def _scan(self, queries: Sequence[MarginalQuery]) -> Tables:
        """One-way marginals and the total, directly from the source."""
        groups = groups_for(queries, self._plan.packs, self._domain)
        attributes = [self._plan.packs[group.packs[0]][0] for group in groups]
        found: Tables = {}
        wanted = dict(zip(attributes, (group.queries for group in groups), strict=True))
        asked = list(scans(self._relation, self._domain, attributes, decimal=self._decimal))
        with phase("count", len(attributes)) as advance:
            sums = self._engine.sums([tally for _, tally in asked], step="counting one-way marginals")
            for (part, _), result in zip(asked, sums, strict=True):
                for attribute in part:
                    histogram = self._histogram(result, attribute)
                    total = np.asarray(histogram.sum(dtype=np.int64))
                    found.update((query, histogram if query.attrs else total) for query in wanted[attribute])
                advance(len(part))
        return found

    def _histogram(self, result: dict[str, NDArray[Any]], attribute: int) -> NDArray[np.int64]:
        """One attribute's rows of a scan as a dense histogram."""
        if np.ma.is_masked(result["attribute"]):
            raise InternalError("the database returned a missing code")
        rows = np.asarray(result["attribute"]) == attribute
        size = self._domain.attributes[attribute].size
        return scatter([result["code"][rows]], result["n"][rows], (size,))

    def _group_planned(self, queries: Sequence[MarginalQuery]) -> Tables:
        """Planned marginals, from codes that are kept unless nothing more is asked of them."""
        encoding, plan = self._codes(), self._plan
        if plan.strategy != "products":
            plan = replace(plan, groups=groups_for(queries, plan.packs, self._domain))
        once = not self._further and not self._siblings and self._planned.keys() <= set(queries)
        keep = not self._encoded and not (once and encoding.part is not None and is_one_pass(plan.groups))
        if keep and encoding.part is None:
            self._keep(encoding)
            keep = False
        found = counted(self._engine, encoding, plan, queries, keep=keep)
        self._encoded |= keep
        return found

    def _group_further(self, queries: Sequence[MarginalQuery], labels: Sequence[NearestLabel] = ()) -> Tables:
        """Marginals that were not planned: the existing columns are packed again for them alone, as bins and
        labels."""
        domain = labelled(self._domain, labels)
        self._check_further(queries, labels)
        binned = BinnedMarginals.of(queries, domain)
        plan = self._planned_for(binned.queries, binned.domain, bounded=True)
        encoding = self._codes()
        self._keep(encoding)
        repacked = repack(
            temporary_table(_STEM),
            encoding,
            self._domain,
            self._plan.packs,
            binned,
            plan.packs,
            labels,
            self._carried,
        )
        found = counted(self._engine, repacked, plan, binned.queries)
        return {query: found[own] for query, own in zip(queries, binned.queries, strict=True)}

    def _check_further(self, queries: Sequence[MarginalQuery], labels: Sequence[NearestLabel]) -> None:
        """Unplanned marginals are of attributes that are encoded; the door says how many there may be.

        Raises:
            InternalError: they are of others, or there may be none.
        """
        held = {self._domain.names[attribute] for pack in self._plan.packs for attribute in pack}
        used = {name for query in queries for name in query.attrs}
        used = (used - {label.name for label in labels}).union(*(label.attributes for label in labels))
        if not self._further or not held >= used:
            raise InternalError("a marginal is counted that was not planned")

    def _codes(self) -> Encoding:
        """The codes of the source, made or not: one column ``p<i>`` per pack; one row per kept source row.

        A bound on the rows of one privacy unit is applied here and nowhere else: every later statement reads
        these codes only.
        """
        if self._encoding is None:
            self._encoding = self._rows.encoding(
                self._table, self._domain, self._plan.packs, numbered=self._siblings
            )
        return self._encoding

    def _keep(self, encoding: Encoding) -> None:
        """Encode the source once."""
        if self._encoded:
            return
        with phase("encode"):
            self._engine.keep(encoding, step="encoding the source")
        self._encoded = True


def _read_only(tables: Tables) -> Tables:
    """Tables that are kept, and handed out more than once."""
    for table in tables.values():
        table.setflags(write=False)
    return tables


def aggregated(table: NDArray[np.int64], maps: Sequence[Map | None]) -> NDArray[np.int64]:
    """Sum the codes of each bin, axis by axis; exact integers."""
    for axis, bins in enumerate(maps):
        if bins is not None:
            order = np.argsort(bins, kind="stable")
            starts = np.searchsorted(np.asarray(bins)[order], np.arange(max(bins) + 1))
            table = np.add.reduceat(table.take(order, axis=axis), starts, axis=axis)
    return table
