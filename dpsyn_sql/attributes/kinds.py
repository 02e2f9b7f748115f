"""The kinds of attributes: which module makes the codes and the values of each.

Modules are imported when they are asked for, so that reading a plan needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from dpsyn_sql.attributes.attribute import Attribute, Coded, Valued
    from dpsyn_sql.sqltext.fragments import Fragment

KINDS = {
    "categorical": "dpsyn_sql.attributes.labels",
    "numeric": "dpsyn_sql.attributes.bins",
    "temporal": "dpsyn_sql.attributes.bins",
    "tree": "dpsyn_sql.attributes.leaves",
}
"""The module of each kind, with the members of ``AttributeKind``."""


class AttributeKind(Protocol):
    """The codes and the values of attributes of one kind."""

    def code(self, attribute: Attribute, slot: str, decimal: str, *, joined: bool) -> Coded:
        """As ``Attribute.code``: every row has a code, whatever its value."""

    def value(self, attribute: Attribute, code: Fragment, bits: Fragment, slot: str) -> Valued:
        """As ``Attribute.value``: a written value has the code that it is written for."""


def kind_of(attribute: Attribute) -> AttributeKind:
    """The kind of an attribute."""
    kind = "tree" if attribute.leaves is not None else attribute.kind
    return cast(AttributeKind, import_module(KINDS[kind]))
