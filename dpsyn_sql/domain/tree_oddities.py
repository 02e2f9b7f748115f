"""Rules of advice about columns that are best declared as trees: places, names and codes.

As in ``oddities.py``, a rule sees names, types and declarations alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.domain.cases import Case, Finding, Table, names_a_code, names_an_identifier, words_of
from dpsyn_sql.domain.shape import Undiscovered
from dpsyn_sql.domain.specs import DiscoverSpec

_LATITUDES = frozenset({"lat", "latitude"})
_LONGITUDES = frozenset({"lon", "lng", "long", "longitude"})
_MANY_TEXTS = frozenset(
    {"address", "city", "description", "query", "search", "street", "tailnum", "title", "word", "words"}
    | {"forename", "name", "names", "surname", "lastname", "firstname"}
)


def places(table: Table) -> Iterator[Finding]:
    """Latitude and longitude that are measured each by itself."""
    numbers = [case for case in table.cases if _is_number(case)]
    for latitude in numbers:
        for longitude in numbers:
            rest = _without(latitude.name, _LATITUDES)
            if rest is not None and rest == _without(longitude.name, _LONGITUDES):
                yield Finding(
                    latitude.name,
                    f"with {longitude.name!r} it is a place by its name, but each is measured by itself: "
                    "places in between are written",
                    f"declare {'_'.join((*rest, 'place'))}: {{type: point, columns: {{{latitude.name}: "
                    f"[lower, upper], {longitude.name}: [lower, upper]}}}} in their place",
                    "hint",
                )


def _without(name: str, words: frozenset[str]) -> tuple[str, ...] | None:
    """The words of a name without the one that is among ``words``; None if there is not one."""
    own = words_of(name)
    rest = tuple(word for word in own if word not in words)
    return rest if len(rest) == len(own) - 1 else None


def _is_number(case: Case) -> bool:
    item = case.item
    if not isinstance(item, Attribute | Undiscovered) or case.kind is None:
        return False
    tree = item.hierarchy if isinstance(item, Undiscovered) else item.leaves
    return tree is None and case.kind.family in ("float", "decimal") and case.name == item.name


def rare_text(table: Table, case: Case) -> tuple[str, str] | None:
    """Text of so many values, by its name, that few of them are shared by enough rows to be found."""
    item = case.item
    if not isinstance(item, Undiscovered) or item.hierarchy is not None or item.prefixes:
        return None
    if case.kind is None or case.kind.family != "text" or (table.csv and case.entry is None):
        return None
    if case.entry is not None and not isinstance(case.entry, DiscoverSpec):
        return None
    if names_a_code(case.name):
        return (
            "its name says that it holds codes: those that few rows share are written as __other__",
            "write type: taxonomy with ids: and prefixes: if the list of codes is public, or type: discover, "
            "prefixes: [3, 1]",
        )
    if names_an_identifier(case.name) or not _MANY_TEXTS.intersection(words_of(case.name)):
        return None
    return (
        "its name says that it has many values: those that few rows share are written as __other__",
        "write type: string with its alphabet: and longest:, which keeps their beginnings",
    )
