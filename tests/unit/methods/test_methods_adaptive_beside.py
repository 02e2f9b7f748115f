"""Pairs beside the tree: chosen if the cap alone refuses them, measured, and met by the sample."""

from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from support.domains import SOURCE, domain_of
from support.doors import FakeCurator, ran, table_of

from dpsyn_sql.accounting.budget import MEAN_ABSOLUTE, Budget, NoiseLaw
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.variances import Components, Dispersions
from dpsyn_sql.methods.adaptive import Adaptive
from dpsyn_sql.methods.adaptive.measure import components
from dpsyn_sql.methods.adaptive.model import Task, independence, working_domain
from dpsyn_sql.methods.adaptive.select import selected
from dpsyn_sql.planning.families import families_of_table
from dpsyn_sql.planning.limits import Terms

SETTINGS = Adaptive.constants
SIZES = (8,) * 5


@pytest.mark.parametrize(("gain", "outside"), [(1.0, 1), (0.6, 0)])
def test_only_the_cap_sends_a_pair_beside_the_tree_and_only_if_it_is_worth_more(gain, outside):
    law = NoiseLaw(10.0 / MEAN_ABSOLUTE, 0.5)
    scores = {(0, 1): 1e5, (1, 2): 1e4, (0, 2): 0.0}
    taken = selected({**scores, (0, 2): 1.0}, {}, {}, (8, 8, 8), (), 200, law, SETTINGS)
    assert [*taken] == [(0, 1), (1, 2)]  # a triangle has 512 cells
    first = (64**0.6, 64 / 64**0.3)
    price = law.mean_absolute * ((3 * first[0]) ** 0.5 * 3 - (2 * first[0]) ** 0.5 * 2) * first[1]
    scores[0, 2] = gain * 1.05 * SETTINGS.charge * price / SETTINGS.beside
    beside = set()
    taken = selected(scores, {}, {}, (8, 8, 8), (), 200, law, SETTINGS, beside)
    assert len(beside) == outside and beside == taken.keys() - {(0, 1), (1, 2)}
    none = selected({(0, 1): 1e5, (1, 2): 1e4, (0, 2): 1e4}, {}, {}, (8, 8, 8), (), 1e6, law, SETTINGS, set())
    assert len(none) == 3


def released(monkeypatch, kind, beside, *, root=False):
    """A release of five attributes that all depend on each other, with a tree that has room for few pairs; of
    the ``root`` of a tree of tables with the number of rows below, which depends on the first of them."""
    rng = np.random.default_rng(2)
    hidden = rng.integers(0, 8, 20_000)
    codes = [np.where(rng.random(20_000) < 0.6, hidden, rng.integers(0, 8, 20_000)) for _ in SIZES]
    domain, terms = domain_of(SIZES), Terms()
    if root:
        families = families_of_table("persons", domain, None, [("visits", 3)], groups={})
        domain, terms = families.domain, Terms(families=families)
        codes.append(np.where(rng.random(20_000) < 0.8, codes[0] % 4, rng.integers(0, 4, 20_000)))
    constants = replace(SETTINGS, cap=300.0, cap_most=300.0, beside=beside, full_noise=0.0)
    monkeypatch.setattr(Adaptive, "constants", constants)
    plan = Adaptive().plan(SOURCE, domain, Budget(kind, 10**17 if kind == "pure" else 10**16), terms)
    door = FakeCurator(domain, partial(table_of, domain, codes))
    model = ran(Adaptive(), plan, door, terms)
    assert sum(budget.amount for _, _, budget in door.asked) <= plan.budget.amount
    return model, codes


def missed(model, columns, codes):
    far = 0.0
    for first, second in combinations(range(5), 2):
        real, own = (
            np.bincount(c[first] * 8 + c[second], minlength=64) / len(c[0]) for c in (codes, columns)
        )
        far += np.abs(real - own).sum() / 2
    return far / 10


@pytest.mark.parametrize(("kind", "root"), [("gdp", False), ("pure", False), ("gdp", True)])
def test_pairs_beside_the_tree_bring_rows_closer_and_marginals_agree(monkeypatch, kind, root):
    plain, codes = released(monkeypatch, kind, 0.0, root=root)
    assert not plain.beside
    model, _ = released(monkeypatch, kind, SETTINGS.beside, root=root)
    assert model.beside
    for first, second in model.beside:
        assert model.beliefs.tree.home((first, second)) is None
        names = [model.domain.names[first], model.domain.names[second]]
        table = model.project(names)
        np.testing.assert_allclose(table.sum(axis=1), model.project(names[:1]), rtol=1e-3)
        np.testing.assert_allclose(table.sum(axis=0), model.project(names[1:]), rtol=1e-3)
    without, found = (
        np.concatenate(list(one.sampler().batches(20_000, 3))).astype(np.int64).T for one in (plain, model)
    )
    assert missed(model, found, codes) < 0.7 * missed(plain, without, codes)
    sizes = model.domain.shape()
    for pair in model.beside:
        wanted = model.project([model.domain.names[v] for v in pair]).ravel() / model.total
        near, far = (
            np.abs(
                np.bincount(rows[pair[0]] * sizes[pair[1]] + rows[pair[1]], minlength=wanted.size) / 20_000
                - wanted
            ).sum()
            / 2
            for rows in (found, without)
        )
        assert near < 0.04 and near < 0.2 * far


def test_a_table_with_a_coarse_twin_adds_no_precision():
    """It sees sums of working bins, not the cells of the pair: the dispersion that it does not tell is left."""
    domain = Domain(
        (
            Attribute("age", "INTEGER", "categorical", tuple(range(60)), ordered=True),
            Attribute("sex", "INTEGER", "categorical", (0, 1)),
        )
    )
    plan = Adaptive().plan(SOURCE, domain, Budget.from_epsilon(1, 1e-9))
    settings = replace(SETTINGS, bins_range=(30.0, 30.0), merge_sigmas=0.0)
    one_ways = [Observation(np.full(size, 9000 / size), 1.0) for size in domain.shape()]
    working = working_domain(domain, one_ways, 1e4, settings)
    assert len(working.variables) == 3  # age has a twin
    task = Task(
        FakeCurator(domain, None),
        domain,
        plan.budget,
        plan.reserves[-1],
        Terms(),
        settings,
        working,
        9000.0,
        10**6,
    )
    told = tuple(Dispersions({(0, 1): k}, 0.0) for k in (5.0, 2.0))
    first = replace(independence(task), dispersions=told)
    table = {pair: Observation(np.zeros((2, 2)), 4.0) for pair in ((0, 1), (1, 2))}
    coarse = components(task, replace(first, tables={(1, 2): table[1, 2]}))
    fine, twin = (int(np.prod([working.sizes[v] for v in scope])) for scope in ((0, 1), (1, 2)))
    noise = 4.0**2 * twin**2 / (first.total * fine)
    assert coarse[0, 1] == Components(5.0 + noise, 0.0)
    less = tuple(Dispersions({(0, 1): k}, 0.0, {(0, 1): k - 1}) for k in (5.0, 2.0))
    told_more = replace(first, dispersions=less, tables={(1, 2): table[1, 2]})
    assert components(task, told_more)[0, 1] == Components(4.0 + noise, 0.0)
    assert components(task, replace(first, tables=table))[0, 1] == Components(5.0, 1 / 16)
    assert components(task, first)[0, 1] == Components(2.0, 0.0)
    residual = Observation(np.zeros((60, 2)), 4.0, filled=True)  # a cell of it has (1 - 1/60) (1 - 1/2) of 16
    seen = components(task, replace(first, tables={(0, 1): residual}))[0, 1]
    assert seen.precision == pytest.approx(1 / (16 * 59 / 60 / 2))


def test_a_pair_with_a_variable_of_one_code_is_no_residual():
    law = NoiseLaw(10.0 / MEAN_ABSOLUTE, 0.5)
    taken = selected({(0, 1): 1e5, (0, 2): 1e5}, {}, {}, (8, 1, 8), (), 200, law, SETTINGS)
    assert taken.keys() == {(0, 2)}
