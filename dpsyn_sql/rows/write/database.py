"""All tables of a database that joins: keys of rows that name each other, then one output for all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol
from uuid import uuid4

from dpsyn_sql.domain.shape import PartOfKey, RandomKey, Shape
from dpsyn_sql.errors import InternalError, PublishError
from dpsyn_sql.planning.keys import is_unique, links_of
from dpsyn_sql.planning.tree import PublicTable, Tree
from dpsyn_sql.rows.decode.keys import Lookup, Ties, fits
from dpsyn_sql.rows.decode.output import capacity, output_statement, units_of
from dpsyn_sql.rows.write.outputs import NewFile, NewTable, write_database, write_files, write_tables
from dpsyn_sql.rows.write.persist import StoredRelease
from dpsyn_sql.rows.write.public_rows import GroupedRows, PublicRows, copied_rows, load_lookup, load_texts
from dpsyn_sql.rows.write.publish import check_capacity
from dpsyn_sql.rows.write.staging import staged_rows
from dpsyn_sql.rows.write.words import comment_statements, readable_literal, statement_of
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.source.files import file_beside
from dpsyn_sql.sqltext.fragments import Fragment, ident, qualified
from dpsyn_sql.sqltext.render import render


class DatabaseDestination(Protocol):
    """Where all tables go; resolved and checked before anything was charged."""

    @property
    def kind(self) -> Literal["schema", "database", "folder"]:
        """A schema of a database, a database file, or a folder of Parquet files."""

    @property
    def home(self) -> tuple[str, str] | None:
        """The attached database and the schema; None for a file or folder."""

    @property
    def path(self) -> Path | None:
        """The database file or the folder; None for a schema."""

    @property
    def names(self) -> Mapping[str, str]:
        """What each table of the release and each public table is called there, without folder or ending."""

    @property
    def existing(self) -> frozenset[str]:
        """Those of ``names`` that are there already."""

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of tables of the schema that are written anew, one that refers to others before them."""

    @property
    def replace(self) -> bool:
        """Whether what is there may be overwritten."""

    @property
    def only_same(self) -> bool:
        """Whether what is there is kept if it equals what would be written, and refused if not."""


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """A table of the tree, drawn and staged.

    Args:
        name: of the table in the tree.
        shape: complete; ``planning.keys.roles_of`` says the roles of its keys.
        staged: quoted name of the table of codes: row (0, 1, ... without gaps), a0, a1, ..., parent (row of
            the table above), rank (within the parent, from 0), and ``decode.output.beside_codes``.
        seed: of its values and keys (``table_seed``); conditions were met by the same seed.
        kept: what stays with the output.
        lookups: by attribute, the public rows that a reference to a public table names.
    """

    name: str
    shape: Shape
    staged: Fragment
    seed: int
    kept: StoredRelease | None = None
    lookups: Mapping[str, GroupedRows] = field(default_factory=dict)


def table_seed(seed: int, table: str) -> int:
    """The seed of one table (below 2^64): columns of one name in two tables have nothing in common."""
    return int.from_bytes(hashlib.sha256(f"{seed}|{table}".encode()).digest()[:8], "big")


def publish_database(
    engine: Engine,
    target: DatabaseDestination,
    tree: Tree,
    tables: Sequence[WrittenTable],
    public: Sequence[PublicRows] = (),
    *,
    constraints: bool = False,
) -> None:
    """Write the staged rows of all tables as values.

    A schema is as it was before on any failure, and a database file too. Files of a folder that is new
    appear together; in a folder that is there they appear one after another.

    Args:
        engine: the session that holds the staged tables and writes.
        target: where to.
        tree: how the tables are tied.
        tables: each of the tree once.
        public: the public tables that are copied into the output (``DatabaseTarget.copies``).
        constraints: keys are stated as PRIMARY KEY and FOREIGN KEY; of no meaning for a folder.

    Raises:
        PublishError: the output has appeared since the check, is not what this release wrote, cannot be
            written, or a key's type cannot hold so many values.
        EngineFailure: the database failed otherwise.
    """
    if [table.name for table in tree] != [table.name for table in tables]:
        raise InternalError("other tables are published than those of the tree")
    queries = _Decoded.of(engine, tree, tables).queries()
