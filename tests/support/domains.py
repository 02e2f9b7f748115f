"""Domains of categorical attributes whose labels are 0, 1, ..., for tests that care for their sizes alone; and
a source whose rows nobody reads."""

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.source.relation import Relation, Source

SOURCE = Source(Relation("people", "table", "people", ()))


def attribute(name, size, ordered=True, other=False, nullable=False):
    return Attribute(name, "INTEGER", "categorical", tuple(range(size)), (), other, nullable, ordered)


def domain_of(sizes, ordered=False):
    """Attributes x0, x1, ... of these sizes."""
    return Domain(tuple(attribute(f"x{place}", size, ordered) for place, size in enumerate(sizes)))
