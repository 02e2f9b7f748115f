"""Synthetic rows that are made part by part in tasks elsewhere, and who writes them there.

What differs between parts is a variable of the task's session. Names of tables are those of the task.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dpsyn_sql.attributes.output import Units, beside_codes, output_statement
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.common.folders import locked_folder
from dpsyn_sql.fit.network import Network
from dpsyn_sql.rows.sample.sql_rows import check_statement
from dpsyn_sql.rows.sample.sql_text import Script, Tables
from dpsyn_sql.rows.write.persist import StoredRelease, column_comments, persist_beside, statement_of
from dpsyn_sql.rows.write.staging import possible_statements, room_statement
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import render

SLOTS = Fragment("dpsyn_slots")
"""The alias tables of the network (``sample.sql_rows.load_slots``)."""

_STAGED = Fragment("dpsyn_staged")
_MODELS = "dpsyn-model-"


@dataclass(frozen=True, slots=True)
class PartStatements:
    """What a task elsewhere runs for a part of the synthetic rows (``part_rows``). ``first``, ``rows``,
    ``seed`` and ``before`` are the variables ``dpsyn_<name>`` of its session.

    ``room`` makes the table ``staged`` of codes; ``draw`` stages ``rows`` rows by ``seed``, numbered from
    ``first`` on, from the table ``slots`` (empty if codes are brought). From row ``first`` on, ``check``
    counts the rows and the complete ones, ``reject`` removes those that cannot be (empty without
    conditions), ``count`` counts, and ``trim`` keeps the first ``rows`` rows.
    """

    room: str
    staged: str
    draw: str
    check: str
    reject: str
    count: str
    slots: str
    trim: str


@dataclass(frozen=True, slots=True)
class PartRows:
    """Synthetic rows that are made part by part in tasks elsewhere.

    Args:
        statements: what a task runs.
        rows: wanted, of all parts (``sample.rounds.parts``).
        seed: of drawing.
        gaps: conditions remove rows, so that numbers have gaps.
        slots: table of the alias tables in the session that writes; None if codes are brought.
        staged: table of the codes there; None if tasks draw them.
        left: rows of each part that are left by conditions; None if there are none.
    """

    statements: PartStatements
    rows: int
    seed: int
    gaps: bool = False
    slots: Fragment | None = None
    staged: Fragment | None = None
    left: tuple[int, ...] | None = None

    @property
    def kept(self) -> int:
        """Rows of all parts that are left."""
        return self.rows if self.left is None else sum(self.left)


class RowPublisher(Protocol):
    """Makes synthetic rows in tasks elsewhere and writes them there, all of them or none."""

    def left(self, engine: Engine, rows: PartRows) -> tuple[int, ...]:
        """How many rows of each part conditions leave; the parts are drawn for it, and nothing is written.

        ``engine``: the session that holds what ``rows`` names.
        """

    def publish(
        self,
        engine: Engine,
        rows: PartRows,
        query: str,
        shape: Shape,
        comments: Mapping[str, str],
        words: str,
        release: str,
        model: Path,
    ) -> None:
        """Write the rows that ``query`` decodes of each part, then the model, so that the same call repairs
        what a killed one left.

        Args:
            engine: the session that holds what ``rows`` names.
            rows: what is made.
            query: of a part in its task (``part_query``).
            shape: of the output; complete.
            comments: of every column.
            words: what a reader of the rows should know first.
            release: its id.
            model: a database file with the model, which is copied.

        Raises:
            PublishError: the output has appeared, or is not what this release wrote.
            EngineFailure: it failed.
        """


def _variable(name: str, kind: str) -> Fragment:
    return Fragment(f"CAST(getvariable('dpsyn_{name}') AS {kind})")


_FIRST, _ROWS, _SEED = (
    _variable("first", "BIGINT"),
    _variable("rows", "BIGINT"),
    _variable("seed", "UBIGINT"),
)


def part_rows(
    shape: Shape,
    rows: int,
    seed: int,
    network: Network | None = None,
    slots: Fragment | None = None,
    staged: Fragment | None = None,
) -> PartRows:
    """Rows that tasks draw from a network (with its ``slots``), or that are ``staged`` already.

    Args:
        shape: complete, with checked expressions.
        rows: wanted; of staged ones how many they are.
        seed: public.
        network: what is drawn from.
        slots: table of its alias tables (``sample.sql_rows.load_slots``).
        staged: table of codes, which no condition excludes.
    """
    gaps = network is not None and bool(shape.never)
    return PartRows(_statements(shape, network, seed), rows, seed, gaps, slots, staged)


def _statements(shape: Shape, network: Network | None, seed: int) -> PartStatements:
    draw = reject = Fragment("")
    if network is not None:
        query = Script(network, _SEED).iid(_ROWS, Tables(SLOTS, slots=SLOTS), _FIRST)
        draw = render("sample/insert", staged=_STAGED, query=query)
        if shape.never:
            reject = Fragment(
                ";\n".join(statement for statement, _ in possible_statements(shape, _STAGED, _FIRST, seed))
            )
    return PartStatements(
        room=room_statement(shape.domain, _STAGED, beside_codes(shape)),
        staged=_STAGED,
        draw=draw,
        check=check_statement(_STAGED, len(shape.domain.attributes), _FIRST),
        reject=reject,
        count=render("write/count_staged", staged=_STAGED, first=_FIRST),
        slots=SLOTS,
        trim=render("write/trim", staged=_STAGED, first=_FIRST, rows=_ROWS),
    )


def part_query(shape: Shape, rows: int, units: Units, seed: int) -> Fragment:
    """The rows of a part as values (``decode.output``); ``before`` is the number of rows of earlier parts."""
    return output_statement(shape, _STAGED, rows, units, seed, _variable("before", "BIGINT"))


def write_in_tasks(
    engine: Engine, publisher: RowPublisher, shape: Shape, rows: PartRows, units: Units, kept: StoredRelease
) -> None:
    """Let tasks decode and write rows, and keep what stays with them beside.

    Raises:
        PublishError: the output has appeared, or is not what this release wrote.
        EngineFailure: the database or the tasks failed.
    """
    query = part_query(shape, rows.kept, units, rows.seed)
    words = statement_of(kept.facts, kept.name).replace("\x00", "\\0")
    with locked_folder(Path(tempfile.gettempdir()), _MODELS) as folder:
        model = folder / "model.duckdb"
        persist_beside(engine, model, [kept])
        publisher.publish(engine, rows, query, shape, column_comments(shape), words, kept.release_id, model)
