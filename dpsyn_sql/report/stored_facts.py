"""Read a stored certificate, and the attributes in it.

Anybody can edit it, so all that is computed from it later, or shown, has its type and its range here; other
facts are unused. The domain is checked where its attributes are read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from dpsyn_sql.accounting.events import cost_units
from dpsyn_sql.attributes.attribute import Attribute, Fill, Granularity
from dpsyn_sql.attributes.kinds import KINDS
from dpsyn_sql.attributes.leaves import leaves_of
from dpsyn_sql.attributes.types import Edge, parse_type
from dpsyn_sql.errors import InputError, InternalError
from dpsyn_sql.report.certificate import event_of

_T = TypeVar("_T")


class _Facts(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


_Figure = Annotated[float, Field(gt=-1e300, lt=1e300)]
_Count = Annotated[int, Field(ge=0, lt=2**63)]


class _Guarantee(_Facts):
    epsilon: Annotated[float, Field(gt=0, lt=1e300)]
    delta: Annotated[float, Field(ge=0, lt=1)]
    rho: Annotated[float, Field(ge=0, lt=1e300)]
    accounting: str
    definition: str
    neighbours: str
    privacy_unit: str
    rows_per_unit: Annotated[int, Field(ge=1, lt=2**63)]


class _Budget(_Facts):
    kind: Literal["gdp", "pure"]
    reserved: Annotated[int, Field(gt=0, lt=10**300, alias="reserved_units_of_1e-15")]
    threshold_delta: Annotated[float, Field(ge=0, lt=1)]


class _Mechanism(_Facts):
    """A step that is about no column has None, or nothing, as its column; all other facts are numbers."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int | float]
    step: str
    event: str
    column: str | None = None


class _Source(_Facts):
    name: str
    kind: str


class _Role(_Facts):
    name: str
    role: str


class _Above(_Facts):
    name: str
    table: str
    attribute: str


class _Below(_Facts):
    name: str
    table: str
    number: bool


class _Families(_Facts):
    hidden: list[str]
    persons: list[str]
    size: str
    order: str
    table: str = ""
    above: list[_Above] = []
    below: list[_Below] = []


class _Table(_Facts):
    """A table of a release of several."""

    table: str
    parent: str | None
    most: Annotated[int, Field(ge=1, lt=2**63)]
    rows_per_unit: Annotated[int, Field(ge=1, lt=2**63)]


class _Database(_Facts):
    """The release of several tables that a table belongs to: the root first, parents before children."""

    name: str
    release: str
    table: str
    tables: Annotated[list[_Table], Field(min_length=1)]
    public_tables: list[str]
    not_protected: list[str]

    @model_validator(mode="after")
    def _is_tree(self) -> Self:
        before = list[str]()
        for position, table in enumerate(self.tables):
            if table.table in before or (table.parent is None if position else table.parent is not None):
                raise ValueError("not a tree")
            if table.parent is not None and table.parent not in before:
                raise ValueError("a table stands before its parent")
            before.append(table.table)
        if self.table not in before:
            raise ValueError("the table is not of the tree")
        return self


class _Public(_Facts):
    statements: list[str]
    excluded: list[str]
    never: list[str]
    domain: list[dict[str, Any]]
    roles: list[_Role]
    families: _Families | None = None


class _Sampling(_Facts):
    rows: _Count


class _Share(_Facts):
    share: _Figure
    standard_error: _Figure


class _Verdict(_Facts):
    verdict: Literal["good", "rough", "do not use"]
    why: str = ""
    harm: _Figure = 0.0


class _Lost(_Verdict):
    """Of a column; a key is missing where there is nothing to tell."""

    name: str
    lost: str = ""
    other: _Share | None = None
    prefixes: _Share | None = None
    wide_bins: list[_Share] = []


class _Pairs(_Facts):
    measured: _Count
    modelled: _Count
    independent: _Count
    seen_from: _Figure = 0.0


class _Losses(_Facts):
    table: _Verdict
    dependences: _Verdict
    columns: list[_Lost]
    pairs: _Pairs
    warnings: list[str]


class _Certificate(_Facts):
    release: str
    method: str
    debited_at: str
    guarantee: _Guarantee
    budget: _Budget
    mechanisms: list[_Mechanism]
    source: _Source
    public_facts: _Public
    sampling: _Sampling
    not_promised: list[str]
    versions: dict[str, str]
    losses: _Losses
    database: _Database | None = None

    @model_validator(mode="after")
    def _says_what_is_above(self) -> Self:
        families = self.public_facts.families
        if self.database is not None:
            if families is None or not {"above", "below"} <= families.model_fields_set:
                raise ValueError("a table of several without the attributes above it")
            if families.table != self.database.table:
                raise ValueError("the attributes are of another table")
        return self


def checked_facts(certificate: str) -> dict[str, Any]:
    """The facts of a certificate.

    Raises:
        ValueError: it is no JSON, or a fact is missing or is not what ``release()`` writes.
        ArithmeticError, InternalError, LookupError, TypeError: a mechanism is none of ours, or has no price.
        RecursionError: JSON in too many levels.
    """
    facts: dict[str, Any] = json.loads(certificate)
    parsed = _Certificate.model_validate(facts)
    for mechanism in facts["mechanisms"]:
        cost_units(event_of(mechanism), parsed.budget.kind)
    json.dumps(facts, ensure_ascii=False).encode()  # half of a character cannot be shown
    return facts


def undamaged(read: Callable[[], _T], part: str) -> _T:
    """What is read; if a part cannot be made from it, it is damaged.

    Raises:
        InputError: it is damaged; ``part`` says where.
    """
    results: list[_T] = []
    try:
        results.append(read())
    except InputError:
        raise
    except (
        ArithmeticError,
        AttributeError,
        InternalError,  # of an attribute whose parts do not fit together
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ):
        results = []
    require(bool(results), part)
    return results[0]


def require(holds: bool, part: str) -> None:
    """Refuse what does not hold of a stored release.

    Raises:
        InputError: ``part`` is damaged.
    """
    if not holds:
        raise InputError(
            f"The stored release was changed or is damaged: {part}. The same call of release() "
            "with replace=True stores it again and costs nothing more; or restore a backup of the file."
        )


def facts_of(certificate: str) -> dict[str, Any]:
    """The facts of a stored certificate.

    Raises:
        InputError: it is damaged.
    """
    return undamaged(lambda: checked_facts(certificate), "its certificate")


# -- attributes ------------------------------------------------------------------------------------------


def attribute_of_facts(facts: Mapping[str, Any]) -> Attribute:
    """An attribute as ``certificate.attribute_facts`` wrote it."""
    edges = tuple(_edge(facts, edge) for edge in facts.get("edges", ()))
    first, last = facts.get("beyond", (0, 0))
    label_names, labels = tuple(map(str, facts.get("named", ()))), tuple(facts.get("labels", ()))
    form = str(facts.get("form", ""))
    require(not form or form in KINDS, f"the form of {facts['name']!r} in its certificate")
    require(len(label_names) in (0, len(labels)), f"the labels of {facts['name']!r} in its certificate")
    attribute = Attribute(
        name=facts["name"],
        sql_type=facts["type"],
        kind=facts["kind"],
        labels=labels,
        edges=edges,
        other=bool(facts.get("other", False)),
        nullable=facts["nullable"],
        ordered=facts["ordered"],
        origin=facts["origin"],
        granularity=_granularity(facts),
        fill=_fill(facts, edges),
        beyond=(int(first), int(last)),
        prefixes=tuple(facts.get("prefixes", ())),
        leaves=leaves_of(facts["leaves"]) if "leaves" in facts else None,
        named=label_names,
        form=form,
    )
    require(attribute.size == facts["codes"], f"the codes of {attribute.name!r} in its certificate")
    return attribute


def _granularity(facts: Mapping[str, Any]) -> Granularity | None:
    stated = facts.get("granularity")
    if stated is None or isinstance(stated, int) or stated == "month":
        return stated
    return Decimal(stated)


def _fill(facts: Mapping[str, Any], edges: Sequence[Edge]) -> Fill:
    """The cuts of every bin; those of a bin that is filled evenly over its edges are not stored."""
    if not facts.get("fill"):
        return ()
    return tuple(
        bin_edges if cuts is None else tuple(_edge(facts, cut) for cut in cuts)
        for cuts, bin_edges in zip(facts["fill"], pairwise(edges), strict=True)
    )


def _edge(facts: Mapping[str, Any], edge: int | float | str) -> Edge:
    if not isinstance(edge, str):
        return edge
    kind = parse_type(facts["type"])
    if kind is None or not kind.temporal:
        return Decimal(edge)
    if kind.family == "date":
        return date.fromisoformat(edge)
    return time.fromisoformat(edge) if kind.family == "time" else datetime.fromisoformat(edge)
