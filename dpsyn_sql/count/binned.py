"""Marginals over bins as marginals of a domain of their own, so that they are counted like all others.

PRIVATE side, but nothing here is private: bins are public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.planning.queries import Map, MarginalQuery


@dataclass(frozen=True, slots=True)
class BinnedMarginals:
    """``domain`` has an attribute for each attribute and map that the queries use.

    ``columns[i]``: position in the first domain, and the map, of attribute i. ``queries``: the same
    marginals, in order, over ``domain``.
    """

    domain: Domain
    columns: tuple[tuple[int, Map | None], ...]
    queries: tuple[MarginalQuery, ...]

    @classmethod
    def of(cls, queries: Sequence[MarginalQuery], domain: Domain) -> BinnedMarginals:
        """The marginals ``queries`` of ``domain``, whose maps were checked."""
        names: dict[tuple[str, Map | None], str] = {}
        for query in queries:
            for key in _columns(query):
                names.setdefault(key, f"{len(names)} {key[0]}")  # one attribute may have several maps
        attributes = (
            Attribute(name, "INTEGER", "categorical", labels=tuple(range(_size(domain, *key))))
            for key, name in names.items()
        )
        return cls(
            Domain(tuple(attributes)),
            tuple((domain.index(name), bins) for name, bins in names),
            tuple(MarginalQuery(tuple(names[key] for key in _columns(query))) for query in queries),
        )


def _columns(query: MarginalQuery) -> list[tuple[str, Map | None]]:
    return list(zip(query.attrs, query.maps or (None,) * len(query.attrs), strict=True))


def _size(domain: Domain, name: str, bins: Map | None) -> int:
    return domain[name].size if bins is None else max(bins) + 1
