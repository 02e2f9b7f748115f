"""What stands above a family, and what follows from another attribute of the row, is no matter of its class."""

import numpy as np
import pytest

from dpsyn_sql.fit.siblings import (
    Classes,
    carried,
    excess,
    found_classes,
    given_reasons,
    reason_of,
    unexplained,
)

FAMILIES = 1e6


def law(rng, *shape):
    return rng.dirichlet(np.ones(shape[-1]), shape[:-1])


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_what_is_above_explains_are_strangers(seed):
    """Rows a and b of a family are independent given the code above: nothing is left to a class."""
    rng = np.random.default_rng(seed)
    shares, first, second = law(rng, 4), law(rng, 4, 3), law(rng, 4, 5)
    reasons = {
        name: reason_of("above", FAMILIES * shares[:, None] * laws, 1e-9)
        for name, laws in (("a", first), ("b", second))
    }
    for one, other, names in ((first, first, "aa"), (first, second, "ab"), (second, second, "bb")):
        table = FAMILIES * np.einsum("s,sx,sy->xy", shares, one, other)
        left = unexplained(table, *names, reasons)
        strangers = FAMILIES * np.outer(shares @ one, shares @ other)
        np.testing.assert_allclose(left, strangers, rtol=1e-6)


def test_what_nothing_or_something_else_explains_stays():
    rng = np.random.default_rng(5)
    table = rng.uniform(1, 9, (3, 3))
    reasons = {name: reason_of(name, rng.uniform(1, 9, (4, 3)), 0.1) for name in "ab"}
    np.testing.assert_array_equal(unexplained(table, "a", "b", reasons), table)
    np.testing.assert_array_equal(unexplained(table, "c", "c", reasons), table)
    assert not np.array_equal(unexplained(table, "a", "a", reasons), table)


def test_the_posterior_given_what_is_above_is_that_of_the_model():
    """Bayes by hand: P(z | rows, above) of rows that follow P(x | z, a), proportional to P(x | a) r_z(x)."""
    rng = np.random.default_rng(7)
    shares, classes = law(rng, 3), law(rng, 3, 4)
    above, given = law(rng, 2), law(rng, 2, 4)
    reason = reason_of("above", FAMILIES * above[:, None] * given, 1e-9)
    ((name, inverse),) = given_reasons(Classes(shares, (classes,)), ["x"], {"x": reason})
    assert name == "above" and inverse.shape == (3, 2) and inverse.min() > 0 and inverse.max() == 1
    ratio = classes / (shares @ classes)
    for code in range(2):
        exact = given[code] * ratio
        exact /= exact.sum(axis=1, keepdims=True)
        rows = np.array([0, 3, 3])
        wanted = shares * np.prod(exact[:, rows], axis=1)
        found = shares * np.prod(classes[:, rows], axis=1) * inverse[:, code] ** rows.size
        np.testing.assert_allclose(found / found.sum(), wanted / wanted.sum(), rtol=1e-6)


def test_classes_of_a_family_do_not_learn_what_is_above():
    """Half of what rows share is above, half is a class of its own: two classes are left, as they were made."""
    shares, above = np.array([0.5, 0.5]), np.array([0.5, 0.5])
    classes, given = np.array([[0.7, 0.3], [0.3, 0.7]]), np.array([[0.8, 0.2], [0.2, 0.8]])
    exact = given[:, None, :] * (classes / 0.5)[None]
    exact /= exact.sum(axis=2, keepdims=True)
    table = FAMILIES * np.einsum("a,z,azx,azy->xy", above, shares, exact, exact)
    reason = reason_of("above", FAMILIES * np.einsum("a,z,azx->ax", above, shares, exact), 1e-9)
    left = unexplained(table, "x", "x", {"x": reason})
    both, alone = (found_classes({(0, 0): one}, [2], 10.0) for one in (table, left))
    spread = [abs(float(one.laws[0][0, 0] - one.laws[0][-1, 0])) for one in (both, alone)]
    assert len(alone.shares) == 2 and spread[1] < 0.75 * spread[0]


@pytest.mark.parametrize("seed", range(3))
def test_agreement_that_follows_from_another_attribute_of_the_row(seed):
    """y is drawn from x of its row alone: all that rows agree in y is carried by x."""
    rng = np.random.default_rng(seed)
    shares, laws, follows = law(rng, 3), law(rng, 3, 4), law(rng, 4, 5)
    table = FAMILIES * np.einsum("z,zx,zy->xy", shares, laws, laws)
    within = FAMILIES * (shares @ laws)[:, None] * follows
    own = follows.T @ table @ follows
    assert carried(table, within) == pytest.approx(excess(own, 1e-9).share, rel=1e-6)


def test_nothing_is_carried_by_an_attribute_that_says_nothing_of_it():
    rng = np.random.default_rng(4)
    shares, laws = law(rng, 3), law(rng, 3, 4)
    table = FAMILIES * np.einsum("z,zx,zy->xy", shares, laws, laws)
    within = FAMILIES * np.outer(shares @ laws, law(rng, 5))
    assert carried(table, within) == pytest.approx(0, abs=1e-9)
    assert carried(np.zeros((4, 4)), within) == carried(table, np.zeros((4, 5))) == 0
