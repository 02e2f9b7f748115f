"""Releases of the tables of ``support.tables`` as they are stored: certificates, noisy answers, models."""

import json
from dataclasses import replace

import numpy as np
from support.tables import MOST, PARENTS, models, shape_of_table

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, event_to_dict
from dpsyn_sql.fit.variances import NO_VARIANCES
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.planning.tree import PublicTable, Reference, Table, Tree
from dpsyn_sql.report.certificate import (
    attribute_facts,
    certificate_in_tree,
    claim_of,
    name_of_table,
)
from dpsyn_sql.report.labels import code_labels
from dpsyn_sql.rows.write.families import together
from dpsyn_sql.rows.write.persist import StoredRelease, drawn_from
from dpsyn_sql.source.relation import Relation
from dpsyn_sql.sqltext.fragments import ident

KEYS = {"customers": ("customer_id",), "orders": ("order_id",), "items": ("order_id", "line")}
BUDGET = Budget.from_epsilon(1, "1e-9")
SIGMA = 5.0


def relation(name):
    return Relation(name, "table", ident(name), ())


def tree():
    tables = [
        Table(
            name,
            relation(name),
            KEYS.get(name, ()),
            parent,
            most=MOST.get(name, 1),
            references=(Reference(("payee",), "customers", "other"),) if name == "orders" else (),
        )
        for name, parent in PARENTS.items()
    ]
    return Tree(tuple(tables), (PublicTable("products", relation("products")),))


def measured(model, seed=0):
    """A noisy table of each column, and of the first one with the first above."""
    rng, families = np.random.default_rng(seed), model.families
    names = model.domain.names
    wanted = [[name] for name in names[: families.drawn]]
    wanted += [[names[0], one.name] for one in families.above[:1]]
    found = []
    for attrs in wanted:
        exact = model.project(attrs)
        found.append(
            NoisyMarginal(tuple(attrs), np.rint(exact + rng.normal(0, SIGMA, exact.shape)).astype(int), SIGMA)
        )
    return found


def facts_of_table(name, model, shape, rows, release):
    """A certificate of the table by itself, with the claim of all."""
    claimed = claim_of(BUDGET, "1e-9")
    event = event_to_dict(GaussianEvent(20.0, 1))
    columns = [{"name": one.name, "tables": 1, "verdict": "good"} for one in shape.measured]
    if name == "orders":
        columns[0] |= {"verdict": "rough", "why": "noise", "harm": 1.5}
    verdict = (
        {"verdict": "rough", "why": "half of it is noise", "harm": 0.5}
        if name == "orders"
        else {"verdict": "good"}
    )
    return {
        "release": release,
        "debited_at": "2026-11-01",
        "guarantee": {
            "epsilon": claimed.epsilon,
            "delta": claimed.delta,
            "bounds": claimed.bounds,
            "accounting": "",
            "rho": 0.1,
            "definition": "",
            "neighbours": "",
            "privacy_unit": "row",
            "rows_per_unit": 1,
            "together": True,
        },
        "mechanisms": [{"step": "one-way marginals", "marginals": 2, **event}],
        "budget": {
            "kind": "gdp",
            "reserved_units_of_1e-15": 10**12,
            "used_units_of_1e-15": 10**11,
            "threshold_delta": 0.0,
        },
        "source": {"name": name, "kind": "table"},
        "public_facts": {
            "statements": [],
            "excluded": [],
            "domain": [attribute_facts(one) for one in model.domain.attributes],
            "roles": [role.facts() for role in shape.roles],
            "never": list(shape.never),
            "families": model.families.facts,
        },
        "method": "adaptive",
        "sampling": {"rows": rows, "seed": 1, "drawn": "so"},
        "not_promised": ["much"],
        "versions": {"dpsyn_sql": "0.2"},
        "losses": {
            "table": verdict,
            "dependences": {"verdict": "good"},
            "columns": columns,
            "pairs": {"measured": 1, "modelled": 0, "independent": 0},
            "warnings": [f"few rows of {name}"] if name == "items" else [],
        },
    }


def stored_tables(database="shop", release="id-1"):
    """What is stored of each table, by name, parents first."""
    found, ties = {}, tree()
    for place, (name, model) in enumerate(models().items()):
        shape = together(shape_of_table(name), model.families)
        alone = facts_of_table(name, model, shape, 100 + place, release)
        facts = certificate_in_tree(alone, ties, name, name=database, budget=BUDGET)
        found[name] = StoredRelease(
            name_of_table(ties, database, name),
            facts["release"],
            facts["debited_at"],
            json.loads(json.dumps(facts)),
            shape,
            model,
            drawn_from(model),
            measured(model, place),
            [code_labels(attribute) for attribute in model.domain.attributes],
            NO_VARIANCES,
            found.get(PARENTS[name]),
        )
    return found


def without(found, table):
    """The same without one of the lowest tables, as another release of the same name has it."""
    kept = {}
    for name, one in found.items():
        if name != table:
            database = one.facts["database"]
            tables = [own for own in database["tables"] if own["table"] != table]
            facts = {**one.facts, "database": {**database, "tables": tables}}
            kept[name] = replace(one, facts=facts, parent=kept.get(PARENTS[name]))
    return kept
