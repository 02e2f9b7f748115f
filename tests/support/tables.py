"""Small models of tables that are tied as a tree: customers, their orders, items of these, and returns."""

from dataclasses import dataclass, replace

import numpy as np
from support.domains import attribute
from support.families import dates

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.roles import ForeignKey, Key, PartOfKey
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.fit.belief import calibrate
from dpsyn_sql.fit.elimination import levelled_network
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.methods.models.networks import GraphicalModel
from dpsyn_sql.planning.families import UNIT, families_of_table

MOST = {"orders": 3, "items": 2, "visits": 4, "returns": 1}
PARENTS = {
    "customers": None,
    "orders": "customers",
    "visits": "customers",
    "items": "orders",
    "returns": "items",
}

DOMAINS = {
    "customers": (attribute("region", 3), attribute("segment", 2)),
    "orders": (attribute("channel", 2), attribute("region", 3)),
    "visits": (
        attribute("site", 3),
        Attribute("day", "DATE", "temporal", edges=dates(range(0, 121, 10)), ordered=True),
    ),
    "items": (attribute("category", 3),),
    "returns": (attribute("reason", 2),),
}

ROLES = {
    "customers": (Key("customer_id", "BIGINT"),),
    "orders": (Key("order_id", "INTEGER"), ForeignKey("customer_id", "BIGINT", "customers", "customer_id")),
    "visits": (ForeignKey("customer", "INTEGER", "customers", "customer_id"),),
    "items": (ForeignKey("order_id", "INTEGER", "orders", "order_id"), PartOfKey("line", "INTEGER")),
    "returns": (
        ForeignKey("order_id", "INTEGER", "items", "order_id"),
        ForeignKey("line", "INTEGER", "items", "line"),
        Key("id", "VARCHAR"),
    ),
}


@dataclass(frozen=True)
class TableModel(GraphicalModel):
    """Rows of a table given the rows above, which are evidence."""

    def network(self):
        made = levelled_network(self.beliefs, self.bins, self.within, self.domain.names)
        above = {self.domain.index(one.name) for one in self.families.above}
        nodes = [(n, level) for n, level in zip(made.nodes, made.levels, strict=True) if level != UNIT]
        codes = tuple(v if v in above else code for v, code in enumerate(made.codes))
        return replace(
            made,
            nodes=tuple(node for node, _ in nodes),
            levels=tuple(level for _, level in nodes),
            codes=codes,
            evidence={**made.evidence, **{v: self.bins[v] for v in sorted(above)}},
        )


def families():
    """Of every table, the root first."""
    found = {}
    for name, parent in PARENTS.items():
        children = [(child, MOST[child]) for child, own in PARENTS.items() if own == name]
        found[name] = families_of_table(
            name,
            Domain(DOMAINS[name]),
            found[parent] if parent else None,
            children,
            groups={},
            order="day" if name == "visits" else "",
        )
    return found


PAIRS = {
    "customers": [
        ("region", "segment"),
        ("region", "number of orders"),
        ("segment", "number of visits"),
        ("number of orders", "number of visits"),
    ],
    "orders": [
        ("channel", "region"),
        ("channel", "customers.region"),
        ("channel", "number of items"),
        ("channel", "customers.number of orders"),
        ("region", "customers.region"),
        ("number of items", "customers.segment"),
    ],
    "visits": [
        ("site", "site before"),
        ("site", "place of the row"),
        ("site", "customers.region"),
        ("day", "customers.segment"),
        ("day", "customers.number of visits"),
    ],
    "items": [
        ("category", "orders.channel"),
        ("category", "customers.region"),
        ("category", "number of returns"),
        ("number of returns", "orders.number of items"),
    ],
    "returns": [("reason", "items.category"), ("reason", "customers.segment")],
}


def model_of_table(made, seed, total=1000.0, bins=()):
    """A model in which some attributes depend on each other; every code is its own bin, but for the attributes
    in ``bins`` (bin of each code)."""
    rng, domain, potentials = np.random.default_rng(seed), made.domain, {}
    own = [np.asarray(dict(bins).get(one.name, np.arange(one.size))) for one in domain.attributes]
    sizes = tuple(int(one.max()) + 1 for one in own)
    for names in PAIRS[made.table]:
        first, second = sorted(domain.index(name) for name in names)
        potentials[first, second] = rng.normal(0, 1, (sizes[first], sizes[second]))
    tree = junction_tree(sizes, potentials, made.levels)
    within = tuple(1 / np.bincount(one)[one] for one in own)
    return TableModel(domain, total, calibrate(tree, potentials), tuple(own), within, families=made)


BINS = {"orders": {"customers.number of orders": [0, 0, 1, 1]}, "items": {"category": [0, 1, 1]}}
"""Of codes that a model takes together: evidence, and a column."""


def models(seed=1):
    """Of every table, the root first; ``site`` of visits follows from the visit before, too."""
    made = families()
    return {
        name: model_of_table(one, seed + place, bins=BINS.get(name, {}))
        for place, (name, one) in enumerate(made.items())
    }


def shape_of_table(name, never=()):
    roles, measured = ROLES[name], DOMAINS[name]
    order = (*(role.name for role in roles), *(one.name for one in measured))
    return Shape(measured, roles, order, tuple(never))
