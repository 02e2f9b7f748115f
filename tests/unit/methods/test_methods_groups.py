"""Hidden groups: found where a mixture tells all pairs, left alone elsewhere, and kept in rows."""

from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
from support.domains import SOURCE, domain_of
from support.doors import FakeCurator, ran, table_of

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.methods.adaptive import Adaptive
from dpsyn_sql.planning.limits import Terms
from dpsyn_sql.planning.row_labels import labelled
from dpsyn_sql.planning.workload import Workload

SETTINGS = Adaptive.constants
ROWS, SIZES = 30_000, (3, 2, 4, 3, 2, 5, 2, 3, 4, 2)


class Labelling(FakeCurator):
    """Exact tables, with labels, and the scales of their noise."""

    def __init__(self, domain, codes):
        super().__init__(domain, partial(table_of, domain, codes), sigma=10.0)
        self.codes, self.labelled = codes, []

    def labelled_tables(self, question):
        self.labelled.append(question.queries)
        columns = dict(zip(self.domain.names, self.codes, strict=True))
        codes = [*self.codes, *(label.codes(columns) for label in question.labels)]
        wider = labelled(self.domain, question.labels)
        return [table_of(wider, codes, query) for query in question.queries]


def of_groups(number=4, seed=1):
    rng = np.random.default_rng(seed)
    group = rng.choice(number, ROWS, p=rng.dirichlet(np.full(number, 8.0)))
    profiles = [rng.dirichlet(np.full(size, 0.4), number) for size in SIZES]
    return [
        (rng.random(ROWS)[:, None] > np.cumsum(own[group], axis=1)).sum(axis=1).clip(0, own.shape[1] - 1)
        for own in profiles
    ]


def of_a_chain(seed=1):
    """Every attribute follows the one before it: a tree holds this, no few groups do."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, SIZES[0], ROWS)]
    for size in SIZES[1:]:
        codes.append(np.where(rng.random(ROWS) < 0.7, codes[-1] % size, rng.integers(0, size, ROWS)))
    return codes


def run(codes, units=2 * 10**13, terms=None, **changes):
    domain = domain_of(SIZES)
    door = Labelling(domain, codes)
    method = type("Changed", (Adaptive,), {"constants": replace(SETTINGS, **changes)})()
    terms = terms or Terms()
    plan = method.plan(SOURCE, domain, Budget("gdp", units), terms)
    model = ran(method, plan, door, terms)
    assert sum(budget.amount for _, _, budget in door.asked) <= plan.budget.amount
    return model, door


def four_way(model, codes):
    """The mean distance of tables of four attributes, of rows and model."""
    rows = np.concatenate(list(model.sampler().batches(ROWS, 3))).astype(np.int64).T
    far = []
    for scope in list(combinations(range(len(SIZES)), 4))[::7]:
        shape = [SIZES[place] for place in scope]
        tables = [
            np.bincount(np.ravel_multi_index([own[p] for p in scope], shape), minlength=np.prod(shape))
            for own in (codes, rows)
        ]
        far.append(np.abs(tables[0] - tables[1]).sum() / 2 / ROWS)
    return float(np.mean(far))


def test_groups_are_found_and_kept_in_rows():
    codes = of_groups()
    model, door = run(codes)
    assert not model.balance and model.beliefs.tree.sizes[len(SIZES)] in SETTINGS.groups
    (queries,) = door.labelled
    assert {query.attrs[1] for query in queries} == set(door.domain.names)
    plain, _ = run(codes, groups=(1,))
    assert plain.balance
    assert four_way(model, codes) < 0.8 * four_way(plain, codes)
    columns = model.sampler().batches(10, 1)
    assert next(iter(columns)).shape == (10, len(SIZES))  # the group is not written


def test_a_chain_is_left_to_the_tree():
    codes = of_a_chain()
    model, door = run(codes)
    assert model.balance and not door.labelled
    assert len(model.beliefs.tree.sizes) == len(SIZES)


def test_independent_columns_have_no_groups():
    rng = np.random.default_rng(3)
    model, door = run([rng.integers(0, size, ROWS) for size in SIZES], screen_most=0.0)
    assert model.balance and not door.labelled


def test_the_tree_stays_if_it_foretells_the_labels_as_well():
    """The budget of the label is spent then; the pairs are fitted a last time."""
    codes = of_groups()
    model, door = run(codes, group_worth=0.0)
    assert model.balance and len(door.labelled) == 1
    assert len(model.beliefs.tree.sizes) == len(SIZES)


def test_with_a_target_nothing_is_asked_of_groups():
    _, door = run(of_groups(), terms=Terms(workload=Workload(target="x0")))
    assert not door.labelled


def test_the_star_answers_as_its_rows_are():
    model, _ = run(of_groups())
    network = model.network()
    assert len(network.codes) == len(SIZES)
    rows = np.concatenate(list(model.sampler().batches(200_000, 5))).astype(np.int64).T
    for pair in ((0, 1), (2, 9)):
        shape = [SIZES[place] for place in pair]
        cells = np.bincount(np.ravel_multi_index([rows[p] for p in pair], shape), minlength=np.prod(shape))
        found = model.project([f"x{place}" for place in pair]).ravel() / model.total
        np.testing.assert_allclose(cells / 200_000, found, atol=0.005)
