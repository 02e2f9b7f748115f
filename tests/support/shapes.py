"""Tables of measured columns and nothing else: their shape, their domain, and the query that decodes them."""

from dpsyn_sql.attributes.file import shape_of
from dpsyn_sql.attributes.output import output_statement, units_of
from dpsyn_sql.attributes.shape import Shape


def shape_of_domain(domain):
    names = tuple(column.name for attribute in domain.attributes for column in attribute.columns)
    return Shape(domain.attributes, order=names)


def domain_of(spec, relation, exclude=()):
    return shape_of(spec, relation, exclude, discover=False).domain


def decode_statement(domain, staged, seed):
    return output_statement(shape_of_domain(domain), staged, 0, units_of(None, 0), seed)
