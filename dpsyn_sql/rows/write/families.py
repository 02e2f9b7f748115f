"""Rows of a model, drawn and staged: those of a root, each by itself, or those that lie below others.

Rows of persons lie below a root of persons, rows of a table of a tree below those of its parent. One that
meets a condition of ``shape.never`` first gets other values within its codes (``write.staging``). If they
allow none, it is drawn again, and what it lies below is not. Where rows follow from the row before, so is the
rest of its family, with its moments: the rows before it stay. What is still impossible after some rounds
becomes like another row of its family, the nearest one before it that is possible or else the nearest one
after it; a family without a possible row is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

import numpy as np

from dpsyn_sql.attributes.output import Kept, beside_codes, impossible_rows
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import Codes, IntArray
from dpsyn_sql.fit.given import Given
from dpsyn_sql.fit.network import Model, Network, Sampler, families_in
from dpsyn_sql.planning.families import Families
from dpsyn_sql.planning.limits import NO_DEADLINE, Deadline
from dpsyn_sql.rows.sample.rounds import PART_ROWS
from dpsyn_sql.rows.sample.sql_rows import INDEPENDENTLY, alias_lists, append_network
from dpsyn_sql.rows.sample.systematic import code_type
from dpsyn_sql.rows.sample.tables import (
    DrawnRows,
    FamilyRows,
    People,
    TableRows,
    ordered_codes,
    staged_codes,
    table_codes,
)
from dpsyn_sql.rows.sample.walk import FamilySampler
from dpsyn_sql.rows.write.staging import (
    STEP,
    WITHIN,
    Batches,
    again_statement,
    append,
    check_codes,
    load_codes,
    load_table,
    make_room,
    replaced_rows,
    stage_rows,
    warn_of_few_rows,
)
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.sqltext.fragments import Fragment, temporary_table
from dpsyn_sql.sqltext.render import render

ROUNDS = 100
"""Times that rows are drawn again: one row in 17 that a unit can have is found with probability .998."""

_MOST_DRAWN, _SPARE = 10, 10**6
# Rows drawn for each row wanted, at most, and beyond.

_STEP = "drawing rows that cannot be again"


def together(shape: Shape, families: Families | None) -> Shape:
    """The shape of a table of a tree, or of rows of persons; as it is without ``families``.

    Raises:
        InternalError: it has other attributes.
    """
    if families is None:
        return shape
    if shape.domain.names != families.domain.names[: families.written]:
        raise InternalError("units are drawn of other attributes than are written")
    shared = frozenset(shape.domain.names) & families.persons
    below = not families.by_themselves
    return replace(shape, together=below, numbered=True, ticks=families.order, per_unit=shared)


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows of a table that are drawn and staged.

    Args:
        table: quoted name of the temporary table.
        names: of the attributes that are staged.
        total: how many rows.
        drawn: how, in the words of certificates.
        replaced: of rows that are each by themselves those that conditions gave other codes.
        rows: of a table of a tree, with the rows above them; rows of persons lie below these. None where each
            row is by itself and nothing is below.
        persons: how many persons were drawn; 0 where none were.
    """

    table: Fragment
    names: tuple[str, ...]
    total: int
    drawn: str
    replaced: int = 0
    rows: TableRows | None = None
    persons: int = 0

    def compared(self, engine: Engine, seed: int) -> DrawnRows:
        """The rows for a comparison with the noisy answers; ``seed`` chooses some of many."""
        if self.rows is not None and self.rows.above is not None:
            return table_codes(self.rows, seed)
        laid_out = self.drawn != INDEPENDENTLY
        return staged_codes(engine, self.table, self.names, self.total, seed, laid_out=laid_out)


def stage(
    engine: Engine,
    shape: Shape,
    model: Model,
    rows: int,
    table: Fragment,
    seed: int,
    advance: Callable[[int], None] = lambda rows: None,
    *,
    above: TableRows | None = None,
    evidence: Given | None = None,
    retained: Kept | None = None,
    deadline: Deadline = NO_DEADLINE,
    network: Network | None = None,
) -> StagedRows:
    """Draw the rows of a table and load them; none meets a condition.

    Staged are row, a0, a1, ... of the attributes that are written (of a root also of those that the tables
    below need), and ``beside_codes``. Rows that lie below others are numbered from 0 without holes, those of
    one parent together, parents in their order; so are those of the root of a tree.

    Args:
        engine: the session that writes; it cannot reach the source.
        shape: complete, with checked expressions, as of ``together``.
        model: of the table; its families say which table of a tree it is.
        rows: of a root how many rows, or persons; not used below another table.
        table: quoted name of the table to create.
        seed: of the rows and, together with the round, of rows that are drawn again; of positions in bins.
            Of a table of a tree its own (``rows.sample.tables.table_seed``).
        advance: is told the number of rows after each batch.
        above: the rows of the table above.
        evidence: what the rows follow from; None: ``above.given(families, seed)``.
        retained: values that will be written in place of those of the codes; conditions are checked with
            them.
        deadline: how much time there is to balance rows.
        network: SQL draws the rows of it, each independently (``sample.sql_rows.independent_rows``); None:
            the sampler of the model.

    Raises:
        InternalError: the evidence is of other rows than those above, or the root has some.
    """
    sampler = model.sampler(deadline)
    if not isinstance(sampler, FamilySampler):
        if above is not None:
            raise InternalError("rows that are each by themselves lie below others")
        return _stage_root(engine, shape, model, sampler, rows, table, seed, advance, network)
    if above is not None and evidence is None:
        evidence = above.given(sampler.families, seed)
    if (0 if above is None else above.total) != (0 if evidence is None else evidence.rows.size):
        raise InternalError("rows are drawn given other rows than those above them")
    # Bins are filled as they are written.
    sampler = replace(sampler, families=sampler.families.with_attributes(shape.domain))
    people = sampler.people(rows, seed, evidence)
    parents = TableRows.persons(people.rows.size) if above is None else above
    drawn = sampler.families.domain.attributes[: sampler.families.drawn]
    codes = np.zeros(
        (people.total, len(drawn)), code_type(max((attribute.size for attribute in drawn), default=1))
    )
    staging = _RowsBelow(engine, shape, sampler, people, table, seed, codes, retained)
    lost = staging.all(advance)
    staged = TableRows.below(parents, sampler.families, people, codes)
    if lost.size:
        staged, left = staged.without(lost)
        staging.renumber(left)
    persons = people.rows.size if above is None else 0
    return StagedRows(table, shape.domain.names, staged.total, sampler.drawn, rows=staged, persons=persons)


def _stage_root(
    engine: Engine,
    shape: Shape,
    model: Model,
    sampler: Sampler,
    rows: int,
    table: Fragment,
    seed: int,
    advance: Callable[[int], None],
    network: Network | None,
) -> StagedRows:
    """Rows that are each by themselves; those of a tree with the attributes that the tables below need."""
    families = families_in(model)
    alone, names = shape, shape.domain.names
    if families is not None:
        names = families.domain.names[: families.drawn]
        hidden = families.domain.attributes[families.written : families.drawn]
        # No condition, constant or computed column has these names.
        further = (replace(item, name=f"dpsyn_hidden_{position}") for position, item in enumerate(hidden))
        alone = replace(shape, measured=(*shape.measured, *further), numbered=False)
    again = shape.numbered and bool(shape.never)
    staged = temporary_table("dpsyn_staged") if again else table
    with nullcontext() if network is None else alias_lists(engine, network) as lists:

        def draw(number: int, round_seed: int, first: int) -> int:
            if network is None or lists is None:
                batches = _reported(sampler.batches(number, round_seed), advance)
                return append(engine, alone.domain, batches, staged, first)
            return append_network(
                engine, network, lists, number, round_seed, staged, first=first, advance=advance
            )

        total = stage_rows(engine, alone, draw, rows, staged, seed, in_parts=network is not None)
    part = rows if network is None else PART_ROWS
    replaced = replaced_rows(engine, staged, rows, part) if shape.never else 0
    drawn = sampler.drawn if network is None else INDEPENDENTLY
    if again:
        engine.execute(render("write/numbered", table=table, staged=staged), step=_STEP)
        engine.execute(render("sample/drop", table=staged), step=_STEP)
    above = None
    if families is not None and families.below:
        above = TableRows.root(families, ordered_codes(engine, table, len(names)))
    return StagedRows(table, names, total, drawn, replaced, above)


def _reported(batches: Batches, advance: Callable[[int], None]) -> Batches:
    for batch in batches:
        yield batch
        advance(len(batch))


@dataclass(frozen=True)
class _RowsBelow:
    """Rows below others while they are staged: row i of ``people`` has the number i, and its ``codes`` (rows,
    drawn) are filled in."""

    engine: Engine
    shape: Shape
    sampler: FamilySampler
    people: People
    table: Fragment
    seed: int
    codes: Codes
    retained: Kept | None

    def all(self, advance: Callable[[int], None]) -> IntArray:
        """Stage all rows; the units that are left out."""
        make_room(self.engine, self.shape.domain, self.table, beside_codes(self.shape))
        first = 0
        for rows in self.sampler.rows(self.people, self.seed):
            numbers = np.arange(first, first + len(rows.codes), dtype=np.int64)
            self.load(rows, numbers, numbers)
            first += numbers.size
            advance(numbers.size)
        return self.meet_conditions() if self.shape.never else np.zeros(0, np.int64)

    def load(self, rows: FamilyRows, numbers: IntArray, draws: IntArray) -> None:
        """Stage rows of these numbers, of the draws of these numbers."""
        self.codes[numbers] = rows.codes
        parent, rank = self.people.owners(numbers)
        further = {"parent": parent, "rank": rank}
        if self.shape.ticks:
            further["t"] = rows.ticks
        if "drawn" in beside_codes(self.shape):
            further["drawn"] = draws
        domain = self.shape.domain
        codes = rows.codes[:, : len(domain.attributes)]
        check_codes(codes, [attribute.size for attribute in domain.attributes])
        if numbers.size:
            load_codes(self.engine, domain, [codes], self.table, numbers, further)

    def meet_conditions(self) -> IntArray:
        """Draw rows that cannot be again; the units that are left out."""
        people, drawn = self.people, self.people.total
        bad = self._impossible(0)
        for turn in range(WITHIN):
            if not bad.size:
                break
            sql = again_statement(self.shape, self.table, turn * STEP, self.seed, self.retained)
            self.engine.execute(sql, step=_STEP)
            bad = self._impossible((turn + 1) * STEP)
        for attempt in range(1, ROUNDS + 1):
            if not bad.size or drawn > _MOST_DRAWN * people.total + _SPARE:
                break
            if self.sampler.walks:
                bad = bad[people.firsts(bad)]
            numbers, rows = self.sampler.again(people, bad, self._before(bad), self.seed, attempt)
            draws = np.arange(drawn, drawn + numbers.size)
            self._change("write/unstage", numbers, numbers)
            self.load(rows, numbers, draws)
            bad, drawn = self._impossible(drawn), drawn + numbers.size
        return self._made_like_others(bad)

    def _impossible(self, first: int) -> IntArray:
        """The numbers of rows, of those from a draw on, that meet a condition; ascending."""
        name, query = impossible_rows(self.shape, self.table, first, self.seed, self.retained)
        return np.sort(self.engine.fetch(query, step=_STEP)[name].astype(np.int64))

    def _before(self, bad: IntArray) -> FamilyRows:
        """What came before these rows, where rows follow from it."""
        families, ranks = self.sampler.families, self.people.owners(bad)[1]
        later = np.flatnonzero((ranks > 0) & self.sampler.walks)
        written, before = families.written, FamilyRows.nothing(bad.size, families.drawn)
        if not later.size:
            return before
        names = [*(f"a{position}" for position in range(written)), *(["t"] if self.shape.ticks else [])]
        columns = list(map(Fragment, names))
        with self._listed(bad[later], bad[later] - 1) as listed:
            query = render("write/before", staged=self.table, listed=listed, columns=columns)
            fetched = self.engine.fetch(query, step=_STEP)
        for position, name in enumerate(columns[:written]):
            before.codes[later, position] = fetched[name]
        if self.shape.ticks:
            before.ticks[later] = np.ma.filled(np.ma.asarray(fetched["t"]).astype(np.int64), 0)
        return before

    def _made_like_others(self, bad: IntArray) -> IntArray:
        """Rows that cannot be become like others of their unit; units without any are left out: which."""
        people = self.people
        if not bad.size:
            return bad
        units = np.unique(people.owners(bad)[0])
        numbers = people.until_end(people.starts[units])
        possible, begins = ~np.isin(numbers, bad), np.repeat(people.starts[units], people.rows[units])
        donors = np.maximum.accumulate(np.where(possible, numbers, -1))
        following = np.minimum.accumulate(np.where(possible, numbers, people.total)[::-1])[::-1]
        donors = np.where(donors >= begins, donors, following)
        has_donor = donors < begins + people.rows[people.owners(begins)[0]]
        self._change("write/unstage", bad, bad)
        copied = ~possible & has_donor
        if copied.any():
            self.copy(numbers[copied], donors[copied])
        lost = np.unique(people.owners(numbers[~has_donor])[0])
        warn_of_few_rows(people.total - int(people.rows[lost].sum()), people.total)
        return lost

    def copy(self, numbers: IntArray, donors: IntArray) -> None:
        """Rows of these numbers become like others of their unit."""
        self.codes[numbers] = self.codes[donors]
        self._change("write/copied", numbers, donors)

    def _change(self, statement: str, numbers: IntArray, donors: IntArray) -> None:
        """Run a statement over listed rows."""
        with self._listed(numbers, donors) as listed:
            self.engine.execute(render(statement, staged=self.table, listed=listed), step=_STEP)

    @contextmanager
    def _listed(self, numbers: IntArray, donors: IntArray) -> Iterator[Fragment]:
        """A temporary table of rows, of each another one: that before it, or that it becomes like."""
        table = temporary_table("dpsyn_listed")
        load_table(self.engine, table, {"row": numbers, "donor": donors}, step=_STEP)
        yield table
        self.engine.execute(render("sample/drop", table=table), step=_STEP)

    def renumber(self, left: IntArray) -> None:
        """Number the rows that are ``left``, ascending, from 0 without holes."""
        moved = np.flatnonzero(left != np.arange(left.size))
        self._change("write/renumbered", left[moved], moved)
