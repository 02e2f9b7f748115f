"""PRIVATE: whether tables can be compared, and in which columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dpsyn_sql.engines.relations import OpenedRelation
from dpsyn_sql.errors import InputError
from dpsyn_sql.source.names import fold, listed, shorten
from dpsyn_sql.sqltext.fragments import ident


def compared_pair(
    found: Mapping[str, OpenedRelation], needed: Sequence[str] = ()
) -> tuple[dict[str, OpenedRelation], list[str]]:
    """The tables with the columns that the synthetic one has, and the names of those that it lacks: a release
    leaves out what is excluded.

    Args:
        found: by ``"real"``, ``"synthetic"`` and perhaps ``"holdout"``.
        needed: columns of the real table that say whose row it is.

    Raises:
        InputError: one of them stands twice, a real one is the output of a release, or their columns differ.
    """
    _refuse_same(found)
    _refuse_released(found)
    _refuse_strangers(found)
    made = {fold(column.name) for column in found["synthetic"].columns}
    lacking = [column.name for column in found["real"].columns if fold(column.name) not in made]
    missing = [name for name in needed if fold(name) not in made]
    if missing:
        raise InputError(
            f"The synthetic table lacks {listed(missing)}, which says whose row it is: rows of one unit "
            "cannot be compared without it."
        )
    return {
        called: replace(one, columns=tuple(column for column in one.columns if fold(column.name) in made))
        for called, one in found.items()
    }, lacking


def _refuse_same(found: Mapping[str, OpenedRelation]) -> None:
    called = list(found)
    for place, first in enumerate(called):
        for second in called[place + 1 :]:
            if found[first].identity == found[second].identity:
                raise InputError(
                    f"{first}={shorten(repr(found[first].name))} and {second}="
                    f"{shorten(repr(found[second].name))} are the same table: there is nothing to compare. "
                    "Give another one."
                )


def _refuse_released(found: Mapping[str, OpenedRelation]) -> None:
    for called, one in found.items():
        if called != "synthetic" and one.released:
            swapped = " Are real= and synthetic= swapped?" if not found["synthetic"].released else ""
            raise InputError(
                f"{called}={shorten(repr(one.name))} is the synthetic output of a release: give the table "
                f"that holds the real rows.{swapped}"
            )


def _refuse_strangers(found: Mapping[str, OpenedRelation]) -> None:
    """A table has a column that the real one lacks, or the holdout lacks one that is compared."""
    real = {fold(column.name): column.name for column in found["real"].columns}
    made = {fold(column.name) for column in found["synthetic"].columns}
    for called, one in found.items():
        names = {fold(column.name): column.name for column in one.columns}
        common = [name for key, name in real.items() if key in names]
        if not common:
            raise InputError(
                f"real= and {called}= have no column in common: real has {listed(real.values(), 10)}; "
                f"{called} has {listed(names.values(), 10)}. Is it the right pair of tables?"
            )
        missing = [name for key, name in real.items() if key not in names]
        extra = [name for key, name in names.items() if key not in real]
        if extra or (called == "holdout" and any(fold(name) in made for name in missing)):
            parts = [f"{called} lacks {listed(missing)}"] if missing else []
            parts += [f"{called} has {listed(extra)}, which real lacks"] if extra else []
            selected = ", ".join(ident(name) for name in common)
            raise InputError(
                f"The tables have other columns: {'; '.join(parts)}. To compare the common ones, give "
                f"queries that select them: real={shorten(repr(f'SELECT {selected} FROM ...'), 1000)}, "
                "and the same of the other table."
            )
