"""Which stored release a name means: one table's, or those of all tables of one release."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpsyn_sql.errors import InputError
from dpsyn_sql.source.names import fold, listed, shorten


@dataclass(frozen=True, slots=True)
class Tied:
    """A table of a release of several: ``name`` of the release, ``table``, and the parent of each table, None
    of the root."""

    name: str
    table: str
    parents: Mapping[str, str | None]

    @property
    def way(self) -> list[str]:
        """The tables from the root to this one."""
        found, above = [self.table], self.parents[self.table]
        while above is not None and above not in found:
            found.insert(0, above)
            above = self.parents[above]
        return found


@dataclass(frozen=True, slots=True)
class Stored:
    """One release in a database: ``number`` is its key in all tables."""

    database: str
    number: int
    release_id: str
    name: str
    total: float
    certificate: str

    @property
    def tied(self) -> Tied | None:
        """How it belongs to a release of several tables; None if it is alone, or its certificate damaged."""
        try:
            own = json.loads(self.certificate)["database"]
            parents = {str(one["table"]): one["parent"] for one in own["tables"]}
            found = Tied(str(own["name"]), str(own["table"]), parents)
            return found if found.way else None
        except (LookupError, RecursionError, TypeError, ValueError):
            return None


def named(known: Sequence[Stored], name: str | None, current: str, where: str) -> Stored:
    """The release of this name (in any letter case), or the only one.

    Args:
        known: all of them.
        name: None: the only one.
        current: the database that is looked at first.
        where: for messages.

    Raises:
        InputError: there is none, or several; the message lists the releases.
    """
    names = listed(sorted({one.name for one in known}, key=fold))
    found = [one for one in known if name is None or fold(one.name) == fold(name)]
    if not found:
        raise InputError(f"There is no release {shorten(repr(name))} in {where}; there are {names}.")
    if name is None and len(found) > 1:
        raise InputError(f"There are several releases in {where}: give name=, one of {names}.")
    return found[_here([one.database for one in found], name, current, where)]


def tables_named(known: Sequence[Stored], name: str | None, current: str, where: str) -> dict[str, Stored]:
    """The tables of the release of several that has this name, or of the only release; empty if there is
    none, or the name is that of one table. Arguments as of ``named``.

    Raises:
        InputError: several databases have such a release.
    """
    if name is not None and any(fold(one.name) == fold(name) for one in known):
        return {}
    found = dict[tuple[str, str], dict[str, Stored]]()
    for one in known:
        tied = one.tied
        if tied is not None and (name is None or fold(tied.name) == fold(name)):
            found.setdefault((one.database, fold(tied.name)), {})[tied.table] = one
    alone = sum(map(len, found.values())) < len(known)
    if not found or (name is None and (alone or len({own for _, own in found}) > 1)):
        return {}
    return [*found.values()][_here([database for database, _ in found], name, current, where)]


def way_of(known: Sequence[Stored], one: Stored) -> list[Stored]:
    """The releases of the tables from the root down to that of ``one``; itself alone if it is of no tree."""
    tied = one.tied
    if tied is None:
        return [one]
    beside = [(other, other.tied) for other in known if other.database == one.database]
    tables = {
        own.table: other for other, own in beside if own is not None and fold(own.name) == fold(tied.name)
    }
    return [tables[table] for table in tied.way if table in tables]


def _here(databases: Sequence[str], name: str | None, current: str, where: str) -> int:
    """Which of several is in the current database, or the only one."""
    here = [place for place, one in enumerate(databases) if fold(one) == fold(current)]
    chosen = here if len(here) == 1 else [*range(len(databases))]
    if len(chosen) > 1:
        raise InputError(
            f"The name {shorten(repr(name))} stands for {len(chosen)} releases in {where}, in the databases "
            f"{listed(sorted({*databases}))}: USE one of them, or give the path of its file as con."
        )
    return chosen[0]
