"""The kinds of columns: which module declares them, and makes their codes and values.

A kind is a module and its lines here. Its ``SPECS`` are declarations by the ``type:`` of the domain file; its
``code`` and ``value`` are those of attributes of its name. Modules are imported when they are asked for, so
that reading a plan needs none of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from dpsyn_sql.errors import InternalError

if TYPE_CHECKING:
    from dpsyn_sql.attributes.attribute import Attribute, Coded, Valued
    from dpsyn_sql.attributes.spec import ColumnSpec
    from dpsyn_sql.sqltext.fragments import Fragment

KINDS = {
    "numeric": "dpsyn_sql.attributes.bins",
    "temporal": "dpsyn_sql.attributes.bins",
    "categorical": "dpsyn_sql.attributes.labels",
    "discover": "dpsyn_sql.attributes.discovered",
    "point": "dpsyn_sql.attributes.points",
    "dyadic": "dpsyn_sql.attributes.points",
    "string": "dpsyn_sql.attributes.text",
    "taxonomy": "dpsyn_sql.attributes.taxonomy",
    "tree": "dpsyn_sql.attributes.leaves",
    "key": "dpsyn_sql.attributes.made",
    "constant": "dpsyn_sql.attributes.made",
    "derived": "dpsyn_sql.attributes.made",
}
"""The module of each ``type:`` of the domain file, and of each kind of attribute."""


def specs() -> dict[str, type[ColumnSpec]]:
    """The declaration of each ``type:``, in the order of ``KINDS``."""
    declared = {name: getattr(import_module(module), "SPECS", {}) for name, module in KINDS.items()}
    return {name: of_module[name] for name, of_module in declared.items() if name in of_module}


class AttributeKind(Protocol):
    """The codes and the values of attributes of one kind."""

    def code(self, attribute: Attribute, slot: str, decimal: str, *, joined: bool) -> Coded:
        """As ``Attribute.code``: every row has a code, whatever its value."""

    def value(self, attribute: Attribute, code: Fragment, bits: Fragment, slot: str) -> Valued:
        """As ``Attribute.value``: a written value has the code that it is written for."""


def kind_of(attribute: Attribute) -> AttributeKind:
    """What makes the codes and the values of an attribute.

    Raises:
        InternalError: nothing does; its module declares columns that have no codes.
    """
    form = attribute.form or ("tree" if attribute.leaves is not None else attribute.kind)
    module = import_module(KINDS[form]) if form in KINDS else None
    if not hasattr(module, "code") or not hasattr(module, "value"):
        raise InternalError(f"attribute {attribute.name!r} is of the kind {form!r}, which has no codes")
    return cast(AttributeKind, module)
