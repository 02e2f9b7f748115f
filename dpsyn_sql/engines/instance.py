"""A DuckDB instance of our own: private, limited, and locked once the source is attached.

Sources that are files or database paths are read here, never on a caller's connection, so that no
setting of the caller changes and nobody else can look into our temporary tables.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb

from dpsyn_sql.common.folders import LockedFolder, locked_folder
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import EngineFailure
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.sqltext.fragments import Fragment, comma, ident, literal
from dpsyn_sql.sqltext.render import render

HOME = "memory"
_SCRATCH = "dpsyn-scratch-"
NOT_OPENED = (
    "cannot be opened as a DuckDB database: it is not a database, is of a newer version, or is open for "
    "writing (in this process: pass the connection itself as con)."
)
"""What is said of a database file after its path."""

_RESERVED = frozenset({"memory", "system", "temp"})

_COUNTED_IN_ARRAYS = 18
# Bits of a GROUP BY's keys up to which DuckDB counts in a plain array: twice as fast as its hash table
# on codes; its own default is 12.


def private_instance(memory_limit: str | None = None) -> DuckDBEngine:
    """An empty in-memory instance that spills, encrypted, into a folder only we can enter.

    ``memory_limit``: as DuckDB writes it, such as ``'4096MiB'``.

    Raises:
        EngineFailure: there is no place for the folder.
    """
    scratch = _scratch()
    connection = duckdb.connect(
        ":memory:", config={"temp_directory": str(scratch.path), "python_enable_replacements": "false"}
    )
    engine = DuckDBEngine(connection, scratch=scratch)
    # The wheel holds one cipher module, which DuckDB lets write on demand only, because its keys come
    # from an ordinary generator (seeded by the system). Without it a spill fails, or fetches another
    # module from the network. Where it cannot be had, the folder's mode alone protects the spill.
    with contextlib.suppress(EngineFailure):
        for name in ("force_mbedtls_unsafe", "temp_file_encryption"):
            set_option(engine, name, literal(True))
    set_option(engine, "perfect_ht_threshold", literal(_COUNTED_IN_ARRAYS))
    set_option(engine, "enable_progress_bar", literal(False))  # it would be printed among our own output
    if memory_limit is not None:
        set_option(engine, "memory_limit", literal(memory_limit))
    return engine


def opened_database(
    path: Path, memory_limit: str | None = None, *, read_only: bool = True
) -> DuckDBEngine | None:
    """A private instance that looks names up in a database file; None where it ``NOT_OPENED``.

    Raises:
        EngineFailure: as ``private_instance``.
    """
    engine = private_instance(memory_limit)
    with closed_on_failure(engine), contextlib.suppress(EngineFailure):
        attach(engine, path, read_only=read_only)
        return engine
    engine.close()
    return None


@contextlib.contextmanager
def closed_on_failure(engine: Engine) -> Iterator[None]:
    """Close an engine if the block that makes something of it fails."""
    try:
        yield
    except BaseException:
        engine.close()
        raise


def _scratch() -> LockedFolder:
    with contextlib.suppress(OSError):
        return locked_folder(Path(tempfile.gettempdir()), _SCRATCH)
    raise EngineFailure("making a private folder for temporary files (TMPDIR)", "OSError", "")


def set_option(engine: Engine, name: str, value: Fragment) -> None:
    """Change a setting of an instance of ours."""
    engine.execute(render("source/set_option", name=ident(name), value=value), step=f"setting {name}")


def lock(engine: DuckDBEngine, paths: Iterable[str]) -> None:
    """Shut the file system except ``paths``, what is attached and our own file, and freeze the settings."""
    allowed = Fragment("[" + comma(literal(path) for path in (*paths, *engine.own_files)) + "]")
    set_option(engine, "allowed_paths", allowed)
    set_option(engine, "enable_external_access", literal(False))
    set_option(engine, "lock_configuration", literal(True))


def attach(engine: Engine, path: Path, *, read_only: bool) -> None:
    """Attach a database file under its ``database_alias`` and look names up in it.

    Raises:
        EngineFailure: it is no DuckDB database, a newer one, or in use.
    """
    name = database_alias(path)
    engine.execute(
        render("source/attach", path=literal(str(path)), name=ident(name), read_only=int(read_only)),
        step="attaching the database file",
    )
    use(engine, name)


def files_of(path: Path) -> tuple[str, str]:
    """The files that a database consists of."""
    return str(path), f"{path}.wal"


def detach(engine: Engine, path: Path) -> None:
    """Let an attached database file go."""
    use(engine, HOME)
    name = ident(database_alias(path))
    engine.execute(render("source/detach", name=name), step="letting the database file go")


def use(engine: Engine, name: str) -> None:
    """Look names up in the attached database ``name``."""
    engine.execute(render("source/use", name=ident(name)), step="choosing the database")


def database_alias(path: Path) -> str:
    """The name a database file is attached as: its stem, as DuckDB itself would call it."""
    stem = path.name.split(".")[0] or path.name
    return f"{stem}_db" if stem.lower() in _RESERVED else stem
