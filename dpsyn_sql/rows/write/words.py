"""What an output says of itself, in words: comments of tables and columns, and one statement of the promise.

Public facts of its certificate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.domain.shape import (
    Constant,
    Derived,
    ForeignKey,
    Key,
    PartOfKey,
    PublicKey,
    RandomKey,
    Role,
    Shape,
    UnitId,
)
from dpsyn_sql.rows.write.persist import StoredRelease
from dpsyn_sql.sqltext.fragments import Fragment, ident, string_literal
from dpsyn_sql.sqltext.render import render

_DOMAIN_OF = {
    "declared": "the domain is declared",
    "catalog": "the domain is from the catalog",
    "discovered": "the domain is discovered with noise",
}


def comment_statements(table: Fragment, shape: Shape, kept: StoredRelease) -> Iterator[Fragment]:
    """Statements that comment a new table and each of its columns."""
    shown = f"Certificate: FROM dpsyn_certificate({string_literal(kept.name)});"
    yield _comment("TABLE", table, f"{statement_of(kept.facts, kept.name)} {shown}")
    described = column_comments(shape)
    for name in shape.order or described:
        # The space: without it the end of the name could read like the name of a source.
        yield _comment("COLUMN", Fragment(f"{table} .{ident(name)}"), described[name])


def column_comments(shape: Shape) -> dict[str, str]:
    """What a column of the output is, by name."""
    described = {column.name: _measured(item) for item in shape.domain.attributes for column in item.columns}
    return described | {role.name: _made(role) for role in shape.roles}


def statement_of(facts: Mapping[str, Any], name: str) -> str:
    """What a reader of the rows should know first, from a certificate. Epsilon and delta have all digits: a
    rounded bound would claim more."""
    guarantee = facts["guarantee"]
    return (
        "Synthetic rows, drawn from a model of noisy answers. Differential privacy: "
        f"epsilon {guarantee['epsilon']!r}, delta {guarantee['delta']!r}, for one privacy unit added or "
        f"removed; privacy unit: {guarantee['privacy_unit']}; rows per unit: at most "
        f"{guarantee['rows_per_unit']}. Method: {facts['method']}. Release: {name}, id "
        f"{facts['release']}."
    )


def readable_literal(text: str) -> Fragment:
    """A text literal of one piece: a statement that takes no expression cannot splice a NUL in."""
    return string_literal(text.replace("\x00", "\\0"))


def _comment(what: str, name: Fragment, text: str) -> Fragment:
    return render("write/comment", what=Fragment(what), name=name, text=readable_literal(text))


def _measured(attribute: Attribute) -> str:
    codes = "1 code" if attribute.size == 1 else f"{attribute.size} codes"
    if attribute.leaves is not None:
        codes = f"{len(attribute.leaves.codes)} leaves of the hierarchy {attribute.name!r} in {codes}"
        return f"Synthetic values: {codes}; {_DOMAIN_OF[attribute.origin]}."
    return f"Synthetic values: {attribute.kind}, {codes}; {_DOMAIN_OF[attribute.origin]}."


def _made(role: Role) -> str:
    if isinstance(role, Constant):
        return "Constant, as the owner states it; not measured."
    if isinstance(role, Derived):
        return f"Computed from other columns of the synthetic row: {role.expression}"
    if isinstance(role, ForeignKey):
        return f"Key of the row above in {role.table}, which this row was drawn for."
    if isinstance(role, RandomKey):
        which = "an earlier row" if role.earlier else "a row"
        return f"Key of {which} of {role.table} at random; measured is only whether there is one."
    return _KEYS[type(role)]


_KEYS: dict[type[Role], str] = {
    Key: "Fresh key, unrelated to the keys of the source.",
    UnitId: "Fresh unit id, unrelated to the ids of the source.",
    PartOfKey: "Part of a key: the number of the row within its parent.",
    PublicKey: "Key of a row of a public table at random, within the group that was drawn.",
}
