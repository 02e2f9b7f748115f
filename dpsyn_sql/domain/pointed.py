"""Which columns of the source belong to which point of a domain file.

A point has a name of its own and stands in the place of its first column. Nothing here reads a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from dpsyn_sql.domain.entries import PointColumns
from dpsyn_sql.domain.matching import Faulty, Fitted, Joined, Matching
from dpsyn_sql.source.names import fold, listed, meant
from dpsyn_sql.source.relation import Column

Find = Callable[[str], str | None]
"""From a name as it is written to a column of the source, or None."""


def pointed(
    matching: Matching,
    columns: Sequence[Column],
    dropped: Collection[str],
    unit: Column | None,
    find: Find,
    faults: list[str],
) -> dict[str, Fitted]:
    """What becomes of each column that belongs to a point: the point itself, or ``Joined``.

    Args:
        matching: the declarations, and the declared name of each column.
        columns: of the source, in order.
        dropped: names of columns that are not written; a point that loses all its columns is not either.
        unit: the privacy unit's column.
        find: the column of a name.
        faults: gets what is wrong.
    """
    points = {name: entry for name, entry in matching.entries.items() if isinstance(entry, PointColumns)}
    owners = _owners(points, find)
    by_name = {column.name: column for column in columns}
    made: dict[str, Fitted] = {}
    for name, entry in points.items():
        own = [find(written) for written, _, _ in entry.box]
        members = [by_name[column] for column in own if column is not None]
        problems = list(_problems(name, entry, matching, find, owners, by_name, unit))
        left = [column.name for column in members if column.name in dropped]
        if left and len(left) < len(own):
            problems.append(f"exclude= leaves out {listed(left)}; leave out all of its columns or none")
        faults.extend(f"column {name!r}: {problem}" for problem in problems)
        kept = [column.name for column in columns if column in members and column.name not in left]
        made.update((column, Faulty if problems else Joined) for column in kept)
        if kept and not problems:
            made[kept[0]] = matching.point(name, entry, members, faults)
    return made


def _owners(points: Mapping[str, PointColumns], find: Find) -> dict[str, Counter[str]]:
    """How often each point names each column."""
    owners: dict[str, Counter[str]] = {}
    for name, entry in points.items():
        for written, _, _ in entry.box:
            column = find(written)
            if column is not None:
                owners.setdefault(column, Counter())[name] += 1
    return owners


def _problems(
    name: str,
    entry: PointColumns,
    matching: Matching,
    find: Find,
    owners: Mapping[str, Counter[str]],
    columns: Mapping[str, Column],
    unit: Column | None,
) -> Iterator[str]:
    if find(name) is not None:
        yield "a point needs a name that no column of the source has; rename it"
    alike = [other for other in matching.entries if fold(other) == fold(name) and other != name]
    if alike:
        yield f"{alike[0]!r} differs by letter case only; rename one of them"
    for written, _, _ in entry.box:
        column = find(written)
        if column is None:
            yield f"the source has no column {written!r}; {meant(written, columns)}"
        elif column in matching.names:
            yield f"{written!r} has an entry of its own too; remove it, since the point holds the column"
        elif owners[column].total() > 1:
            also = [other for other in owners[column] if other != name]
            yield (
                f"{written!r} belongs to {also[0]!r} too; name it in one of them"
                if also
                else (f"{written!r} is named twice")
            )
        elif unit is not None and column == unit.name:
            yield f"{written!r} is the privacy unit, which gets fresh ids; a point cannot hold it"
