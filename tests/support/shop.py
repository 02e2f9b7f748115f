"""A shop of customers, their orders and the items of these: codes, weights, a door with Gaussian noise.

A hidden taste of a customer and a hidden theme of an order tie rows together.
"""

import math

import numpy as np
from support.domains import attribute
from support.doors import FakeDoor, ran

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.methods.adaptive import Adaptive
from dpsyn_sql.planning.asking import Answered
from dpsyn_sql.planning.families import families_of_table
from dpsyn_sql.planning.limits import Evidence, Terms
from dpsyn_sql.planning.queries import Choice, Distances, Marginals, NoisyMarginal, NoisyResidual, Residuals
from dpsyn_sql.rows.sample.tables import TableRows, table_seed
from dpsyn_sql.source.relation import WEIGHT, PrivacyUnit, Relation, Source
from dpsyn_sql.sqltext.fragments import Fragment

MOST = {"orders": 10, "items": 5}
SOURCE = Source(
    Relation("shop", "table", Fragment("shop"), ()), PrivacyUnit("customer_id", 50, together=True)
)


def numeric(name, size):
    return Attribute(name, "INTEGER", "numeric", edges=tuple(range(size + 1)), ordered=True)


DOMAINS = {
    "customers": Domain((attribute("region", 8), attribute("segment", 4), numeric("age", 12))),
    "orders": Domain((attribute("channel", 3), numeric("month", 12), attribute("priority", 3))),
    "items": Domain((attribute("category", 8), numeric("price", 10), numeric("quantity", 5))),
}


def shop_families():
    """The families of the three tables."""
    customers = families_of_table(
        "customers", DOMAINS["customers"], None, [("orders", MOST["orders"])], groups={}
    )
    orders = families_of_table("orders", DOMAINS["orders"], customers, [("items", MOST["items"])], groups={})
    items = families_of_table("items", DOMAINS["items"], orders, [], groups={})
    return {"customers": customers, "orders": orders, "items": items}


def picked(rng, logits):
    """One code per row, by its row of log-weights."""
    return np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)


def bump(size, centre, width):
    """Log-weights (n, size) of codes around a centre (n,)."""
    return -(((np.arange(size) - np.asarray(centre)[:, None]) / width) ** 2)


def shop(customers, seed=0):
    """Real rows of the three tables, by name."""
    rng, families = np.random.default_rng(seed), shop_families()
    law = np.random.default_rng(20)  # the same shop for each seed
    segment = rng.choice(4, customers, p=[0.4, 0.3, 0.2, 0.1])
    region = picked(rng, law.normal(0, 0.8, (4, 8))[segment])
    age = picked(rng, bump(12, 3 + 1.5 * segment + 0.3 * region, 3.0))
    taste = picked(rng, law.normal(0, 0.8, (4, 3))[segment] + 0.1 * age[:, None] * [0, 1, -1])
    mean = 1.2 + 0.8 * segment + (taste == 1)
    number = np.minimum(rng.poisson(mean) * (rng.random(customers) < 0.9), MOST["orders"])
    root = np.column_stack([region, segment, age, number])
    top = TableRows(families["customers"], root, np.zeros(customers, np.int64), np.arange(customers))
    of = np.repeat(np.arange(customers), number)
    theme = picked(rng, law.normal(0, 1.0, (3, 3))[taste[of]])
    channel = picked(rng, law.normal(0, 0.8, (4, 3))[segment[of]] + law.normal(0, 0.9, (3, 3))[taste[of]])
    month = picked(rng, bump(12, 2 + 3 * theme + 0.3 * region[of], 4.0))
    priority = picked(rng, law.normal(0, 0.6, (3, 3))[channel] + law.normal(0, 0.6, (3, 3))[theme])
    items = np.minimum(
        1 + rng.poisson(0.4 + 0.5 * theme + 0.4 * (channel == 0)) - (theme == 2), MOST["items"]
    )
    items = np.maximum(items, 0)
    middle = TableRows(
        families["orders"], np.column_stack([channel, month, priority, items]), of, of.copy(), top
    )
    at = np.repeat(np.arange(of.size), items)
    category = picked(rng, law.normal(0, 1.0, (3, 8))[theme[at]] + law.normal(0, 0.6, (3, 8))[taste[of][at]])
    price = picked(rng, bump(10, 1 + category + 0.6 * segment[of][at], 2.5))
    quantity = picked(rng, bump(5, 0.5 * channel[at] + 0.1 * price, 1.2))
    leaf = TableRows(
        families["items"], np.column_stack([category, price, quantity]), at, middle.unit[at], middle
    )
    return {"customers": top, "orders": middle, "items": leaf}


class Door(FakeDoor):
    """A curator of the rows of one table, in weights, with the Gaussian noise that budgets buy (none if
    ``exact``). ``asked``: the attributes of all tables that were asked about."""

    def __init__(self, rows, seed=0, *, exact=False):
        self.rows, self.domain, self.exact = rows, rows.families.domain, exact
        self.rng, self.asked, self.weights = np.random.default_rng(seed), [], WEIGHT * rows.weights

    def table(self, query):
        shape = query.shape(self.domain)
        maps = query.maps or (None,) * len(query.attrs)
        cells = np.zeros(self.rows.total, np.int64)
        for name, bins, size in zip(query.attrs, maps, shape, strict=True):
            codes = self.rows.column(name).astype(np.int64)
            cells = cells * size + (codes if bins is None else np.array(bins)[codes])
        return np.bincount(cells, self.weights, math.prod(shape)).reshape(shape)

    def deviation(self, budget, number):
        return WEIGHT * math.sqrt(number / (2 * float(budget.rho)))

    def noisy(self, values, sigma):
        return values if self.exact else values + self.rng.normal(0, sigma, np.shape(values))

    def answer(self, question, budget):
        queries = question.candidates if isinstance(question, Choice) else question.queries
        self.asked += [query.attrs for query in queries]
        tables, sigma = [self.table(query) for query in queries], self.deviation(budget, len(queries))
        if isinstance(question, Marginals):
            return [
                NoisyMarginal(query.attrs, np.rint(self.noisy(table, sigma)), sigma, query.maps)
                for query, table in zip(queries, tables, strict=True)
            ]
        if isinstance(question, Residuals):
            return [self.residual(*pair, budget, queries) for pair in zip(queries, tables, strict=True)]
        assert isinstance(question, Distances | Choice)
        pairs = zip(tables, question.references, strict=True)
        apart = np.array([np.abs(table - reference).sum() for table, reference in pairs])
        if isinstance(question, Choice):
            scores = self.noisy(apart - np.array(question.allowances), sigma)
            return np.argsort(-scores, kind="stable")[: question.number].tolist()
        return np.rint(self.noisy(apart, sigma)).astype(int).tolist()

    def residual(self, query, table, budget, queries):
        one_row = sum(math.prod(k * (k - 1) for k in query.shape(self.domain)) for query in queries)
        scale = self.deviation(budget, one_row)
        for axis, size in enumerate(table.shape):
            table = size * table - table.sum(axis=axis, keepdims=True)
        return NoisyResidual(query.attrs, np.rint(self.noisy(table, scale)), scale, query.maps)


def fitted(rows, budget, given=None, seed=0, *, exact=False):
    """The model of one table, and the door that it asked."""
    door, terms = (
        Door(rows, seed, exact=exact),
        Terms(families=rows.families, evidence=Answered(Evidence(given=given))),
    )
    method = Adaptive()
    plan = method.plan(SOURCE, rows.families.domain, budget, terms)
    return ran(method, plan, door, terms), door


def drawn(model, units, above=None, given=None, seed=0):
    """Rows of a table of a tree."""
    sampler, families = model.sampler(), model.families
    none = np.zeros((0, families.drawn), np.uint8)
    if above is None:
        return TableRows.root(families, np.concatenate([none, *sampler.batches(units, seed)]))
    people = sampler.people(0, seed, given)
    codes = np.concatenate([none, *(batch.codes for batch in sampler.rows(people, seed))])
    return TableRows.below(above, families, people, codes)


def synthetic(real, epsilon, seed=0, units=None):
    """Synthetic rows of all tables of a shop, by name, with the legs sharing the budget by their columns."""
    whole, found, above = Budget.from_epsilon(epsilon, "1e-9"), dict(), None
    shares = dict(zip(real, whole.split([one.families.drawn for one in real.values()]), strict=True))
    for name, rows in real.items():
        own = table_seed(seed, name)
        given = above.given(rows.families, table_seed(seed, above.families.table)) if above else None
        model, _ = fitted(rows, shares[name], given, own % 2**32)
        units = units or round(model.total)
        above = found[name] = drawn(model, units, above, given, own)
    return found


def distance(one, other, names):
    """Total variation distance of the joint shares of two attributes in rows."""
    tables = []
    for rows in (one, other):
        sizes = [rows.families.domain[name].size for name in names]
        cells = np.ravel_multi_index([rows.column(name).astype(int) for name in names], sizes)
        tables.append(np.bincount(cells, minlength=math.prod(sizes)) / max(cells.size, 1))
    return np.abs(tables[0] - tables[1]).sum() / 2


def mean_distance(one, other, first, second):
    """The mean distance of all pairs of two groups of attributes."""
    return float(np.mean([distance(one, other, (a, b)) for a in first for b in second if a != b]))
