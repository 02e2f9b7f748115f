"""Synthetic rows that are made part by part in tasks elsewhere, and who writes them there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.sqltext.fragments import Fragment


@dataclass(frozen=True, slots=True)
class PartStatements:
    """What a task elsewhere runs for a part of the synthetic rows (``write.publish``). ``first``, ``rows``,
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
        replaced: of the staged rows those that conditions gave other codes.
    """

    statements: PartStatements
    rows: int
    seed: int
    gaps: bool = False
    slots: Fragment | None = None
    staged: Fragment | None = None
    left: tuple[int, ...] | None = None
    replaced: int = 0

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
            query: of a part in its task (``write.publish.part_query``).
            shape: of the output; complete.
            comments: of every column.
            words: what a reader of the rows should know first.
            release: its id.
            model: a database file with the model, which is copied.

        Raises:
            PublishError: the output has appeared, or is not what this release wrote.
            EngineFailure: it failed.
        """
